//! Files: what is refused at a start, backups and the way back. Nothing is ever recreated in
//! silence.

use std::fs;
use std::path::Path;

use catraca::records::{
    BlockQuery, OpenError, Options, Records, back_up, restore_backup, restore_backup_over,
};

use crate::helpers::{Folder, at, excess, write};
use crate::place::ask;

fn refused(folder: &Folder) -> OpenError {
    Records::open(&folder.url(), Options::default()).expect_err("must not open")
}

/// Records with one block, closed.
fn written() -> Folder {
    let folder = Folder::new();
    let records = folder.open();
    write(&records, vec![excess("login", "198.51.100.7", at(0), at(600))]);
    assert_eq!(records.close(), 0);
    folder
}

fn change(database: &Path, sql: &str) {
    rusqlite::Connection::open(database).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let folder = written();
    change(&folder.database(), "PRAGMA user_version = 99");
    let error = refused(&folder);
    assert!(matches!(error, OpenError::Newer { found: 99, known: 7, .. }), "{error}");
    assert!(error.to_string().contains("catraca.db") && error.to_string().contains("newer"));
    assert_eq!(ask::<i64>(&folder.database(), "SELECT count(*) FROM blocks"), [1]);
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = Folder::new();
    change(&folder.database(), "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    assert!(matches!(refused(&folder), OpenError::Foreign { .. }));
    let tables = ask::<String>(&folder.database(), "SELECT name FROM sqlite_schema");
    assert_eq!(tables, ["theirs"]);
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    type Spoil = (&'static str, fn(&mut Vec<u8>));
    let spoil: [Spoil; 4] = [
        ("empty", Vec::clear),
        ("another kind of file", |bytes| bytes[..16].copy_from_slice(b"this is no base!")),
        ("a page of noise", |bytes| bytes[8192..12288].fill(0xa5)),
        ("cut off", |bytes| bytes.truncate(20_480)),
    ];
    for (what, spoil) in spoil {
        let folder = written();
        let mut bytes = fs::read(folder.database()).unwrap();
        spoil(&mut bytes);
        fs::write(folder.database(), &bytes).unwrap();
        let error = refused(&folder);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{what}: {error}");
        assert!(error.to_string().contains("backup"), "{what}: {error}");
        assert_eq!(fs::read(folder.database()).unwrap(), bytes, "{what}");
    }
}

/// A byte that is wrong in a row which is otherwise sound: only its index, or the other place where
/// the same is kept, can tell.
#[test]
fn a_flipped_byte_in_what_holds_a_block_is_refused_and_never_starts_with_fewer_blocks() {
    let number = "SELECT printf('%016x', until) FROM blocks";
    for (place, what) in [
        ("blocks", number),
        ("blocks_by_end", number),
        ("blocks", "SELECT printf('%016x', since) FROM blocks"),
        ("blocks", "SELECT hex(key) FROM blocks"),
        ("subjects", "SELECT hex(key) FROM subjects"),
        ("sqlite_autoindex_subjects_1", "SELECT hex(key) FROM subjects"),
    ] {
        let folder = written();
        let wanted = ask::<String>(&folder.database(), what).remove(0);
        let root = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{place}'");
        let page = usize::try_from(ask::<i64>(&folder.database(), &root)[0]).unwrap() - 1;
        let mut bytes = fs::read(folder.database()).unwrap();
        let found = last_byte(&bytes[page * PAGE..][..PAGE], &wanted);
        bytes[page * PAGE + found] ^= 1;
        fs::write(folder.database(), &bytes).unwrap();
        let quick = ask::<String>(&folder.database(), "PRAGMA quick_check");
        assert_eq!(quick, ["ok"], "{what} in {place}: a quicker look would do");
        let error = refused(&folder);
        assert!(matches!(error, OpenError::Corrupt { .. }), "{what} in {place}: {error}");
        assert_eq!(fs::read(folder.database()).unwrap(), bytes, "{what} in {place}");
    }
}

const PAGE: usize = 4_096;

/// Where the last byte of a value is, which is kept without leading zeros.
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
    let folder = Folder::new();
    let made = std::process::Command::new("mkfifo").arg(folder.database()).status().unwrap();
    assert!(made.success());
    assert!(refused(&folder).to_string().contains("not a regular file"));
}

/// Only the main file was moved away: a new one would take the old log for its own.
#[test]
fn a_log_without_its_file_is_refused() {
    let folder = Folder::new();
    fs::write(folder.file("catraca.db-wal"), "left behind").unwrap();
    let error = refused(&folder);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(!folder.database().exists());
}

#[test]
fn a_half_made_first_start_is_made_again() {
    let folder = Folder::new();
    fs::write(folder.file("catraca.db.new"), "half").unwrap();
    folder.open().close();
    assert!(!folder.file("catraca.db.new").exists());
    assert_eq!(ask::<i64>(&folder.database(), "PRAGMA user_version"), [7]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = written();
    let mode = fs::metadata(folder.database()).unwrap().permissions().mode();
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
    let folder = Folder::new();
    let records = folder.open();
    write(&records, vec![excess("login", "198.51.100.7", at(0), at(600))]);
    let copy = folder.file("backup.db");
    records.backup(&copy).unwrap();
    write(&records, vec![excess("login", "198.51.100.8", at(0), at(600))]);
    let again = records.backup(&copy).unwrap_err();
    assert!(again.to_string().contains("exists already"), "{again}");
    assert!(records.verify().unwrap().is_empty());
    records.close();
    let taken = restore_backup(&copy, &folder.database()).expect_err("must not overwrite");
    assert!(matches!(taken, OpenError::Exists { .. }), "{taken}");
    let other = Folder::new();
    restore_backup(&copy, &other.database()).unwrap();
    let blocks = other.open().blocks(&BlockQuery::default(), at(1)).unwrap();
    assert_eq!(blocks.rows.len(), 1);
}

/// What is in the log alone is part of the copy, and an old log is never read with other records.
#[test]
fn records_in_use_are_backed_up_by_their_file_and_replaced_only_when_free() {
    let folder = Folder::new();
    let records = folder.open();
    write(&records, vec![excess("login", "198.51.100.7", at(0), at(600))]);
    let copy = folder.file("backup.db");
    back_up(&folder.database(), &copy).unwrap();
    let again = back_up(&folder.database(), &copy).expect_err("must not overwrite");
    assert!(matches!(again, OpenError::Exists { .. }), "{again}");
    write(&records, vec![excess("login", "198.51.100.8", at(0), at(600))]);
    let busy = restore_backup_over(&copy, &folder.database()).expect_err("must not pull the rug");
    assert!(matches!(busy, OpenError::InUse { .. }), "{busy}");
    let count =
        |records: &Records| records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len();
    assert_eq!(count(&records), 2);
    // As after a kill: the newest act is in the log alone.
    let log = fs::read(folder.file("catraca.db-wal")).unwrap();
    records.close();
    fs::write(folder.file("catraca.db-wal"), log).unwrap();
    let old = restore_backup_over(&copy, &folder.database()).unwrap().old.unwrap();
    assert_eq!(old, folder.file("catraca.db.old"));
    assert_eq!(count(&folder.open()), 1);
    let old = restore_backup_over(&copy, &folder.database()).unwrap().old.unwrap();
    assert_eq!(old, folder.file("catraca.db.old-2"));
    assert_eq!(restore_backup_over(&copy, &Folder::new().database()).unwrap().old, None);
}

#[test]
fn a_damaged_backup_is_not_put_back() {
    let folder = written();
    let copy = folder.file("backup.db");
    let mut bytes = fs::read(folder.database()).unwrap();
    bytes[8192..12288].fill(0xa5);
    fs::write(&copy, bytes).unwrap();
    let other = Folder::new();
    let error = restore_backup(&copy, &other.database()).expect_err("must not be put back");
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(!other.database().exists() && !other.file("catraca.db.new").exists());
}

#[test]
fn a_second_name_of_the_records_opens_no_second_door() {
    let folder = written();
    let records = folder.open();
    let other = Folder::new();
    let file = folder.database();
    std::os::unix::fs::symlink(&file, other.database()).unwrap();
    let error = refused(&other);
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    fs::remove_file(other.database()).unwrap();
    assert_eq!(records.close(), 0);
    fs::hard_link(&file, other.database()).unwrap();
    let error = refused(&other);
    assert!(error.to_string().contains("second name"), "{error}");
}
