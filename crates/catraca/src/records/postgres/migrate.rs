//! Schema migrations: forward only, one file each, all in one transaction.
//!
//! Nodes that start together wait for each other, by the advisory lock. A schema of a newer version
//! of this program or of another program is refused unchanged.

use super::session::Session;
use super::{SCHEMA, WRITE_LOCK};
use crate::postgres::database_url::DatabaseUrl;
use crate::postgres::failure::PostgresFailure;
use crate::records::error::OpenError;
use crate::records::sql::value::values;

/// The migrations in order. A released one never changes; new ones are appended.
const STEPS: [&str; 10] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
    include_str!("schema/0009.sql"),
    include_str!("schema/0010.sql"),
];

const TABLES: &str = "SELECT count(*), count(*) FILTER (WHERE tablename = 'migrations')
    FROM pg_catalog.pg_tables WHERE schemaname = $1";

/// Migrates the schema to the newest version.
pub(super) fn migrate(session: &mut Session, url: &DatabaseUrl) -> Result<(), OpenError> {
    let failed = |failure: PostgresFailure| url.open_failed(&failure.to_string());
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK})");
    session.begin(&begin).map_err(failed)?;
    let migrated = apply_steps(session, url);
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    session.end(end).map_err(failed)?;
    migrated
}

fn apply_steps(session: &mut Session, url: &DatabaseUrl) -> Result<(), OpenError> {
    let failed = |failure: PostgresFailure| url.open_failed(&failure.to_string());
    let found = version(session, url)?;
    let known = STEPS.len() as i64;
    if found > known {
        return Err(OpenError::Newer { path: url.redacted_path(), found, known });
    }
    for (step, number) in STEPS.iter().zip(1_i64..).skip(found.max(0) as usize) {
        session.execute_batch(step).map_err(failed)?;
        let sql = "INSERT INTO catraca.migrations (version) VALUES ($1)";
        session.query(sql, &values![number]).map_err(failed)?;
    }
    Ok(())
}

/// The present version. Creates the schema if it does not exist; an empty one has version zero.
fn version(session: &mut Session, url: &DatabaseUrl) -> Result<i64, OpenError> {
    let failed = |failure: PostgresFailure| url.open_failed(&failure.to_string());
    let mut number = |sql: &str, column: usize| -> Result<i64, OpenError> {
        let schema = values![SCHEMA];
        let values = if sql.contains("$1") { &schema[..] } else { &[] };
        let rows = session.query(sql, values).map_err(failed)?;
        // Each query has one row. An unreadable number must not count as an empty schema.
        let number = rows.first().map(|row| row.try_get(column));
        let number = number.ok_or_else(|| url.open_failed("the query of the schema has no row"))?;
        number.map_err(|error| url.open_failed(&error.to_string()))
    };
    let schemas = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1";
    if number(schemas, 0)? == 0 {
        session.execute_batch("CREATE SCHEMA catraca").map_err(failed)?;
        return Ok(0);
    }
    match (number(TABLES, 0)?, number(TABLES, 1)?) {
        (0, _) => Ok(0),
        (_, 0) => Err(OpenError::Taken { place: url.redacted.clone() }),
        _ => number("SELECT coalesce(max(version), 0) FROM catraca.migrations", 0),
    }
}
