//! Records in PostgreSQL: the suite of `records.rs` on a real server, which the tests start and
//! end, and what only a server can do to them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "records/acts.rs"]
mod acts;
#[path = "records/anew.rs"]
mod anew;
#[path = "records/at_rest.rs"]
mod at_rest;
#[path = "records/encrypted.rs"]
mod encrypted;
#[path = "records/engine.rs"]
mod engine;
#[path = "records/helpers.rs"]
mod helpers;
#[path = "records/nodes.rs"]
mod nodes;
#[path = "records/outage.rs"]
mod outage;
#[path = "records/on_postgres.rs"]
mod place;
#[path = "records/privacy.rs"]
mod privacy;
#[path = "records/queries.rs"]
mod queries;
#[path = "records/refused.rs"]
mod refused;
#[path = "records/scale.rs"]
mod scale;
#[path = "records/server.rs"]
mod server;
#[path = "records/views.rs"]
mod views;
#[path = "records/whole.rs"]
mod whole;
