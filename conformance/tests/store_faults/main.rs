//! Faults of the store under three whole servers with load: `cargo xtask faults [NAME]`.
//!
//! Each test is a case: a topology of the store, a fault, and the bounds of what callers may
//! notice. The servers are processes of the built binary, whose path is in
//! `CATRACA_FAULTS_SERVER`; without it, each case is compared with its row of the document instead.
//! Each case prints a row, appends it
//! to the file `CATRACA_FAULTS_REPORT` as a line of JSON, and fails if it exceeds a bound. With
//! `CATRACA_FAULTS_GENEROUS`, bounds of time are those of a slow machine.
//!
//! Only the HTTP API of the servers is used. All servers listen on loopback and are ended by their
//! ids.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod act_load;
mod acts;
mod bounds;
mod cases;
mod catalog;
mod figures;
mod history;
mod http_client;
mod load;
mod lock_history;
mod lock_load;
mod measures;
mod node;
mod report;
mod rows;
mod run;
mod topology;
