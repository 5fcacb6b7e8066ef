//! The operators' commands of the binary, run against a real server over loopback.
//!
//! Tests end every process that they start, by its id.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod decisions;
mod blocks;
mod helpers;
mod events;
mod connection_errors;
mod backups;
mod keys;
mod lists;
mod locks;
mod reports;
#[path = "../http/test_server.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, which use more of it")]
mod test_server;
mod help_and_completions;
mod facts_modes_resets;
#[path = "../http/raw_connection.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, which use more of it")]
mod raw_connection;
