//! Outages of a real Redis: the errors and latency that callers observe, and for how long.
//!
//! Each fault is a test with its bound, and prints its measurements. `CATRACA_DEEP=1` makes the
//! outages longer. The number in the name of a test, such as `f14`, identifies the fault.

mod clock_skew;
mod clocks;
mod cluster;
mod cluster_load;
mod disconnects;
mod failovers;
mod helpers;
mod lost_data;
mod network;
mod refusals;
mod slot_migration;
