//! The reader of the catalog against texts: valid ones, every kind of invalid one, and broken
//! bytes.
//!
//! Each file of `fixtures/catalog/codes` is named after the code that it must give; its diagnostics
//! are in the `.expected` file beside it. `CATRACA_BLESS=1` writes those files again, for review.

// A panic fails the test, and fixtures are files.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "catalog/built.rs"]
mod built;
#[path = "catalog/built_examples.rs"]
mod built_examples;
#[path = "catalog/codes.rs"]
mod codes;
#[path = "catalog/helpers.rs"]
mod helpers;
#[path = "catalog/lists.rs"]
mod lists;
#[path = "catalog/malformed_input.rs"]
mod malformed_input;
#[path = "catalog/positions.rs"]
mod positions;
#[path = "catalog/ranges.rs"]
mod ranges;
#[path = "catalog/refills.rs"]
mod refills;
#[path = "catalog/valid.rs"]
mod valid;
#[path = "catalog/variables.rs"]
mod variables;
