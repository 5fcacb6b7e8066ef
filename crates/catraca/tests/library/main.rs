//! The library from outside: the engine, its memory store, the records, shared stores and `App`.
//!
//! One executable, because each of them would link the library again.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[cfg(all(feature = "records", feature = "locks", feature = "shared"))]
mod app;
mod ban_storm;
mod gate_handle;
mod limiter;
mod memory;
mod planned;
mod port;
mod presets;
#[cfg(all(feature = "records", feature = "shared"))]
mod records;
mod redis_cell;
mod settle_cost;
#[cfg(feature = "shared")]
mod shared;
