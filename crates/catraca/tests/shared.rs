//! The engine over a store that nodes share: what it answers while the store is well, and while it
//! is not.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "shared/alone.rs"]
mod alone;
#[path = "shared/back.rs"]
mod back;
#[path = "shared/helpers.rs"]
mod helpers;
#[path = "shared/known.rs"]
mod known;
#[cfg(feature = "records")]
#[path = "shared/records.rs"]
mod records;
#[path = "shared/same.rs"]
mod same;
