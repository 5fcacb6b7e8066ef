//! The handlers of the HTTP API: one file per call or small group of calls.
//!
//! A handler parses a request, calls one method of the application, and renders the answer.

pub mod admin;
pub mod authorize;
pub mod check;
pub mod credit_and_buckets;
pub mod docs;
pub mod events;
pub mod locks;
pub mod ready;
pub mod reconcile;
pub mod selftest;
pub mod settle;
