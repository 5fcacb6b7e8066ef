//! Records in SQLite: history, audit, queries, retention and privacy. `records_postgres.rs` runs
//! the same suite on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "records/engine.rs"]
mod engine;
#[path = "records/helpers.rs"]
mod helpers;
#[path = "records/history_and_audit.rs"]
mod history_and_audit;
#[path = "records/levels.rs"]
mod levels;
#[path = "records/policy_reset.rs"]
mod policy_reset;
#[path = "records/privacy.rs"]
mod privacy;
#[path = "records/queries.rs"]
mod queries;
#[path = "records/restart_after_kill.rs"]
mod restart_after_kill;
#[path = "records/restored_locks.rs"]
mod restored_locks;
#[path = "records/scale.rs"]
mod scale;
#[path = "records/sqlite_files.rs"]
mod sqlite_files;
#[path = "records/sqlite_database.rs"]
mod test_database;
#[path = "records/views.rs"]
mod views;
