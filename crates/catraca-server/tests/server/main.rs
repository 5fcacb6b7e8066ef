//! The program and its server, as people and other programs use them.
//!
//! One executable, because each of them would link the server again.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod cli;
mod http;
mod keys;
mod line_protocol;
mod operate;
mod proxy;
mod raw_connection;
mod test_server;
mod time_bound;
