//! Replays in virtual time: scenarios with their expected answers, and simulations of recorded
//! traffic.
//!
//! Both call the engine that decides in production, with a clock that the input sets. `catraca
//! test` and `catraca simulate` print what this crate returns. It must not print, and must not
//! parse a command line.

pub mod scenario;
pub mod simulate;
pub mod text;
