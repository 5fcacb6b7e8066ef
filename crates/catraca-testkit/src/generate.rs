//! Random catalogs and operations, from one seed.
//!
//! The same seed must give the same trace on every machine: no clock, no hash order, no other
//! randomness. Most limits and times are tiny, so that operations often meet an edge, and a few are
//! extreme.

pub mod catalog;
pub mod catalog_toml;
pub mod op;
pub mod outcome;
pub mod policy;
pub mod rng;
pub mod trace;

pub use op::{Op, OpKind};
pub use rng::Rng;
pub use trace::Trace;

#[cfg(test)]
mod tests;
