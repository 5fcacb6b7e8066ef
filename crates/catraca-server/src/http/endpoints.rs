//! The calls of the HTTP API: one file per call or small group of calls.
//!
//! `request` reads a request of the admin and lock APIs; the calls of the hot path read their own.

pub mod admin;
pub mod authorize;
pub mod check;
pub mod credit_and_buckets;
pub mod docs;
pub mod events;
pub mod locks;
pub mod ready;
pub mod request;
pub mod selftest;
pub mod settle;
