//! What catraca is tested with: the oracle, the generators that compare it with the engine, the
//! contract that every store must keep, and the scenario runner behind `catraca test`.
//!
//! Must not be in the way of a decision: nothing that decides depends on it.

pub mod blocking;
pub mod certificates;
pub mod compare;
pub mod contract;
pub mod generate;
pub mod locks;
pub mod oracle;
pub mod plain;
pub mod proxy;
pub mod redis;
pub mod resp;
pub mod scenario;
pub mod wrong_clock;
