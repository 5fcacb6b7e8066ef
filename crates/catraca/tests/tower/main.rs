//! The tower layer from outside, around services that are functions.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod app;
mod attributes;
mod corpora;
mod decisions;
mod failures;
mod header_cases;
mod helpers;
mod log_lines;
mod outcomes;
mod routes;
mod settles;
mod waiting_limiter;
