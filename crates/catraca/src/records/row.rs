//! What is read back: one type per kind of row, pages, and what to ask for.
//!
//! Must not know any database.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use catraca_core::cell::block::{Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{Entry, What};
use catraca_core::policy::Mode;
use catraca_core::time::{Span, Time};

use super::record::{About, ListName, PolicyReset};

/// How much of what is in force is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, for a start.
    Everything,
    /// Lists, facts, modes and whole resets, and which keys were freed: what other nodes' operators
    /// change.
    Changes,
}

/// Something that was in force when the records were last written, for a start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Standing {
    /// A block, or one that ended whose level is remembered.
    Block(StandingBlock),
    /// A key that an operator released: an older snapshot may still hold its block.
    Free(Key),
    /// A key that an operator reset: an older snapshot may still hold its block and its counters.
    Forgotten(Key),
    /// An entry of a list.
    List(ListName, Entry),
    /// A fact about an attribute's value.
    Fact(About, String, String),
    /// An overridden mode.
    Mode(String, Mode),
    /// A debt.
    Debt(StandingDebt),
    /// A policy that began anew for everybody.
    Reset(PolicyReset),
}

/// A block that stands, or that ended and is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingBlock {
    /// The key.
    pub key: Key,
    /// The first free instant.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// Whether only shadow rows see it.
    pub shadow: bool,
    /// What operators and callers are told; equal texts are shared.
    pub note: Note,
    /// How many offences are remembered.
    pub level: u32,
    /// How long after the end.
    pub forget: Span,
}

/// A debt as it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingDebt {
    /// The key.
    pub key: Key,
    /// When.
    pub at: Time,
    /// Whole tokens, below zero.
    pub balance: i64,
    /// The bucket's terms at that time.
    pub terms: BucketTerms,
}

/// A block as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// Its id, the same for as long as the subject is known.
    pub id: i64,
    /// The key, to act on it.
    pub key: Key,
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// Who, as may be shown.
    pub parts: Vec<(String, String)>,
    /// When it was started.
    pub since: Time,
    /// The first free instant.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// Why.
    pub reason: Option<String>,
    /// Which operator, if one.
    pub by: Option<String>,
}

/// One act in the history of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Its id: later acts have larger ones.
    pub id: i64,
    /// When.
    pub at: Time,
    /// `started`, `extended`, `released` or `reset`.
    pub act: String,
    /// What did it.
    pub origin: Origin,
    /// Why.
    pub reason: Option<String>,
    /// The end of the block after the act.
    pub until: Time,
    /// Which operator, if one.
    pub by: Option<String>,
}

/// One audited act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its id: later acts have larger ones.
    pub id: i64,
    /// When.
    pub at: Time,
    /// Who.
    pub by: String,
    /// What.
    pub act: String,
    /// To what, as may be shown.
    pub target: String,
    /// Why.
    pub why: Option<String>,
    /// What was there before, as JSON.
    pub before: Option<String>,
    /// What is there after, as JSON.
    pub after: Option<String>,
}

/// An entry of a list as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    /// Its id: later entries have larger ones.
    pub id: i64,
    /// Whom it is about; a private value as its pseudonym.
    pub what: What,
    /// When it was made or last changed.
    pub at: Time,
    /// When it ends; without an end it stands until it is removed.
    pub until: Option<Time>,
    /// Why.
    pub reason: Option<String>,
    /// Which operator, if one.
    pub by: Option<String>,
}

/// A fact that was stated, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// Of what; a private value as its pseudonym.
    pub about: About,
    /// Its name.
    pub name: String,
    /// What is true.
    pub fact: String,
    /// When it was stated last.
    pub at: Time,
    /// By which operator, if one.
    pub by: Option<String>,
}

/// A place in the list of facts: attribute, value and name of the last one shown.
pub type FactPlace = (String, String, String);

impl FactRow {
    pub(super) fn place(&self) -> FactPlace {
        let About { attribute, value } = &self.about;
        (attribute.clone(), value.clone(), self.name.clone())
    }
}

/// A catalog that was in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRow {
    /// When it came.
    pub at: Time,
    /// Its revision.
    pub revision: String,
    /// How many policies it has, where known.
    pub policies: Option<u32>,
    /// Who brought it, if known.
    pub by: Option<String>,
}

/// Decisions of one policy or action; `total` is the sum of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The policy or the action.
    pub name: String,
    /// All of them.
    pub total: u64,
    /// How many had room.
    pub allowed: u64,
    /// How many had none.
    pub denied: u64,
    /// How many met a block or a blocklist.
    pub blocked: u64,
}

/// How often one subject was blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopBlocked {
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// Who, as may be shown.
    pub parts: Vec<(String, String)>,
    /// How many blocks were started.
    pub blocks: u64,
    /// The end of the last.
    pub last_until: Time,
}

/// Which blocks to list. The default is all that stand, fifty at a time.
#[derive(Clone, Debug)]
pub struct BlockQuery {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this policy.
    pub policy: Option<String>,
    /// Only subjects with one of these values, as they may be shown.
    pub about: Vec<About>,
    /// Only this origin.
    pub origin: Option<Origin>,
    /// Only what comes after this place.
    pub after: Option<Cursor>,
    /// How many at most; up to [`PAGE_MAX`].
    pub limit: u32,
}

/// Which audited acts to list, newest first.
#[derive(Clone, Debug)]
pub struct AuditQuery {
    /// Only this operator.
    pub by: Option<String>,
    /// Only this act.
    pub act: Option<String>,
    /// Only acts older than the one of this id.
    pub before: Option<i64>,
    /// How many at most; up to [`PAGE_MAX`].
    pub limit: u32,
}

/// The most rows of one page.
pub const PAGE_MAX: u32 = 1_000;
const PAGE_DEFAULT: u32 = 50;

/// Some rows, and where the next ones begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C = Cursor> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where to go on; absent at the end.
    pub next: Option<C>,
}

/// A place in the list of blocks, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the last block shown was started.
    pub since: Time,
    /// Its id.
    pub id: i64,
}

impl Default for BlockQuery {
    fn default() -> Self {
        let (namespace, policy, origin, after) = (None, None, None, None);
        Self { namespace, policy, about: Vec::new(), origin, after, limit: PAGE_DEFAULT }
    }
}

impl Default for AuditQuery {
    fn default() -> Self {
        Self { by: None, act: None, before: None, limit: PAGE_DEFAULT }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.since.micros(), self.id)
    }
}

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (since, id) = text.split_once('.').ok_or(NotACursor)?;
        let since = since.parse().map_err(|_| NotACursor)?;
        Ok(Self { since: Time::from_micros(since), id: id.parse().map_err(|_| NotACursor)? })
    }
}

/// A text that is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor: pass the `next` of the page before, unchanged")]
pub struct NotACursor;

/// Texts that many rows share, kept once.
#[derive(Debug, Default)]
pub(super) struct Shared(std::collections::HashMap<Box<str>, Arc<str>>);

impl Shared {
    /// The shared copy of a text. Only so many are kept: reasons that name everybody are not
    /// worth it.
    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        if self.0.len() < SHARED_MAX {
            self.0.insert(text.into(), Arc::clone(&new));
        }
        new
    }
}

const SHARED_MAX: usize = 1_000;
