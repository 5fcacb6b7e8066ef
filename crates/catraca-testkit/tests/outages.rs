//! Faults of a real Redis behind a wire that fails: what callers see, and for how long.
//!
//! Each fault is a test with its bound; what it measured is printed. `CATRACA_DEEP=1` makes them
//! longer. Must not talk to anything but loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "outages/apart.rs"]
mod apart;
#[path = "outages/back.rs"]
mod back;
#[path = "outages/clocks.rs"]
mod clocks;
#[path = "outages/groups.rs"]
mod groups;
#[path = "outages/kit.rs"]
mod kit;
#[path = "outages/refusals.rs"]
mod refusals;
#[path = "outages/slots.rs"]
mod slots;
#[path = "outages/starts.rs"]
mod starts;
#[path = "outages/wire.rs"]
mod wire;
