//! Records in PostgreSQL: the suite of `records.rs` on a real server that the tests start and stop,
//! and the failures that only a server has.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "records/engine.rs"]
mod engine;
#[path = "records/helpers.rs"]
mod helpers;
#[path = "records/history_and_audit.rs"]
mod history_and_audit;
#[path = "records/levels.rs"]
mod levels;
#[path = "records/open_errors.rs"]
mod open_errors;
#[path = "records/outage.rs"]
mod outage;
#[path = "records/policy_reset.rs"]
mod policy_reset;
#[path = "records/privacy.rs"]
mod privacy;
#[path = "records/queries.rs"]
mod queries;
#[path = "records/restart_after_kill.rs"]
mod restart_after_kill;
#[path = "records/scale.rs"]
mod scale;
#[path = "records/server.rs"]
mod server;
#[path = "records/server_files.rs"]
mod server_files;
#[path = "records/several_nodes.rs"]
mod several_nodes;
#[path = "records/postgres_database.rs"]
mod test_database;
#[path = "records/tls.rs"]
mod tls;
#[path = "records/views.rs"]
mod views;
