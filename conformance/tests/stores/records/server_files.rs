//! The files and the write-ahead log of PostgreSQL contain no private value.

use std::fs;
use std::path::Path;

use catraca::records::Options;

use super::privacy::{PLANTED, set_up};

/// covers: B-14, X-26
#[test]
fn no_planted_identifier_is_in_the_servers_files() {
    let (database, _records, app, _) = set_up(Options::default());
    database.rows("CHECKPOINT");
    let id = database.rows("SELECT oid FROM pg_database WHERE datname = current_database()");
    let data = database.server.data();
    let tables = data.join("base").join(&id[0][0]);
    let log = data.join("pg_wal");
    for planted in PLANTED {
        assert!(!contains_bytes(&tables, planted.as_bytes()), "{planted} is in the tables");
        assert!(!contains_bytes(&log, planted.as_bytes()), "{planted} is in the log");
    }
    // The search must be able to find a value that is there.
    let name = app.stored_values("customer", PLANTED[0]).unwrap().swap_remove(0).value;
    assert!(contains_bytes(&tables, name.as_bytes()) && contains_bytes(&log, name.as_bytes()));
}

/// Whether a file below `path` contains these bytes. Other tests create and drop files of the same
/// server, so a file that has disappeared counts as without them.
fn contains_bytes(path: &Path, needle: &[u8]) -> bool {
    if path.is_dir() {
        let Ok(entries) = fs::read_dir(path) else { return false };
        return entries.flatten().any(|entry| contains_bytes(&entry.path(), needle));
    }
    fs::read(path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|at| at == needle))
}
