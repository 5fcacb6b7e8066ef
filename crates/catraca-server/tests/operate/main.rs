//! The operators' commands of the binary, run against a real server over loopback.
//!
//! Tests end every process that they start, by its id.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod backups;
mod blocks;
mod connection_errors;
mod decisions;
mod events;
mod facts_modes_resets;
mod help_and_completions;
mod helpers;
mod keys;
mod lists;
mod locks;
#[path = "../http/raw_connection.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, which use more of it")]
mod raw_connection;
mod reports;
#[path = "../http/test_server.rs"]
#[allow(dead_code, reason = "shared with the tests of the server, which use more of it")]
mod test_server;
