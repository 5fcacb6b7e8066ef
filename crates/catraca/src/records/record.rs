//! What can be recorded: plain data, in the words of the vocabulary.
//!
//! Names are given as they may be shown: private values come here as pseudonyms already. Must not
//! know any database.

use catraca_core::cell::block::{Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{Entry, What};
use catraca_core::lock::kept::LockDeed;
use catraca_core::policy::Mode;
use catraca_core::time::{Span, Time};

/// One thing that happened, with who did it and why.
#[derive(Clone, Debug)]
pub struct Record {
    /// When, by the engine's clock.
    pub at: Time,
    /// The operator; absent for what the engine did by itself. Present means audited.
    pub by: Option<String>,
    /// The operator's motive.
    pub why: Option<String>,
    /// What happened.
    pub deed: Deed,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Deed {
    /// A block was started or lengthened.
    Block(Box<Blocking>),
    /// A block was ended by an operator.
    Release(Who),
    /// Everything about a key was forgotten: its block and its debt too.
    Reset(Who),
    /// A policy began anew for everybody; what is about it from before is to be swept.
    ResetPolicy(PolicyReset),
    /// A settle left a debt, or paid one back.
    Owe(Box<Debt>),
    /// An entry of a list was made or changed; its reason stays with it, the motive goes to the
    /// audit.
    List(ListName, Entry),
    /// An entry of a list was removed.
    Unlist(ListName, What),
    /// Facts were stated about an attribute's value.
    State(About, Vec<(String, String)>),
    /// Facts about an attribute's value were forgotten.
    Forget(About),
    /// A policy's mode was overridden, or given back to the catalog.
    Mode(String, Option<Mode>),
    /// Another catalog came in force.
    Revise(Revision),
    /// From now on callers need a key, or none does. Audited only if that is a change.
    RequireKeys(bool),
    /// Decisions were counted.
    Count(Vec<Count>),
    /// Something about locks or slots.
    Lock(Box<LockDeed>),
    /// Something else that an operator did; only audited.
    Note(Noted),
}

/// Whom a block or a debt is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The key of (namespace, policy, parts).
    pub key: Key,
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// Each attribute with its value as it may be shown.
    pub parts: Vec<(String, String)>,
}

/// A policy that began anew for everybody, in every namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyReset {
    /// The policy.
    pub policy: String,
    /// Since when it counts.
    pub epoch: Time,
}

/// A block that was started or lengthened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Whom.
    pub who: Who,
    /// Since when the policy counted, as the decision knew it: a block from before a whole reset
    /// that is written after it does not stand. Zero if since ever.
    pub epoch: Time,
    /// The first free instant.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// What operators and callers are told.
    pub note: Note,
    /// Whether only shadow rows see it.
    pub shadow: bool,
    /// How long after its end the offence is remembered; zero if it does not escalate.
    pub forget: Span,
}

/// What a bucket held after a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debt {
    /// Whose.
    pub who: Who,
    /// Since when the policy counted, as the settle knew it; zero if since ever.
    pub epoch: Time,
    /// Whole tokens; a debt is negative, anything else clears it.
    pub balance: i64,
    /// The bucket's terms at that time.
    pub terms: BucketTerms,
}

/// An attribute's value as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// The attribute.
    pub attribute: String,
    /// The value.
    pub value: String,
}

/// One of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListName {
    /// Entries that pass.
    Allow,
    /// Entries that are refused.
    Block,
}

/// A catalog that came in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its revision.
    pub revision: String,
    /// How many policies it has, where known.
    pub policies: Option<u32>,
}

/// Decisions of one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Minutes since the epoch.
    pub minute: i64,
    /// The namespace.
    pub namespace: String,
    /// The gate that was asked.
    pub action: String,
    /// The policy whose rows these are; empty for the gate as a whole.
    pub policy: String,
    /// How many had room.
    pub allowed: u64,
    /// How many had none.
    pub denied: u64,
    /// How many met a block or a blocklist.
    pub blocked: u64,
}

/// An operator's act that leaves no other trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// What was done, in one word.
    pub act: String,
    /// To what, as it may be shown.
    pub target: String,
}

impl Record {
    /// Something that the engine did by itself.
    pub fn automatic(at: Time, deed: Deed) -> Self {
        Self { at, by: None, why: None, deed }
    }

    /// Something that a person did.
    pub fn operator(at: Time, by: &str, why: Option<&str>, deed: Deed) -> Self {
        Self { at, by: Some(by.to_owned()), why: why.map(str::to_owned), deed }
    }

    /// The key whose newest state alone matters when there is no room for every step.
    pub(super) fn key(&self) -> Option<Key> {
        match &self.deed {
            Deed::Block(block) => Some(block.who.key),
            Deed::Release(who) | Deed::Reset(who) => Some(who.key),
            _ => None,
        }
    }
}

impl ListName {
    /// The word used on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allowlist",
            Self::Block => "blocklist",
        }
    }
}

/// The word for an origin, as the records keep it.
pub(super) const fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "excess",
        Origin::Ban => "ban",
        Origin::Operator => "operator",
        Origin::Upstream => "upstream",
    }
}

/// The origin of a word.
pub(super) fn origin_of(word: &str) -> Option<Origin> {
    let all = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    all.into_iter().find(|origin| origin_word(*origin) == word)
}

/// The mode of a word.
pub(super) fn mode_of(word: &str) -> Option<Mode> {
    [Mode::Enforce, Mode::Shadow, Mode::Off].into_iter().find(|mode| mode.as_str() == word)
}
