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
mod json_calls;
mod collector;
mod connections;
mod dict;
mod disk_failures;
mod ratelimit_headers;
mod quick_start;
mod memory_full;
mod persistence;
mod keys;
mod locks;
mod lost_keys;
mod endpoint_matrix;
mod observe;
mod private_values;
mod postgres_records;
mod presets;
mod request_errors;
mod reload;
#[path = "../../src/http/auth/roles.rs"]
#[allow(dead_code, reason = "the server's own table, of which tests use a part")]
mod roles;
mod secret_rotation;
mod test_server;
#[path = "../../../catraca/tests/records/server.rs"]
#[allow(dead_code, reason = "the tests of the library use more of it")]
mod postgres_server;
mod large_settles;
mod shared_store;
mod timeouts;
mod shutdown;
mod raw_connection;
mod tls;
mod traces;
mod nul_characters;
mod xml;
