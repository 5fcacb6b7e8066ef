//! Plays one story against the real engine and the oracle, and compares every answer.
//!
//! It must use the engine's public interface only, and must name seed, catalog and shortest story
//! of any difference.

pub mod answer;
pub mod model;
pub mod real;
pub mod run;
mod words;

pub use run::{Mismatch, Tally, story};
