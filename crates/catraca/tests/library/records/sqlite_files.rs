//! SQLite files: refused starts, backups and restores. A file is never replaced without an error.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use catraca::memory::RestoreOutcome;
use catraca::records::{
    BlockQuery, OpenError, Options, Records, back_up, restore_backup, restore_backup_over,
};
use catraca::{App, ManualClock};

use super::helpers::{START, TestDatabase, app, at, builder, excess_block, write};
use super::test_database::query_column;

fn open_error(database: &TestDatabase) -> OpenError {
    Records::open(&database.url(), Options::default()).expect_err("must not open")
}

/// Closed records with one block.
fn database_with_a_block() -> TestDatabase {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(600))]);
    assert_eq!(records.close(), 0);
    database
}

fn execute(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let database = database_with_a_block();
    execute(&database.path(), "PRAGMA user_version = 99");
    let error = open_error(&database);
    assert!(matches!(error, OpenError::Newer { found: 99, known: 11, .. }), "{error}");
    assert!(error.to_string().contains("catraca.db") && error.to_string().contains("newer"));
    assert_eq!(query_column::<i64>(&database.path(), "SELECT count(*) FROM blocks"), [1]);
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let database = TestDatabase::new();
    execute(&database.path(), "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    let bytes = fs::read(database.path()).unwrap();
    assert!(matches!(open_error(&database), OpenError::Foreign { .. }));
    assert_eq!(fs::read(database.path()).unwrap(), bytes, "not even its journal mode has changed");
    let tables = query_column::<String>(&database.path(), "SELECT name FROM sqlite_schema");
    assert_eq!(tables, ["theirs"]);
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    type Damage = (&'static str, fn(&mut Vec<u8>));
    let damage: [Damage; 6] = [
        ("empty", Vec::clear),
        ("one byte", |bytes| bytes.truncate(1)),
        ("a part of the header", |bytes| bytes.truncate(99)),
        ("another kind of file", |bytes| bytes[..16].copy_from_slice(b"this is no base!")),
        ("a page of noise", |bytes| bytes[8192..12288].fill(0xa5)),
        ("cut off", |bytes| bytes.truncate(20_480)),
    ];
    for (what, damage) in damage {
        let database = database_with_a_block();
        let mut bytes = fs::read(database.path()).unwrap();
        damage(&mut bytes);
        fs::write(database.path(), &bytes).unwrap();
        let error = open_error(&database);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{what}: {error}");
        assert!(error.to_string().contains("backup"), "{what}: {error}");
        assert_eq!(fs::read(database.path()).unwrap(), bytes, "{what}");
        assert!(restore_backup(&database.path(), &database.file("copy.db")).is_err(), "{what}");
    }
}

/// SQLite takes it for an empty log, and overwrites it.
#[test]
fn a_file_in_place_of_the_log_is_refused_and_left_as_it_is() {
    let database = database_with_a_block();
    let log = database.file("catraca.db-wal");
    fs::write(&log, "notes of another program, longer than a header").unwrap();
    let error = open_error(&database);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("catraca.db-wal"), "{error}");
    assert!(fs::read_to_string(&log).unwrap().starts_with("notes of another program"));
    // Not synced before a power failure: nothing in it was acknowledged.
    for unsynced in [&b""[..], b"\x37\x7f", &[0; 4_096]] {
        fs::write(&log, unsynced).unwrap();
        assert_eq!(database.open().close(), 0);
    }
}

/// As after a kill: the newest act is only in the log, which is then removed.
#[test]
fn a_lost_log_is_noticed_by_the_sequence() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(600))]);
    let acknowledged = records.sequence().unwrap();
    let names = ["catraca.db", "catraca.db-wal"];
    let bytes = names.map(|name| fs::read(database.file(name)).unwrap());
    for (kept, is_whole) in [(2, true), (1, false)] {
        let copy = TestDatabase::new();
        for (name, bytes) in names.iter().zip(&bytes).take(kept) {
            fs::write(copy.file(name), bytes).unwrap();
        }
        let found = copy.open().sequence().unwrap();
        assert_eq!(found >= acknowledged, is_whole, "{found} of {acknowledged}");
    }
    // A purge does not lower it.
    assert!(records.purge(at(400 * 86_400)).unwrap().blocks > 0);
    assert!(records.sequence().unwrap() >= acknowledged);
}

