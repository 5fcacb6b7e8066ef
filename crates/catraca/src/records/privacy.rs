//! Export and erasure by identifier, and the names under which values are kept.
//!
//! Must not keep or return a private value: what goes in is a real value, what comes out are
//! pseudonyms.

use catraca_core::address::Address;
use catraca_core::catalog::Catalog;
use catraca_core::digest::Digester;
use catraca_core::refusal::Refusal;
use catraca_core::request::storable;
use catraca_core::select::normalise;

use super::record::About;
use super::row::{AuditRow, BlockRow, HistoryRow};

/// The names under which a real value may be found: as the catalog has it now first, then as it
/// would have been under an older secret, or had the attribute been private, or not.
pub fn known_as(
    catalog: &Catalog,
    digester: &Digester,
    attribute: &str,
    raw: &str,
) -> Result<Vec<About>, Refusal> {
    storable("the attribute's name", attribute)?;
    let clear = normalise(catalog, attribute, raw)?.to_string();
    let mut values: Vec<String> = digester.pseudonyms(attribute, &clear).collect();
    let place = if catalog.is_private(attribute) { values.len() } else { 0 };
    values.insert(place, clear);
    // A network's address is what is counted; a list may have the caller's own.
    let own = Address::parse(raw).ok().filter(|_| attribute == "ip").map(|own| own.to_string());
    values.extend(own.filter(|own| !values.contains(own)));
    let about = |value| About { attribute: attribute.to_owned(), value };
    Ok(values.into_iter().map(about).collect())
}

/// All that is known of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Its blocks, standing or ended, each with its history.
    pub blocks: Vec<(BlockRow, Vec<HistoryRow>)>,
    /// Its entries in lists: the list, the reason, the end in microseconds.
    pub lists: Vec<(String, Option<String>, Option<i64>)>,
    /// What was stated about it.
    pub facts: Vec<(String, String)>,
    /// What operators did about it.
    pub audit: Vec<AuditRow>,
}

/// What an erasure did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Ended blocks that are gone with their history.
    pub blocks: u64,
    /// Facts that are gone; the engine must forget them too.
    pub facts: u64,
    /// Audited acts whose target is no longer named.
    pub audit: u64,
    /// Blocks that still stand, and are kept until they end.
    pub retained_blocks: u64,
    /// Entries of lists that still stand, and are kept until they are removed.
    pub retained_lists: u64,
    /// Debts that are not paid back, and are kept until they are.
    pub retained_debts: u64,
}
