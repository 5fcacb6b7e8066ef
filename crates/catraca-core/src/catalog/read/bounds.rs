//! How much a catalog may hold, and which numbers every store computes exactly.
//!
//! One of the stores has only doubles, so products beyond 2^53 are refused here, once, instead of
//! being rounded there. Must not read text.

use super::report::{Place, Report};
use crate::limit::{BucketTerms, EXACT_MAX, Limit};
use crate::price::{Cost, Price};
use crate::time::Span;

/// Bytes of all files of a catalog together.
pub const CATALOG_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Files of one catalog.
pub const FILES_MAX: usize = 64;
/// How deep files may include each other, below the root.
pub const INCLUDE_DEPTH_MAX: usize = 4;
/// Policies of one catalog.
pub const POLICIES_MAX: usize = 4_096;
/// Policies of one gate.
pub const GATE_POLICIES_MAX: usize = 32;
/// Characters of a name.
pub const NAME_MAX: usize = 64;
/// Parts of a key, alternatives of a part, and attributes of `each`.
pub const PARTS_MAX: usize = 16;
/// Windows of one policy.
pub const WINDOWS_MAX: usize = 4;
/// The longest value of a variable, in bytes.
pub const VARIABLE_MAX: usize = 4_096;
/// Units that one key keeps one by one: of a window, of leases, of strikes.
pub const UNITS_MAX: i64 = 10_000;
/// Tiers of one policy; a ticket keeps the tier in one byte.
pub const TIERS_MAX: usize = 255;
/// Ban rules of one policy.
pub const BANS_MAX: usize = crate::run::RULES_MAX as usize;
/// Characters of a message or a reason.
pub const MESSAGE_MAX: usize = crate::request::REASON_MAX;
/// Characters of a condition.
pub const CONDITION_MAX: usize = 2_000;
/// Brackets inside brackets of a condition: its compiler descends with every one, and a thread's
/// stack is finite.
pub const CONDITION_DEPTH_MAX: usize = 8;
/// Operators in a row of a condition, for the same reason.
pub const CONDITION_CHAIN_MAX: usize = 24;
/// Bytes of a body that ban rules read: the largest request over HTTP.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Routes of one catalog: a request is compared with each of them until one takes it.
pub const ROUTES_MAX: usize = 4_096;
/// Segments of a route's path.
pub const SEGMENTS_MAX: usize = 32;
/// How long a ticket may be settled.
pub const HOLD_MAX: Span = Span::from_secs(24 * 3_600);
/// How long a reference may be remembered.
pub const REMEMBER_MAX: Span = Span::from_secs(30 * 24 * 3_600);
/// Keys of callers.
pub const KEYS_MAX: usize = 10_000;
/// Attributes that a caller's key fixes.
pub const FIXED_MAX: usize = 8;
/// Diagnostics of one reading.
pub const DIAGNOSTICS_MAX: usize = 500;

/// Whether every store refills this bucket exactly; reports it if not.
pub(super) fn bucket(report: &mut Report, place: Place, terms: &BucketTerms) -> bool {
    let full = i128::from(terms.size) * i128::from(terms.period);
    let tokens = i128::from(terms.tokens);
    // The microseconds to fill it round up, and are multiplied again by the tokens gained.
    let refilled = (full + tokens - 1) / tokens * tokens;
    let exact = full.max(refilled) <= i128::from(EXACT_MAX);
    if !exact {
        let message = "the bucket cannot be counted exactly: size times the refill's period in \
                       microseconds, reduced, is beyond 2^53";
        let size = (EXACT_MAX / terms.period).max(1);
        let fix = format!("write a size of at most {size}, or the refill with a shorter period");
        report.error("inexact", place, message, fix);
    }
    exact
}

/// Whether every store charges these prices exactly; reports it if not.
pub(super) fn prices(
    report: &mut Report,
    place: Place,
    terms: (&Limit, &Cost),
    reserve: i64,
) -> bool {
    let Limit::Bucket(bucket) = terms.0 else { return true };
    let most = EXACT_MAX / bucket.period.max(1);
    let exact = largest(terms.1, reserve) <= most;
    if !exact {
        let message = format!(
            "with this refill a cost above {most} cannot be counted exactly: cost times the \
             refill's period in microseconds, reduced, is beyond 2^53"
        );
        let fix = format!("write costs of at most {most}, or the refill with a shorter period");
        report.error("inexact", place, message, fix);
    }
    exact
}

/// The largest amount that the catalog itself may charge at once.
fn largest(cost: &Cost, reserve: i64) -> i64 {
    match cost {
        Cost::Units(units) => *units,
        Cost::Table(table) => table.prices().map(units).max().unwrap_or(1).max(reserve),
        Cost::Reported => reserve,
        Cost::Request => 1,
    }
}

fn units(price: Price) -> i64 {
    match price {
        Price::Units(units) => units,
        Price::Drain => 0,
    }
}
