//! Test support for Catraca: an independent oracle of the rate-limiting rules, random traces that
//! compare the oracle with the engine, and the contract that every store must satisfy.
//!
//! Only tests depend on this crate; the program `catraca` does not.

pub mod blocking_store;
pub mod certificates;
pub mod compare;
pub mod contract;
pub mod fake_clock;
pub mod fault_proxy;
pub mod generate;
pub mod locks;
pub mod oracle;
pub mod pause_watch;
pub mod postgres;
pub mod redis;
pub mod reference_cells;
pub mod resp;
