//! Migrations: forward only, one file each, all of them in one transaction.
//!
//! Nodes that start together wait for each other. Must not touch a schema that a later program, or
//! another one, made.

use super::session::Session;
use super::value::values;
use super::{LOCK, SCHEMA};
use crate::postgres::place::Place;
use crate::postgres::trouble::Trouble;
use crate::records::error::OpenError;

/// Every version's step, in order. A step that was released never changes; a new one is added.
const STEPS: [&str; 6] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
];

const TABLES: &str = "SELECT count(*), count(*) FILTER (WHERE tablename = 'migrations')
    FROM pg_catalog.pg_tables WHERE schemaname = $1";

/// Brings the schema up to date, or refuses.
pub(super) fn migrate(session: &mut Session, place: &Place) -> Result<(), OpenError> {
    let failed = |trouble: Trouble| place.failed(&trouble.to_string());
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
    session.begin(&begin).map_err(failed)?;
    let migrated = steps(session, place);
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    session.end(end).map_err(failed)?;
    migrated
}

fn steps(session: &mut Session, place: &Place) -> Result<(), OpenError> {
    let failed = |trouble: Trouble| place.failed(&trouble.to_string());
    let found = version(session, place)?;
    let known = STEPS.len() as i64;
    if found > known {
        return Err(OpenError::Newer { path: place.path(), found, known });
    }
    for (step, number) in STEPS.iter().zip(1_i64..).skip(found.max(0) as usize) {
        session.batch(step).map_err(failed)?;
        let sql = "INSERT INTO catraca.migrations (version) VALUES ($1)";
        session.ask(sql, &values![number]).map_err(failed)?;
    }
    Ok(())
}

/// The version that is there; none yet is zero, and has a schema to be filled.
fn version(session: &mut Session, place: &Place) -> Result<i64, OpenError> {
    let failed = |trouble: Trouble| place.failed(&trouble.to_string());
    let mut number = |sql: &str, column: usize| -> Result<i64, OpenError> {
        let values = if sql.contains("$1") { values![SCHEMA] } else { Vec::new() };
        let rows = session.ask(sql, &values).map_err(failed)?;
        Ok(rows.first().and_then(|row| row.try_get(column).ok()).unwrap_or_default())
    };
    let schemas = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1";
    if number(schemas, 0)? == 0 {
        session.batch("CREATE SCHEMA catraca").map_err(failed)?;
        return Ok(0);
    }
    match (number(TABLES, 0)?, number(TABLES, 1)?) {
        (0, _) => Ok(0),
        (_, 0) => Err(OpenError::Taken { place: place.shown.clone() }),
        _ => number("SELECT coalesce(max(version), 0) FROM catraca.migrations", 0),
    }
}
