//! Rows that are read from the records, pages of them, and queries.

use std::fmt;
use std::str::FromStr;

use catraca_core::cell::block::{Block, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::Mode;
use catraca_core::select::orphan::OrphanReason;
use catraca_core::time::Time;

use super::block_id::BlockId;
use super::incomplete::Incomplete;
use super::record::{AttributeValue, ListName, PolicyReset};
use crate::event::SubjectKey;

/// What to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreScope {
    /// Everything, at start.
    Everything,
    /// Lists, facts, modes, policy resets and freed keys: what operators of other nodes change.
    Changes,
    /// The same, and the active blocks that were started or extended since.
    Recent,
}

/// Something that was active when the records were last written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RestoredItem {
    /// An active block, or an ended one whose level still counts for escalation.
    Block(Key, Block),
    /// A key that an operator released: an older snapshot may still have its block. With the end
    /// that the block would have had, if the history has it.
    Released(Key, #[doc(hidden)] Option<Time>),
    /// A key that an operator reset: an older snapshot may still have its block and counters. With
    /// the end as above.
    ResetKey(Key, #[doc(hidden)] Option<Time>),
    /// A list entry.
    List(ListName, AccessListEntry),
    /// A fact about an attribute's value.
    Fact(RestoredFact),
    /// An overridden mode, and when it was set.
    Mode(String, Mode, #[doc(hidden)] Time),
    /// A debt.
    Debt(RestoredDebt),
    /// A policy that was reset for all keys.
    ResetPolicy(PolicyReset),
}

/// A fact that an operator set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredFact {
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// The attribute and its value.
    pub about: AttributeValue,
    /// Its name.
    pub name: String,
    /// The value of the fact.
    pub fact: String,
}

/// A debt as it was last recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredDebt {
    /// The key.
    pub key: Key,
    /// When.
    #[doc(hidden)]
    pub at: Time,
    /// Whole tokens, negative.
    pub balance: i64,
    /// Size and refill rate of the bucket at that time.
    pub terms: BucketTerms,
}

/// A block as the records have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// Its id, which no other block has.
    pub id: BlockId,
    /// The row of its key in the database.
    pub(super) subject_id: i64,
    /// The blocked key.
    pub subject: SubjectKey,
    /// When the block was started.
    #[doc(hidden)]
    pub since: Time,
    /// The operator, if one did it.
    pub by: Option<String>,
    /// The block.
    pub block: Block,
    /// The act that made it together with others, if one did.
    pub(super) act_id: Option<String>,
    /// Why no request has its key under the catalog in use. Only the application knows it.
    pub orphaned: Option<OrphanReason>,
}

impl BlockRow {
    /// Whether the last act on both blocks was the same.
    pub fn is_of_same_act(&self, other: &Self) -> bool {
        self.act_id.is_some() && self.act_id == other.act_id
    }

    /// A key that names the act that started the block together with others, as the first of them
    /// does.
    #[cfg(feature = "shared")]
    pub(crate) fn first_of_act(&self) -> Option<Key> {
        let act: BlockId = self.act_id.as_ref()?.parse().ok()?;
        // An act that only extended this block has another instant, and cannot be named by this
        // block's.
        (act.since == self.since).then(|| act.to_key())
    }
}

/// One step in the history of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Its id; ids increase with time.
    pub id: i64,
    /// When.
    #[doc(hidden)]
    pub at: Time,
    /// `started`, `extended`, `released` or `reset`.
    pub act: String,
    /// What caused the step.
    pub origin: Origin,
    /// Why.
    pub reason: Option<String>,
    /// The end of the block after the step.
    #[doc(hidden)]
    pub until: Time,
    /// The escalation level after the step.
    pub level: u32,
    /// The operator, if one did it.
    pub by: Option<String>,
}

/// One audited action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its id; ids increase with time.
    pub id: i64,
    /// When.
    #[doc(hidden)]
    pub at: Time,
    /// Who.
    pub by: String,
    /// What.
    pub act: String,
    /// The namespace of the key, the entry, the facts or the locks that it was on; absent if it was
    /// on none, or for all namespaces.
    pub namespace: Option<String>,
    /// The target, as it may be shown.
    pub target: String,
    /// The attributes of the key that the act was on, as they are stored: the target ends with
    /// them. Empty if the act was not on a key.
    pub parts: Vec<(String, String)>,
    /// Why.
    pub why: Option<String>,
    /// The state before, as JSON.
    pub before: Option<String>,
    /// The state after, as JSON.
    pub after: Option<String>,
}

/// A list entry for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    /// Its id; ids increase with time.
    pub id: i64,
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// The range or value; a private value as its pseudonym.
    pub what: ListTarget,
    /// When it was added or last changed.
    #[doc(hidden)]
    pub at: Time,
    /// When it expires; without an end it is active until it is removed.
    #[doc(hidden)]
    pub until: Option<Time>,
    /// Why.
    pub reason: Option<String>,
    /// The operator, if one did it.
    pub by: Option<String>,
}

