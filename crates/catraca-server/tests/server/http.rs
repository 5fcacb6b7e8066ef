//! The server over HTTP: the real binary on a free port of the loopback interface.
//!
//! Tests end every process that they start, by its id.

mod admin;
mod api;
mod auth;
mod authorize;
mod authorize_parts;
mod background_tasks;
mod booking;
mod bounds;
mod callers;
mod client;
mod collector;
mod connections;
mod dict;
mod disk_failures;
mod endpoint_matrix;
mod hostile_tenant;
mod json_calls;
mod key_attempts;
mod large_settles;
mod locks;
mod log_lines;
mod lost_keys;
mod lost_records;
mod memory_full;
mod node_scope;
mod nul_characters;
mod observe;
mod orphans;
mod persistence;
mod postgres_records;
mod presets;
mod private_values;
mod quick_start;
mod ratelimit_headers;
mod reload;
mod request_errors;
mod secret_rotation;
mod shared_problems;
mod shared_store;
mod shutdown;
mod timeouts;
pub mod tls;
mod traces;
mod xml;
