//! How locks and slots are tested: a slow second opinion, random stories that compare it with the
//! rules, and a checker of what callers saw.
//!
//! Must not share a line with the rules it judges.

pub mod history;
pub mod model;
pub mod story;
