//! The binary as people and scripts use it: arguments and files in, output and exit code out.
//!
//! Everything runs in a directory of its own and in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod explain;
mod help;
mod lint;
mod test_dir;
mod scenario;
mod simulate;
mod start_errors;
