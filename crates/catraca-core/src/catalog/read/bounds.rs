//! The maximum sizes of everything in a catalog, and the check that limits are computed exactly.
//!
//! Redis scripts compute with doubles, so a limit whose products exceed 2^53 is an error here
//! instead of being rounded there.

use crate::limit::Limit;
use crate::located::{Report, SourceLocation};
use crate::price::{Cost, Price};
use crate::time::Span;

/// Total size of all files of a catalog, in bytes.
pub const CATALOG_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Files of one catalog.
pub const FILES_MAX: usize = 64;
/// Levels of included files below the root.
pub const INCLUDE_DEPTH_MAX: usize = 4;
/// Policies of one catalog.
pub const POLICIES_MAX: usize = 4_096;
/// Policies of one gate.
pub const GATE_POLICIES_MAX: usize = 32;
/// Parts of a key, alternatives of a part, and attributes of `each`.
pub const PARTS_MAX: usize = 16;
/// Windows of one policy.
pub const WINDOWS_MAX: usize = 4;
/// The longest value of a variable, in bytes.
pub const VARIABLE_MAX: usize = 4_096;
/// Units that a store keeps one by one for each key: of a sliding window, of in-flight leases, or
/// of the `after` rate of a ban.
pub const UNITS_MAX: i64 = 10_000;
/// Tiers of one policy; a selected tier's index is one byte.
pub const TIERS_MAX: usize = 255;
/// Ban rules of one policy.
pub const BANS_MAX: usize = crate::run::RULES_MAX as usize;
/// Characters of a message.
pub const MESSAGE_MAX: usize = 1_000;
/// Characters of a reason; the same as for operators.
pub const REASON_MAX: usize = crate::request::REASON_MAX;
/// Characters of a condition.
pub const CONDITION_MAX: usize = 2_000;
/// Nested brackets of a condition: the CEL compiler recurses once per level, and the stack of a
/// thread is limited.
pub const CONDITION_DEPTH_MAX: usize = 8;
/// Operators in a row of a condition, for the same reason.
pub const CONDITION_CHAIN_MAX: usize = 24;
/// Bytes of a response body that ban rules read: as much as one HTTP request to the server holds.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Routes of one catalog: a request is compared with one after the other until one matches.
pub const ROUTES_MAX: usize = 4_096;
/// Segments of a route's path.
pub const SEGMENTS_MAX: usize = 32;
/// Servers that one route forwards to.
pub const UPSTREAMS_MAX: usize = 64;
/// The longest `hold`: how long a ticket can be settled.
pub const HOLD_MAX: Span = Span::from_secs(24 * 3_600);
/// The longest `remember`: how long a check can be found by its reference.
pub const REMEMBER_MAX: Span = Span::from_secs(30 * 24 * 3_600);

/// Whether every store charges the prices of `cost` exactly; reports it if not.
pub(super) fn check_prices_exact(
    report: &mut Report,
    location: SourceLocation,
    limit: &Limit,
    cost: &Cost,
    reserve: i64,
) -> bool {
    limit.check_charge(report, location, largest_charge(cost, reserve))
}

/// The largest amount that the catalog itself charges at once. Costs that callers state or report
/// are not known here.
fn largest_charge(cost: &Cost, reserve: i64) -> i64 {
    match cost {
        Cost::Units(units) => *units,
        Cost::Table(table) => table.prices().map(units).max().unwrap_or(1).max(reserve),
        Cost::Reported | Cost::Body(_) => reserve,
        Cost::Request => 1,
    }
}

fn units(price: Price) -> i64 {
    match price {
        Price::Units(units) => units,
        Price::Drain => 0,
    }
}