/// A fact for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// The attribute and its value; a private value as its pseudonym.
    pub about: AttributeValue,
    /// Its name.
    pub name: String,
    /// The value of the fact.
    pub fact: String,
    /// When it was last set.
    #[doc(hidden)]
    pub at: Time,
    /// The operator, if one did it.
    pub by: Option<String>,
}

/// A position in the list of facts: attribute, value, name and namespace of the last fact of a
/// page. The namespace is empty for a fact of all namespaces.
pub type FactCursor = (String, String, String, String);

impl FactRow {
    pub(super) fn cursor(&self) -> FactCursor {
        let AttributeValue { attribute, value } = &self.about;
        let namespace = self.namespace.clone().unwrap_or_default();
        (attribute.clone(), value.clone(), self.name.clone(), namespace)
    }
}

/// A catalog that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRow {
    /// When it was loaded.
    #[doc(hidden)]
    pub at: Time,
    /// Its revision.
    pub revision: String,
    /// The number of its policies, if known.
    pub policies: Option<u32>,
    /// The operator who loaded it, if known.
    pub by: Option<String>,
}

/// Decisions of one policy or action; `total` is the sum of the other three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The policy or the action.
    pub name: String,
    /// All decisions.
    pub total: u64,
    /// Decisions that allowed.
    pub allowed: u64,
    /// Decisions that denied because of a limit.
    pub denied: u64,
    /// Decisions that denied because of a block or the blocklist.
    pub blocked: u64,
}

/// The attempts of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAttempts {
    /// All attempts, allowed or not.
    pub attempts: u64,
    /// The first attempt.
    #[doc(hidden)]
    pub first: Time,
    /// The last attempt.
    #[doc(hidden)]
    pub last: Time,
}

/// The number of blocks of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopBlocked {
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// The attributes of the key with their values as they may be shown.
    pub parts: Vec<(String, String)>,
    /// Blocks that were started or extended.
    pub blocks: u64,
    /// The latest end of a block.
    #[doc(hidden)]
    pub last_until: Time,
}

/// Which blocks a query is about, by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockStates {
    /// Those that are active.
    #[default]
    Active,
    /// Those that have ended, while the history has them.
    Ended,
    /// Both.
    All,
}

/// Which blocks to list. The default is all active blocks, fifty per page.
#[derive(Clone, Debug)]
pub struct BlockQuery {
    /// Active blocks, ended ones, or both.
    pub states: BlockStates,
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this policy.
    pub policy: Option<String>,
    /// Only subjects with one of these values, as they may be shown.
    pub about: Vec<AttributeValue>,
    /// Only this origin.
    pub origin: Option<Origin>,
    /// Only blocks with exactly this reason.
    pub reason: Option<String>,
    /// Only blocks after this position.
    pub after: Option<Cursor>,
    /// The page size, up to [`PAGE_MAX`].
    pub limit: u32,
}

/// Which audited actions to list, newest first.
#[derive(Clone, Debug)]
pub struct AuditQuery {
    /// Only this operator.
    pub by: Option<String>,
    /// Only this action.
    pub act: Option<String>,
    /// Only acts inside this namespace.
    pub namespace: Option<String>,
    /// Only actions with ids below this.
    pub before: Option<i64>,
    /// The page size, up to [`PAGE_MAX`].
    pub limit: u32,
}

/// The largest page size.
pub const PAGE_MAX: u32 = 1_000;
const PAGE_DEFAULT: u32 = 50;

/// One page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C = Cursor> {
    /// The rows.
    pub rows: Vec<T>,
    /// The position of the next page; absent on the last page.
    pub next: Option<C>,
    /// Why the newest rows may be missing, if so. Only the application knows it: the queries of
    /// [`super::Records`] do not wait for records that are queued.
    pub incomplete: Option<Incomplete>,
}

/// A position in the list of blocks, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The start of the last block of the page.
    #[doc(hidden)]
    pub since: Time,
    /// The row of its key in the database.
    pub subject: i64,
}

impl Default for BlockQuery {
    fn default() -> Self {
        Self {
            states: BlockStates::Active,
            namespace: None,
            policy: None,
            about: Vec::new(),
            origin: None,
            reason: None,
            after: None,
            limit: PAGE_DEFAULT,
        }
    }
}

impl Default for AuditQuery {
    fn default() -> Self {
        Self { by: None, act: None, namespace: None, before: None, limit: PAGE_DEFAULT }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.since.micros(), self.subject)
    }
}

impl FromStr for Cursor {
    type Err = CursorParseError;

    fn from_str(text: &str) -> Result<Self, CursorParseError> {
        let (since, subject) = text.split_once('.').ok_or(CursorParseError)?;
        let since = since.parse().map_err(|_| CursorParseError)?;
        let subject = subject.parse().map_err(|_| CursorParseError)?;
        Ok(Self { since: Time::from_micros(since), subject })
    }
}

/// A text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: pass the `next` of the previous page, unchanged")]
pub struct CursorParseError;
