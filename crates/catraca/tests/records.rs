//! Records in SQLite: every act kept with its history, found again, forgotten on time, and never
//! in clear. `records_postgres.rs` runs the same suite on the other dialect.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "records/acts.rs"]
mod acts;
#[path = "records/anew.rs"]
mod anew;
#[path = "records/carried.rs"]
mod carried;
#[path = "records/engine.rs"]
mod engine;
#[path = "records/files.rs"]
mod files;
#[path = "records/helpers.rs"]
mod helpers;
#[path = "records/on_sqlite.rs"]
mod place;
#[path = "records/privacy.rs"]
mod privacy;
#[path = "records/queries.rs"]
mod queries;
#[path = "records/scale.rs"]
mod scale;
#[path = "records/views.rs"]
mod views;
#[path = "records/whole.rs"]
mod whole;
