//! The cases: one test for each topology and fault, with its bounds.

mod alone;
mod cluster;
mod postgres;
mod records;
mod redis;
mod sentinel;

use std::time::Duration;

/// How long a fault lasts that does not end by itself.
const OUTAGE: Duration = Duration::from_secs(3);
/// Longer than what a node does that is cut off needs to reach the others through the records.
const LONG_OUTAGE: Duration = Duration::from_secs(8);
/// For faults that are over when they have begun.
const AT_ONCE: Duration = Duration::ZERO;
/// Of a fault that lasts for [`OUTAGE`], nodes tell callers at the latest after a second.
const NOTICED: Duration = Duration::from_secs(2);
