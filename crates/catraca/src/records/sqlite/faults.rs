//! Damage that can be seen: pages, rows against their indexes, and what is kept in two places.
//!
//! A value that is kept once and is still a value of its kind cannot be told from the right one;
//! `docs/guide/records.md` says so. Must not change anything.

use rusqlite::{Connection, Result};

/// A block's key is kept with its subject too: one that differs would block nobody.
const STRAYED: &str = "SELECT printf('block %d has not the key of its subject', b.subject)
    FROM blocks AS b LEFT JOIN subjects AS s ON s.id = b.subject WHERE s.key IS NOT b.key";

/// Everything that can be seen to be wrong.
pub(super) fn all(connection: &Connection) -> Result<Vec<String>> {
    let mut found = said(connection, "PRAGMA integrity_check")?;
    // On damaged pages no other question has an answer.
    if found.is_empty() {
        found = said(connection, STRAYED)?;
    }
    Ok(found)
}

/// What is wrong with pages and rows, each on its own.
pub(super) fn of_pages(connection: &Connection) -> Result<Vec<String>> {
    said(connection, "PRAGMA quick_check")
}

fn said(connection: &Connection, question: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(question)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
