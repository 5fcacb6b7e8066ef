//! Faults of a real Redis behind a wire that fails: what callers see, and for how long.
//!
//! Each fault is a test with its bound; what it measured is printed. `CATRACA_DEEP=1` makes them
//! longer. Must not talk to anything but loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "outages/clock_skew.rs"]
mod clock_skew;
#[path = "outages/lost_data.rs"]
mod lost_data;
#[path = "outages/clocks.rs"]
mod clocks;
#[path = "outages/failovers.rs"]
mod failovers;
#[path = "outages/helpers.rs"]
mod helpers;
#[path = "outages/refusals.rs"]
mod refusals;
#[path = "outages/slot_migration.rs"]
mod slot_migration;
#[path = "outages/disconnects.rs"]
mod disconnects;
#[path = "outages/network.rs"]
mod network;
