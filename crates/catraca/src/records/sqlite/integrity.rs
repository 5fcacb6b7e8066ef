//! Integrity checks of the SQLite file: pages, rows against their indexes, and redundant keys.
//!
//! A changed value that is valid and stored only once cannot be detected; see
//! `docs/guide/records.md`.

use rusqlite::{Connection, Result};

/// The key of a block is also stored with its subject. A block with another key would block no one.
const KEY_MISMATCHES: &str =
    "SELECT printf('block %d differs from its subject in its key', b.subject)
    FROM blocks AS b LEFT JOIN subjects AS s ON s.id = b.subject WHERE s.key IS NOT b.key";

/// All faults that can be detected.
pub(super) fn check_all(connection: &Connection) -> Result<Vec<String>> {
    let mut faults = query_lines(connection, "PRAGMA integrity_check")?;
    // With damaged pages the result of the second query would mean nothing.
    if faults.is_empty() {
        faults = query_lines(connection, KEY_MISMATCHES)?;
    }
    Ok(faults)
}

/// Faults of pages and rows, without comparing indexes.
pub(super) fn check_pages(connection: &Connection) -> Result<Vec<String>> {
    query_lines(connection, "PRAGMA quick_check")
}

fn query_lines(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
