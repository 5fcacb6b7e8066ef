//! The server over HTTP: the real binary on a free port of the loopback interface.
//!
//! Tests end every process that they start, by its id.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod admin;
mod api;
mod auth;
mod authorize;
mod booking;
mod bounds;
mod collector;
mod connections;
mod dict;
mod disk_failures;
mod endpoint_matrix;
mod json_calls;
mod keys;
mod large_settles;
mod locks;
mod lost_keys;
mod memory_full;
mod nul_characters;
mod observe;
mod persistence;
mod postgres_records;
#[path = "../../../catraca/tests/records/server.rs"]
#[allow(dead_code, reason = "the tests of the library use more of it")]
mod postgres_server;
mod presets;
mod private_values;
mod quick_start;
mod ratelimit_headers;
mod raw_connection;
mod reload;
mod request_errors;
mod secret_rotation;
mod shared_store;
mod shutdown;
mod test_server;
mod timeouts;
mod tls;
mod traces;
mod xml;
