//! The server's own files and its log of changes hold no private value either.

use std::fs;
use std::path::Path;

use catraca::records::Options;

use crate::privacy::{PLANTED, set_up};

/// covers: B-14, X-26
#[test]
fn no_planted_identifier_is_in_the_servers_files() {
    let (folder, _records, engine, _) = set_up(Options::default());
    folder.rows("CHECKPOINT");
    let id = folder.rows("SELECT oid FROM pg_database WHERE datname = current_database()");
    let data = folder.server.data();
    let tables = data.join("base").join(&id[0][0]);
    let log = data.join("pg_wal");
    for planted in PLANTED {
        assert!(!holds(&tables, planted.as_bytes()), "{planted} is in the tables");
        assert!(!holds(&log, planted.as_bytes()), "{planted} is in the log");
    }
    // The search itself must be able to find something.
    let name = engine.stored_names("customer", PLANTED[0]).unwrap().swap_remove(0).value;
    assert!(holds(&tables, name.as_bytes()) && holds(&log, name.as_bytes()));
}

/// Other tests make and drop files of the same server meanwhile; one that is gone holds nothing.
fn holds(place: &Path, needle: &[u8]) -> bool {
    if place.is_dir() {
        let Ok(entries) = fs::read_dir(place) else { return false };
        return entries.flatten().any(|entry| holds(&entry.path(), needle));
    }
    fs::read(place).is_ok_and(|bytes| bytes.windows(needle.len()).any(|at| at == needle))
}
