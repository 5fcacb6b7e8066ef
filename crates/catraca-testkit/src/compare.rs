//! Applies a random trace to the engine and to the oracle, and compares every answer.
//!
//! The engine is called through its public interface only. A difference is reported with the seed,
//! the catalog and the shortest trace that shows it.

pub mod answer;
mod convert;
pub mod engine_side;
pub mod oracle_side;
pub mod run;

pub use run::{AnswerCounts, Divergence, compare_trace, compare_trace_on};
