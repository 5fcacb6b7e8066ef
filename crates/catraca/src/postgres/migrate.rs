//! Schema migrations: forward only, one SQL file each, all of them in one transaction.
//!
//! Nodes that start at the same time wait for each other. A schema of a newer version, or of
//! another program, is refused.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::PostgresConnection;
use super::database_url::DatabaseUrl;
use super::failure::PostgresFailure;
use super::open_error::PostgresError;

/// One migration per schema version. A migration that was released never changes; changes need a
/// new one.
const STEPS: [&str; 3] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
];
/// The advisory lock under which a node migrates: `CATRACA` in ASCII and a number.
const LOCK: i64 = 0x4341_5452_4143_4102;
/// The deadline of the migration, including the time that other nodes need for theirs.
const DEADLINE: Duration = Duration::from_secs(15);

/// Three counts: schemas named `catraca_store`, tables in it, tables named `migrations` in it.
const EXISTING: &str = "SELECT
    (SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'catraca_store'),
    (SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'catraca_store'),
    (SELECT count(*) FROM pg_catalog.pg_tables
     WHERE schemaname = 'catraca_store' AND tablename = 'migrations')";

/// Migrates the schema to the newest version.
pub(super) async fn migrate(
    connection: &PostgresConnection,
    url: &DatabaseUrl,
) -> Result<(), PostgresError> {
    let until = Instant::now() + DEADLINE;
    let failed = |failure: PostgresFailure| PostgresError::of(&url.redacted, &failure);
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 0; \
         SET LOCAL statement_timeout = {}; SELECT pg_advisory_xact_lock({LOCK})",
        DEADLINE.as_millis()
    );
    connection.batch(until, &begin).await.map_err(failed)?;
    let migrated = run_steps(connection, url, until).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.batch(until, end).await.map_err(failed)?;
    migrated
}

/// Runs the migrations that are missing.
async fn run_steps(
    connection: &PostgresConnection,
    url: &DatabaseUrl,
    until: Instant,
) -> Result<(), PostgresError> {
    let failed = |failure: PostgresFailure| PostgresError::of(&url.redacted, &failure);
    let found = schema_version(connection, url, until).await?;
    let known = STEPS.len() as i64;
    if found > known {
        return Err(PostgresError::Newer { database: url.redacted.clone(), found, known });
    }
    for (step, number) in STEPS.iter().zip(1_i64..).skip(found.max(0) as usize) {
        connection.batch(until, step).await.map_err(failed)?;
        let sql = "INSERT INTO catraca_store.migrations (version) VALUES ($1)";
        connection.rows(until, sql, &[(&number, Type::INT8)]).await.map_err(failed)?;
    }
    Ok(())
}

/// The present version of the schema. Creates an empty schema, version 0, if there is none.
async fn schema_version(
    connection: &PostgresConnection,
    url: &DatabaseUrl,
    until: Instant,
) -> Result<i64, PostgresError> {
    let failed = |failure: PostgresFailure| PostgresError::of(&url.redacted, &failure);
    let found = connection.rows(until, EXISTING, &[]).await.map_err(failed)?;
    let count = |column: usize| read_number(&found, column).map_err(failed);
    if count(0)? == 0 {
        connection.batch(until, "CREATE SCHEMA catraca_store").await.map_err(failed)?;
        return Ok(0);
    }
    match (count(1)?, count(2)?) {
        // An empty schema: it is used.
        (0, _) => Ok(0),
        // Tables, but none of ours.
        (_, 0) => Err(PostgresError::Taken { database: url.redacted.clone() }),
        _ => {
            let sql = "SELECT coalesce(max(version), 0) FROM catraca_store.migrations";
            let rows = connection.rows(until, sql, &[]).await.map_err(failed)?;
            read_number(&rows, 0).map_err(failed)
        }
    }
}

/// A number of the only row. A value that cannot be read must not look like zero: the schema would
/// be made again.
fn read_number(rows: &[Row], column: usize) -> Result<i64, PostgresFailure> {
    rows.first().map_or(Ok(0), |row| row.try_get(column).map_err(PostgresFailure::Server))
}
