//! The records: plain data for what happened, when, by whom and why.
//!
//! Values are given as they may be shown: private values are pseudonyms already.

use std::sync::Arc;
use std::time::SystemTime;

use catraca_core::catalog::Catalog;
use catraca_core::cell::block::Origin;
use catraca_core::digest::{Digester, Key};
use catraca_core::lists::AccessListEntry;
use catraca_core::lock::persistence::LockWrite;
use catraca_core::policy::Mode;
use catraca_core::time::Time;

use crate::event::{BlockEvent, DebtEvent, SubjectKey};

/// One event to store.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time by the engine's clock.
    #[doc(hidden)]
    pub at: Time,
    /// The operator; absent for automatic records. Records with an operator are audited.
    pub by: Option<String>,
    /// Why the operator acted.
    pub why: Option<String>,
    /// What happened.
    pub kind: RecordKind,
}

/// The kinds of records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecordKind {
    /// A block was started or extended.
    Block(Box<BlockEvent>),
    /// An operator ended a block.
    Release(SubjectKey),
    /// A key was reset: its counters, its block and its debt.
    Reset(SubjectKey),
    /// A policy was reset for all keys. Its older blocks and debts are removed later, by a sweep.
    ResetPolicy(PolicyReset),
    /// A settle left a debt or paid it back.
    Debt(Box<DebtEvent>),
    /// A list entry was added or changed. The entry has a reason of its own; the operator's goes to
    /// the audit.
    List(ListName, AccessListEntry),
    /// A list entry was removed.
    Unlist(ListName, AccessListEntry),
    /// Facts about an attribute's value were set.
    SetFacts {
        /// The only namespace in which they apply; absent means all.
        namespace: Option<String>,
        /// The value.
        about: AttributeValue,
        /// The facts: name and value.
        facts: Vec<(String, String)>,
    },
    /// Facts that are stored about other forms of a value, in any namespace, are stored about this
    /// one from now on.
    /// Not audited: it changes no fact.
    MergeFacts {
        /// The form that the catalog uses now.
        into: AttributeValue,
        /// The other forms.
        from: Vec<AttributeValue>,
    },
    /// Values of the attributes that this catalog declares private, which are stored in clear in
    /// lists, facts and the audit, are replaced by pseudonyms. Audited if there were any.
    HideValues(Arc<Catalog>, Digester),
    /// All facts about an attribute's value were removed, in one namespace or in all.
    ForgetFacts {
        /// The namespace of the facts; absent for those of all namespaces.
        namespace: Option<String>,
        /// The value.
        about: AttributeValue,
    },
    /// A policy's mode was overridden, or set back to the catalog's.
    Mode(String, Option<Mode>),
    /// Another catalog was loaded.
    Catalog(Revision),
    /// Whether callers need an API key from now on. Audited only when it changes.
    RequireKeys(bool),
    /// Decisions per minute.
    Count(Vec<MinuteCount>),
    /// Attempts of single keys per minute.
    CountKeys(Vec<KeyCount>),
    /// A change of locks or slots.
    Lock(Box<LockWrite>),
    /// Any other action of an operator; only audited.
    Note(AuditNote),
}

/// A policy that was reset for all keys in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReset {
    /// The policy.
    pub policy: String,
    /// Counters, blocks and debts from before this time no longer count.
    #[doc(hidden)]
    pub epoch: Time,
}

/// An attribute with a value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributeValue {
    /// The attribute.
    pub attribute: String,
    /// The value.
    pub value: String,
}

/// One of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListName {
    /// The allowlist.
    Allow,
    /// The blocklist.
    Block,
}

/// A catalog that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its revision string.
    pub revision: String,
    /// The number of its policies, if known.
    pub policies: Option<u32>,
}

/// The decisions of one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteCount {
    /// Minutes since the Unix epoch.
    pub minute: i64,
    /// The namespace.
    pub namespace: String,
    /// The gate.
    pub action: String,
    /// The policy; empty for whole decisions of the gate.
    pub policy: String,
    /// Decisions that allowed.
    pub allowed: u64,
    /// Decisions that denied because of a limit.
    pub denied: u64,
    /// Decisions that denied because of a block or the blocklist.
    pub blocked: u64,
}

/// The attempts of one key in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCount {
    /// Minutes since the Unix epoch.
    pub minute: i64,
    /// The key, with values as they may be shown.
    pub subject: SubjectKey,
    /// How many were allowed, denied because of a limit, and denied because of a block.
    pub outcomes: [u64; 3],
    /// The first attempt.
    #[doc(hidden)]
    pub first: Time,
    /// The last attempt.
    #[doc(hidden)]
    pub last: Time,
}

/// An operator action that changes nothing else in the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    /// The action in one word.
    pub act: String,
    /// Its target, as it may be shown.
    pub target: String,
}

impl Record {
    /// A record without an operator.
    pub fn automatic(at: impl Into<SystemTime>, kind: RecordKind) -> Self {
        let at = at.into().into();
        Self { at, by: None, why: None, kind }
    }

    /// A record of an operator.
    pub fn operator(
        at: impl Into<SystemTime>,
        by: &str,
        why: Option<&str>,
        kind: RecordKind,
    ) -> Self {
        let at = at.into().into();
        Self { at, by: Some(by.to_owned()), why: why.map(str::to_owned), kind }
    }

    /// The key of a block record. When the queue is full, only the newest record of each key is
    /// stored.
    pub(super) fn key(&self) -> Option<Key> {
        match &self.kind {
            RecordKind::Block(block) => Some(block.subject.key),
            RecordKind::Release(subject) | RecordKind::Reset(subject) => Some(subject.key),
            _ => None,
        }
    }
}

impl ListName {
    /// The name in the API, the CLI and the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allowlist",
            Self::Block => "blocklist",
        }
    }
}

/// The name of an origin in the database.
pub(super) const fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "excess",
        Origin::Ban => "ban",
        Origin::Operator => "operator",
        Origin::Upstream => "upstream",
    }
}

/// The origin with this name.
pub(super) fn parse_origin(word: &str) -> Option<Origin> {
    let all = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    all.into_iter().find(|origin| origin_name(*origin) == word)
}

/// The mode with this name.
pub(super) fn parse_mode(word: &str) -> Option<Mode> {
    [Mode::Enforce, Mode::Shadow, Mode::Off].into_iter().find(|mode| mode.as_str() == word)
}
