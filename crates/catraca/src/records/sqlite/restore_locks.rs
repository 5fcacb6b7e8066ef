//! Locks when a backup is restored: fencing tokens continue above all granted ones, and leases that
//! the backup does not contain are waited for.
//!
//! The replaced records are only read, and a lease that ended according to them is not brought
//! back.

use std::path::Path;

use catraca_core::time::{Span, Time};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};

use super::file::flags;
use crate::clock::{Clock, SystemClock};

/// How far ahead of the clock fences may be after a crash; see `AHEAD` in `locks/persistence.rs`.
const AHEAD: Span = Span::from_secs(600);

/// Prepares a copy of a backup to replace the records, if there are any. Returns how long the next
/// start grants no locks, and why the replaced records could not be read, if they could not.
pub(super) fn prepare_copy(
    copy: &Path,
    replaced: Option<&Path>,
) -> rusqlite::Result<(Span, Option<String>)> {
    let mut connection = Connection::open_with_flags(copy, flags())?;
    // The copy is moved as one file. Closing must not checkpoint the attached records: they stay as
    // they are, with their write-ahead log.
    connection.pragma_update(Some("main"), "journal_mode", "DELETE")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // They may be damaged, which is a reason to restore a backup. Then only the backup's data
    // counts.
    let merged = replaced.map(|replaced| match replaced.to_str() {
        Some(replaced) => merge(&mut connection, replaced).map_err(|error| error.to_string()),
        None => Err("their path is not UTF-8".to_owned()),
    });
    let wait = require_wait(&connection, SystemClock::new().now())?;
    Ok((wait, merged.and_then(Result::err)))
}

/// Takes the highest fences and versions of both, and removes leases that have ended since the
/// backup.
fn merge(connection: &mut Connection, replaced: &str) -> rusqlite::Result<()> {
    connection.execute("ATTACH DATABASE ?1 AS replaced", [replaced])?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(
        "INSERT INTO main.fences (namespace, ceiling, longest, remaining)
             SELECT namespace, ceiling, max(longest, coalesce(remaining, 0)), NULL
             FROM replaced.fences WHERE true
         ON CONFLICT (namespace) DO UPDATE SET
             ceiling = max(ceiling, excluded.ceiling), longest = max(longest, excluded.longest);
         UPDATE main.fences SET longest = max(longest, coalesce((SELECT max(ttl)
             FROM replaced.leases AS r
             WHERE r.namespace = fences.namespace AND r.state = 'held'), 0));
         DELETE FROM main.leases WHERE state = 'held' AND NOT EXISTS (SELECT 1
             FROM replaced.leases AS r WHERE r.namespace = leases.namespace
             AND r.lease = leases.lease AND r.state = 'held');
         INSERT INTO main.versions (namespace, name, version, until)
             SELECT namespace, name, version, until FROM replaced.versions WHERE true
         ON CONFLICT (namespace, name) DO UPDATE SET
             version = max(version, excluded.version), until = max(until, excluded.until);",
    )?;
    transaction.commit()?;
    merge_auth(connection)
}

/// If either of both required API keys, they stay required. Older schemas have no table `auth`.
fn merge_auth(connection: &Connection) -> rusqlite::Result<()> {
    let tables = "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'auth')
                  AND EXISTS (SELECT 1 FROM replaced.sqlite_schema WHERE name = 'auth')";
    if connection.query_row(tables, [], |row| row.get(0))? {
        connection.execute(
            "INSERT INTO main.auth (one, keys_required, at)
                 SELECT one, keys_required, at FROM replaced.auth WHERE keys_required
             ON CONFLICT (one) DO UPDATE SET keys_required = 1",
            [],
        )?;
    }
    Ok(())
}

/// Makes the next start wait as after a crash, for the longest lease that may still be valid.
fn require_wait(connection: &Connection, now: Time) -> rusqlite::Result<Span> {
    connection.execute(
        "UPDATE main.fences SET ceiling = max(ceiling, ?1), remaining = NULL,
             longest = max(longest, coalesce(remaining, 0), coalesce((SELECT max(ttl)
             FROM main.leases AS l
             WHERE l.namespace = fences.namespace AND l.state = 'held'), 0))",
        params![now.after(AHEAD).micros()],
    )?;
    let longest = "SELECT coalesce(max(longest), 0) FROM main.fences";
    connection.query_row(longest, [], |row| row.get(0)).map(Span::from_micros)
}
