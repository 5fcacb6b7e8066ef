//! Export and erasure of the data about one subject, and the values it is stored under.
//!
//! Real values go in; only stored values, which may be pseudonyms, come out.

use catraca_core::address::Address;
use catraca_core::catalog::Catalog;
use catraca_core::digest::{Digester, is_pseudonym};
use catraca_core::refusal::Refusal;
use catraca_core::request::validate_storable;
use catraca_core::select::normalise;
use catraca_core::time::Time;

use super::record::AttributeValue;
use super::row::{AuditRow, BlockRow, HistoryRow, KeyAttempts};

/// The values under which a real value may be stored: first the one that the catalog uses now, then
/// those under older secrets, and the one used if the attribute was private, or was not.
pub fn stored_values_of(
    catalog: &Catalog,
    digester: &Digester,
    attribute: &str,
    raw: &str,
) -> Result<Vec<AttributeValue>, Refusal> {
    validate_storable("the attribute's name", attribute)?;
    let clear = normalise(catalog, attribute, raw)?.to_string();
    let mut values: Vec<String> = digester.pseudonyms(attribute, &clear).collect();
    // The form that the catalog uses now goes first: the newest pseudonym or the value itself.
    let is_hidden = catalog.is_private(attribute) || is_pseudonym(&clear);
    let index = if is_hidden { values.len() } else { 0 };
    values.insert(index, clear);
    // IPv6 addresses are counted by network, but a list may have the client's own address.
    let own = Address::parse(raw).ok().filter(|_| attribute == "ip").map(|own| own.to_string());
    values.extend(own.filter(|own| !values.contains(own)));
    let about = |value| AttributeValue { attribute: attribute.to_owned(), value };
    Ok(values.into_iter().map(about).collect())
}

/// All data about a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectExport {
    /// Its blocks, active or ended, each with its history.
    pub blocks: Vec<(BlockRow, Vec<HistoryRow>)>,
    /// Its list entries.
    pub lists: Vec<ExportedEntry>,
    /// Facts about it.
    pub facts: Vec<ExportedFact>,
    /// The attempts of its keys, of those that were counted one by one.
    pub attempts: Vec<ExportedAttempts>,
    /// Audited actions about it.
    pub audit: Vec<AuditRow>,
}

/// A list entry about a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedEntry {
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// The list.
    pub list: String,
    /// Why it was added.
    pub reason: Option<String>,
    /// When it expires; absent means never.
    #[doc(hidden)]
    pub until: Option<Time>,
}

/// The attempts of one key of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedAttempts {
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// How many, and when.
    pub attempts: KeyAttempts,
}

/// A fact about a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFact {
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The value of the fact.
    pub fact: String,
}

/// Rows that an erasure deleted or retained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasureCounts {
    /// Ended blocks that were deleted with their history.
    pub blocks: u64,
    /// Facts that were deleted; the caller must remove them from the engine too.
    pub facts: u64,
    /// Audited actions whose target was erased.
    pub audit: u64,
    /// Active blocks; they are retained until they end, with their own history.
    pub retained_blocks: u64,
    /// Active list entries; they are retained until they are removed.
    pub retained_lists: u64,
    /// Debts; they are retained until they are paid back.
    pub retained_debts: u64,
}
