//! Records in SQLite: history, audit, queries, retention and privacy. `conformance` runs
//! the same suite on PostgreSQL.

mod attempts;
mod changed_kinds;
mod engine;
mod helpers;
mod history_and_audit;
mod levels;
mod lost_file;
mod migration;
mod namespaces;
mod policy_reset;
mod privacy;
mod private_attributes;
mod queries;
mod restart_after_kill;
mod restored_locks;
mod scale;
mod sqlite_files;
#[path = "records/sqlite_database.rs"]
mod test_database;
mod views;
