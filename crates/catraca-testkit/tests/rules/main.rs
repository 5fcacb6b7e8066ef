//! The rules on the memory store: against the oracle, as properties, and by the store contract.
//!
//! One executable, because each of them would link the library again.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod contract;
mod findings;
mod full_memory;
mod full_pools;
mod guarantees;
mod lock_history;
mod locks;
mod operators;
mod oracle;
mod properties;
mod tiers;