/// Regression: the snapshot then contained the number zero, with which no loss is noticed.
#[test]
fn a_snapshot_keeps_the_last_known_sequence_if_it_cannot_be_read() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(600))]);
    let acknowledged = records.sequence().unwrap();
    let catalog = "[policy.login]\nby = ['ip']\nwindow = '1 per 1h'";
    let path = database.file("catraca.snapshot");
    let stored = |path: &Path| {
        let clock = ManualClock::at(START);
        match builder(catalog, &clock).restore(path).unwrap().1 {
            RestoreOutcome::Read { sequence, .. } => sequence,
            RestoreOutcome::Missing => panic!("there is no snapshot"),
        }
    };
    let (app, _) = app(catalog, &records);
    assert_eq!(app.snapshot(&path).unwrap().sequence_error, None);
    assert_eq!(stored(&path), acknowledged);
    let damage = "PRAGMA writable_schema = ON;
        DELETE FROM sqlite_schema WHERE name = 'sqlite_sequence';
        PRAGMA schema_version = 4711;";
    execute(&database.path(), damage);
    let error = app.snapshot(&path).unwrap().sequence_error.expect("it cannot be read");
    assert!(error.contains("sqlite_sequence"), "{error}");
    assert_eq!(stored(&path), acknowledged);
    // A process that has not read it yet has that of its start.
    let engine = builder(catalog, &ManualClock::at(START)).build();
    let app = App::local(engine).records(Arc::clone(&records)).sequence(acknowledged).build();
    assert!(app.snapshot(&path).unwrap().sequence_error.is_some());
    assert_eq!(stored(&path), acknowledged);
}

/// There is no lock file that could be removed.
#[test]
fn only_the_records_themselves_are_locked() {
    let database = database_with_a_block();
    let records = database.open();
    for (path, _) in database.bytes() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(["catraca.db", "catraca.db-wal", "catraca.db-shm"].contains(&&*name), "{name}");
    }
    assert!(matches!(open_error(&database), OpenError::InUse { .. }));
    drop(records);
    assert_eq!(database.open().close(), 0);
}

/// One flipped byte in an otherwise valid row: only a comparison with the index, or with the second
/// copy of the value, finds it.
#[test]
fn a_flipped_byte_in_what_holds_a_block_is_refused_and_never_starts_with_fewer_blocks() {
    let number = "SELECT printf('%016x', until) FROM blocks";
    for (table, what) in [
        ("blocks", number),
        ("blocks_by_end", number),
        ("blocks", "SELECT printf('%016x', since) FROM blocks"),
        ("blocks", "SELECT hex(key) FROM blocks"),
        ("subjects", "SELECT hex(key) FROM subjects"),
        ("sqlite_autoindex_subjects_1", "SELECT hex(key) FROM subjects"),
    ] {
        let database = database_with_a_block();
        let wanted = query_column::<String>(&database.path(), what).remove(0);
        let root = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'");
        let page = usize::try_from(query_column::<i64>(&database.path(), &root)[0]).unwrap() - 1;
        let mut bytes = fs::read(database.path()).unwrap();
        let found = last_byte(&bytes[page * PAGE..][..PAGE], &wanted);
        bytes[page * PAGE + found] ^= 1;
        fs::write(database.path(), &bytes).unwrap();
        let quick = query_column::<String>(&database.path(), "PRAGMA quick_check");
        assert_eq!(quick, ["ok"], "{what} in {table}: quick_check finds it too");
        let error = open_error(&database);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{what} in {table}: {error}");
        assert_eq!(fs::read(database.path()).unwrap(), bytes, "{what} in {table}");
    }
}

const PAGE: usize = 4_096;

