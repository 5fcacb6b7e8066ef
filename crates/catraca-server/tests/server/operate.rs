//! The operators' commands of the binary, run against a real server over loopback.
//!
//! Tests end every process that they start, by its id.

mod backups;
mod blocks;
mod checkout;
mod connection_errors;
mod decisions;
mod events;
mod facts_modes_resets;
mod help_and_completions;
pub mod helpers;
mod keys;
mod lists;
mod locks;
mod reports;
