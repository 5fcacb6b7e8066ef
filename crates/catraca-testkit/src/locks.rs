//! Test support for locks and slots: a simple model, random traces that compare it with a lock
//! store, and a checker of the history that callers observed.
//!
//! The model shares no code with the rules that it checks.

pub mod history;
pub mod model;
pub mod trace;