/// The offset of the last byte of a value, which SQLite stores without leading zeros.
fn last_byte(page: &[u8], hex: &str) -> usize {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let value: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let start = value.iter().position(|byte| *byte != 0).unwrap();
    let value = &value[start..];
    let found = page.windows(value.len()).position(|window| window == value);
    found.expect("the value is on its page") + value.len() - 1
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_taken_for_records() {
    let database = TestDatabase::new();
    let made = std::process::Command::new("mkfifo").arg(database.path()).status().unwrap();
    assert!(made.success());
    assert!(open_error(&database).to_string().contains("not a regular file"));
}

/// Only the main file is missing: a new one would replay the WAL of the old one.
#[test]
fn a_log_without_its_file_is_refused() {
    let database = TestDatabase::new();
    fs::write(database.file("catraca.db-wal"), "left behind").unwrap();
    let error = open_error(&database);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(!database.path().exists());
}

#[test]
fn a_half_made_first_start_is_made_again() {
    let database = TestDatabase::new();
    fs::write(database.file("catraca.db.new"), "half").unwrap();
    database.open().close();
    assert!(!database.file("catraca.db.new").exists());
    assert_eq!(query_column::<i64>(&database.path(), "PRAGMA user_version"), [11]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let database = database_with_a_block();
    let mode = fs::metadata(database.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn urls_of_nothing_known_say_what_to_write() {
    for url in ["", "sqlite:", "catraca.db", "mysql://x"] {
        let error = Records::open(url, Options::default()).expect_err(url);
        assert!(error.to_string().contains("sqlite:catraca.db"), "{error}");
    }
}

#[test]
fn a_backup_made_while_work_goes_on_can_be_put_back() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(600))]);
    let copy = database.file("backup.db");
    records.backup(&copy).unwrap();
    write(&records, vec![excess_block("login", "198.51.100.8", at(0), at(600))]);
    let again = records.backup(&copy).unwrap_err();
    assert!(again.to_string().contains("exists already"), "{again}");
    assert!(records.verify().unwrap().is_empty());
    records.close();
    let taken = restore_backup(&copy, &database.path()).expect_err("must not overwrite");
    assert!(matches!(taken, OpenError::Exists { .. }), "{taken}");
    let other = TestDatabase::new();
    restore_backup(&copy, &other.path()).unwrap();
    let blocks = other.open().blocks(&BlockQuery::default(), at(1)).unwrap();
    assert_eq!(blocks.rows.len(), 1);
}

/// A backup includes the contents of the WAL, and an old WAL is never read with other records.
#[test]
fn records_in_use_are_backed_up_by_their_file_and_replaced_only_when_free() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(600))]);
    let copy = database.file("backup.db");
    back_up(&database.path(), &copy).unwrap();
    let again = back_up(&database.path(), &copy).expect_err("must not overwrite");
    assert!(matches!(again, OpenError::Exists { .. }), "{again}");
    write(&records, vec![excess_block("login", "198.51.100.8", at(0), at(600))]);
    let busy =
        restore_backup_over(&copy, &database.path()).expect_err("must not replace records in use");
    assert!(matches!(busy, OpenError::InUse { .. }), "{busy}");
    let count =
        |records: &Records| records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len();
    assert_eq!(count(&records), 2);
    // As after a kill: the newest act is only in the WAL.
    let log = fs::read(database.file("catraca.db-wal")).unwrap();
    records.close();
    fs::write(database.file("catraca.db-wal"), log).unwrap();
    let old = restore_backup_over(&copy, &database.path()).unwrap().old.unwrap();
    assert_eq!(old, database.file("catraca.db.old"));
    assert_eq!(count(&database.open()), 1);
    let old = restore_backup_over(&copy, &database.path()).unwrap().old.unwrap();
    assert_eq!(old, database.file("catraca.db.old-2"));
    assert_eq!(restore_backup_over(&copy, &TestDatabase::new().path()).unwrap().old, None);
}

#[test]
fn a_damaged_backup_is_not_put_back() {
    let database = database_with_a_block();
    let copy = database.file("backup.db");
    let mut bytes = fs::read(database.path()).unwrap();
    bytes[8192..12288].fill(0xa5);
    fs::write(&copy, bytes).unwrap();
    let other = TestDatabase::new();
    let error = restore_backup(&copy, &other.path()).expect_err("must not be restored");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(!other.path().exists() && !other.file("catraca.db.new").exists());
}

/// Their fencing tokens and their need of API keys are then lost, so the caller is informed.
#[test]
fn a_restore_says_if_the_replaced_records_cannot_be_read() {
    let database = database_with_a_block();
    let copy = database.file("backup.db");
    fs::copy(database.path(), &copy).unwrap();
    assert_eq!(restore_backup_over(&copy, &database.path()).unwrap().unread, None);
    fs::write(database.path(), "not a database, but longer than a header".repeat(9)).unwrap();
    let unread = restore_backup_over(&copy, &database.path()).unwrap().unread;
    assert!(unread.is_some_and(|why| why.contains("not a database")));
    assert_eq!(database.open().close(), 0);
}

#[test]
fn a_second_name_of_the_records_opens_no_second_door() {
    let database = database_with_a_block();
    let records = database.open();
    let other = TestDatabase::new();
    let file = database.path();
    std::os::unix::fs::symlink(&file, other.path()).unwrap();
    let error = open_error(&other);
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    fs::remove_file(other.path()).unwrap();
    assert_eq!(records.close(), 0);
    fs::hard_link(&file, other.path()).unwrap();
    let error = open_error(&other);
    assert!(error.to_string().contains("second name"), "{error}");
}
