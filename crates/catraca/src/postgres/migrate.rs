//! Migrations: forward only, one file each, all of them in one transaction.
//!
//! Nodes that start together wait for each other. Must not touch a schema that a later program, or
//! another one, made.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::error::PostgresError;
use super::link::Link;
use super::place::Place;
use super::trouble::Trouble;

/// Every version's step, in order. A step that was released never changes; a new one is added.
const STEPS: [&str; 2] = [include_str!("schema/0001.sql"), include_str!("schema/0002.sql")];
/// `CATRACA` and a number: who holds this advisory lock migrates, on whichever node.
const LOCK: i64 = 0x4341_5452_4143_4102;
/// The longest that it may take, other nodes' turns included.
const PATIENCE: Duration = Duration::from_secs(15);

/// Schemas of our name, tables in them, and whether ours are among them.
const FOUND: &str = "SELECT
    (SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'catraca_store'),
    (SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'catraca_store'),
    (SELECT count(*) FROM pg_catalog.pg_tables
     WHERE schemaname = 'catraca_store' AND tablename = 'migrations')";

/// Brings the schema up to date, or refuses.
pub(super) async fn migrate(link: &Link, place: &Place) -> Result<(), PostgresError> {
    let until = Instant::now() + PATIENCE;
    let failed = |trouble: Trouble| PostgresError::of(&place.shown, &trouble);
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 0; \
         SET LOCAL statement_timeout = {}; SELECT pg_advisory_xact_lock({LOCK})",
        PATIENCE.as_millis()
    );
    link.batch(until, &begin).await.map_err(failed)?;
    let migrated = steps(link, place, until).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    link.batch(until, end).await.map_err(failed)?;
    migrated
}

async fn steps(link: &Link, place: &Place, until: Instant) -> Result<(), PostgresError> {
    let failed = |trouble: Trouble| PostgresError::of(&place.shown, &trouble);
    let (found, known) = (version(link, place, until).await?, STEPS.len() as i64);
    if found > known {
        return Err(PostgresError::Newer { place: place.shown.clone(), found, known });
    }
    for (step, number) in STEPS.iter().zip(1_i64..).skip(found.max(0) as usize) {
        link.batch(until, step).await.map_err(failed)?;
        let sql = "INSERT INTO catraca_store.migrations (version) VALUES ($1)";
        link.rows(until, sql, &[(&number, Type::INT8)]).await.map_err(failed)?;
    }
    Ok(())
}

/// The version that is there; none yet is zero, and has a schema to be filled.
async fn version(link: &Link, place: &Place, until: Instant) -> Result<i64, PostgresError> {
    let failed = |trouble: Trouble| PostgresError::of(&place.shown, &trouble);
    let found = link.rows(until, FOUND, &[]).await.map_err(failed)?;
    let count = |column: usize| -> i64 {
        found.first().and_then(|row| row.try_get(column).ok()).unwrap_or_default()
    };
    if count(0) == 0 {
        link.batch(until, "CREATE SCHEMA catraca_store").await.map_err(failed)?;
        return Ok(0);
    }
    match (count(1), count(2)) {
        (0, _) => Ok(0),
        (_, 0) => Err(PostgresError::Taken { place: place.shown.clone() }),
        _ => {
            let sql = "SELECT coalesce(max(version), 0) FROM catraca_store.migrations";
            let rows = link.rows(until, sql, &[]).await.map_err(failed)?;
            Ok(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default())
        }
    }
}
