//! Records in PostgreSQL: the suite of the library's tests, which runs there on SQLite, and the
//! failures that only a server has.

#[path = "../../../crates/catraca/tests/library/records/attempts.rs"]
mod attempts;
#[path = "../../../crates/catraca/tests/library/records/changed_kinds.rs"]
mod changed_kinds;
#[path = "../../../crates/catraca/tests/library/records/engine.rs"]
mod engine;
#[path = "../../../crates/catraca/tests/library/records/helpers.rs"]
mod helpers;
#[path = "../../../crates/catraca/tests/library/records/history_and_audit.rs"]
mod history_and_audit;
#[path = "../../../crates/catraca/tests/library/records/levels.rs"]
mod levels;
#[path = "../../../crates/catraca/tests/library/records/namespaces.rs"]
mod namespaces;
mod open_errors;
mod outage;
#[path = "../../../crates/catraca/tests/library/records/policy_reset.rs"]
mod policy_reset;
#[path = "../../../crates/catraca/tests/library/records/privacy.rs"]
mod privacy;
#[path = "../../../crates/catraca/tests/library/records/private_attributes.rs"]
mod private_attributes;
#[path = "../../../crates/catraca/tests/library/records/queries.rs"]
mod queries;
#[path = "../../../crates/catraca/tests/library/records/restart_after_kill.rs"]
mod restart_after_kill;
#[path = "../../../crates/catraca/tests/library/records/scale.rs"]
mod scale;
mod server_files;
mod several_nodes;
#[path = "records/postgres_database.rs"]
mod test_database;
mod tls;
#[path = "../../../crates/catraca/tests/library/records/views.rs"]
mod views;
