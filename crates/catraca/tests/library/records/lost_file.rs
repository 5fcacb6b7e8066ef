//! A records file that is deleted, moved or replaced while it is open: nothing is acknowledged as
//! durable that the next start would not find, and nothing that was written is lost at a stop.

use std::fs;

use catraca::records::{
    Ack, BlockQuery, Options, Receipt, Records, restore_backup, restore_backup_over,
};

use super::helpers::{TestDatabase, at, excess_block, write};

/// Records another block, under an address of its own.
fn record_block(records: &Records, number: u8) -> Receipt {
    let address = format!("198.51.100.{number}");
    records.record(vec![excess_block("login", &address, at(0), at(600))])
}

fn count(records: &Records) -> usize {
    records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len()
}

/// Why a receipt is not durable.
fn refusal(receipt: Receipt) -> String {
    let Ack::NotYet(why) = receipt.wait() else { panic!("acknowledged as durable") };
    why.to_string()
}

#[test]
fn nothing_is_durable_after_the_file_was_deleted() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.1", at(0), at(600))]);
    assert_eq!(records.health().file_fault, None);
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(database.file(&format!("catraca.db{ending}"))).unwrap();
    }
    let why = refusal(record_block(&records, 2));
    assert!(why.contains("catraca.db was deleted or moved"), "{why}");
    assert!(why.contains("catraca restore --force"), "{why}");
    let health = records.health();
    assert_eq!((health.file_fault.as_deref(), health.down), (Some(&*why), None));
    refusal(record_block(&records, 3));
    assert_eq!((records.health().refused, records.health().failures), (2, 1));
    // The server still reads and writes what it has open, and saves it at its stop.
    assert_eq!(count(&records), 3);
    assert_eq!(records.stop(), 0);
    let copy = records.rescue().unwrap().unwrap();
    assert_eq!(copy, database.file("catraca.db.rescued"));
    assert_eq!(records.rescue().unwrap().unwrap(), database.file("catraca.db.rescued-2"));
    drop(records);
    restore_backup(&copy, &database.path()).unwrap();
    assert_eq!(count(&database.open()), 3);
}

#[test]
fn a_file_that_is_moved_back_is_durable_again_and_has_everything() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.1", at(0), at(600))]);
    let elsewhere = database.file("elsewhere.db");
    fs::rename(database.path(), &elsewhere).unwrap();
    refusal(record_block(&records, 2));
    fs::rename(&elsewhere, database.path()).unwrap();
    assert_eq!(record_block(&records, 3).wait(), Ack::Durable);
    assert_eq!(records.health().file_fault, None);
    assert_eq!(records.rescue().unwrap(), None);
    records.close();
    assert_eq!(count(&database.open()), 3);
}

#[test]
fn nothing_is_durable_after_the_file_was_replaced() {
    let database = TestDatabase::new();
    let other = TestDatabase::new();
    other.open().close();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.1", at(0), at(600))]);
    fs::rename(other.path(), database.path()).unwrap();
    let why = refusal(record_block(&records, 2));
    assert!(why.contains("catraca.db was replaced by another file"), "{why}");
    records.stop();
    let copy = records.rescue().unwrap().unwrap();
    drop(records);
    restore_backup_over(&copy, &database.path()).unwrap();
    assert_eq!(count(&database.open()), 2);
}

#[test]
fn nothing_is_durable_after_the_log_was_deleted() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.1", at(0), at(600))]);
    fs::remove_file(database.file("catraca.db-wal")).unwrap();
    let why = refusal(record_block(&records, 2));
    assert!(why.contains("catraca.db-wal was deleted or moved"), "{why}");
}

/// The check costs two calls of the system, and finds nothing in records that are used as they
/// should be: other programs read them, they are backed up, and their log is truncated.
#[test]
fn a_file_that_is_used_by_others_stays_durable() {
    let database = TestDatabase::new();
    let records = Records::open(&database.url(), Options::default()).unwrap();
    for number in 0..20 {
        let reader = rusqlite::Connection::open(database.path()).unwrap();
        let blocks: i64 =
            reader.query_row("SELECT count(*) FROM blocks", [], |row| row.get(0)).unwrap();
        assert_eq!(blocks, i64::from(number));
        drop(reader);
        records.backup(&database.file(&format!("{number}.db"))).unwrap();
        assert_eq!(record_block(&records, number).wait(), Ack::Durable);
        records.purge(at(1)).unwrap();
    }
    assert_eq!(records.health().file_fault, None);
}
