//! Outages of a real Redis: the errors and latency that callers observe, and for how long.
//!
//! Each fault is a test with its bound, and prints its measurements. `CATRACA_DEEP=1` makes the
//! outages longer. The number in the name of a test, such as `f14`, identifies the fault.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "outages/clock_skew.rs"]
mod clock_skew;
#[path = "outages/clocks.rs"]
mod clocks;
#[path = "outages/disconnects.rs"]
mod disconnects;
#[path = "outages/failovers.rs"]
mod failovers;
#[path = "outages/helpers.rs"]
mod helpers;
#[path = "outages/lost_data.rs"]
mod lost_data;
#[path = "outages/network.rs"]
mod network;
#[path = "outages/refusals.rs"]
mod refusals;
#[path = "outages/slot_migration.rs"]
mod slot_migration;
