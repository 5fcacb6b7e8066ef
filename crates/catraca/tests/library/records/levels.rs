//! The escalation level of a block in the records is that of the store.

use std::sync::Arc;

use catraca::records::{
    BlockEvent, DebtEvent, Options, PolicyReset, Record, RecordKind, Records, Retention,
};
use catraca::{Check, Engine, Outcome, Settle, Subject, Time};
use catraca_core::cell::block::{Block, BlockNote, BlockProposal, Origin};
use catraca_core::limit::BucketTerms;

use super::helpers::{TestDatabase, at, engine, engine_at, secs, subject_key, write};

const CATALOG: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "3 per 1d"
    hold   = "10m"
    block  = { first = "10s", factor = 2, max = "10h", forget = "1h" }
    ban    = [ { when = "status == 403", reason = "refused upstream",
                 for = { first = "4s", factor = 2, max = "1d", forget = "1h" } } ]
"#;
const HERE: [(&str, &str); 1] = [("ip", "198.51.100.7")];

fn check(engine: &Engine) -> catraca::Decision {
    engine.check(&Check::new("login", HERE)).unwrap()
}

fn ban(engine: &Engine, ticket: &str) {
    let outcome = Outcome { status: Some(403), ..Outcome::default() };
    engine.settle(&Settle::ticket(ticket, &outcome)).unwrap();
}

/// Asserts that store and records have the same block, with this level.
fn assert_level(engine: &Engine, records: &Records, level: u32, when: &str) {
    records.flush().unwrap();
    let mut stored = Vec::new();
    engine.store().for_each_block(|key, block| stored.push((key, block.clone())));
    let (key, stored) = stored.pop().unwrap_or_else(|| panic!("{when}: no block"));
    let recorded = records.block_of(key).unwrap().unwrap().block;
    assert_eq!((stored.level, recorded.level), (level, level), "{when}");
    assert_eq!((recorded.until, recorded.forget), (stored.until, stored.forget), "{when}");
}

#[test]
fn the_level_in_the_records_is_that_of_the_store() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (engine, clock) = engine(CATALOG, &records);
    let tickets: Vec<String> = (0..3).map(|_| check(&engine).ticket.unwrap()).collect();
    assert!(!check(&engine).allowed);
    assert_level(&engine, &records, 1, "after an excess");
    // Raises the level without moving the end, which is no event.
    clock.advance(secs(1));
    ban(&engine, &tickets[0]);
    clock.advance(secs(9));
    assert!(!check(&engine).allowed);
    assert_level(&engine, &records, 3, "after an excess that follows a ban");
    clock.advance(secs(40));
    ban(&engine, &tickets[1]);
    assert_level(&engine, &records, 4, "after a ban");
    drop(engine);
    let engine = engine_at(CATALOG, &records, &clock);
    engine.resume(&records, None).unwrap();
    assert_level(&engine, &records, 4, "after a restart");
    clock.advance(secs(32));
    ban(&engine, &tickets[2]);
    assert_level(&engine, &records, 5, "after a ban that follows a restart");
    clock.advance(secs(1));
    engine.reset("default", "login", &Subject::from(HERE)).unwrap();
    records.flush().unwrap();
    assert_eq!(database.rows("SELECT level FROM blocks"), [["0"]], "after a reset");
    (0..3).for_each(|_| assert!(check(&engine).allowed));
    assert!(!check(&engine).allowed);
    assert_level(&engine, &records, 1, "after the first excess since the reset");
}

/// A block that has ended is restored with its own end: from there, and not from the restart, its
/// level is remembered.
#[test]
fn a_block_of_fixed_length_after_a_restart_does_not_shorten_how_long_a_level_is_remembered() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (engine, clock) = engine(CATALOG, &records);
    (0..3).for_each(|_| assert!(check(&engine).allowed));
    assert!(!check(&engine).allowed);
    assert_level(&engine, &records, 1, "after an excess");
    clock.advance(secs(3_000));
    drop(engine);
    let engine = engine_at(CATALOG, &records, &clock);
    engine.resume(&records, None).unwrap();
    let second = BlockProposal::by_operator(secs(1), None);
    engine.block("default", "login", &Subject::from(HERE), second).unwrap();
    assert_level(&engine, &records, 1, "after an operator's block");
    // Later than an hour after the first block, earlier than an hour after the second.
    clock.advance(secs(1_800));
    // Without a snapshot the window is empty after the restart.
    (0..3).for_each(|_| assert!(check(&engine).allowed));
    assert!(!check(&engine).allowed);
    assert_level(&engine, &records, 2, "after the next excess");
}

/// Times without an effect are purged; the level has one for an hour.
#[test]
fn a_level_that_is_remembered_is_not_purged() {
    let database = TestDatabase::new();
    let retention = Retention { history: secs(60).into(), ..Retention::default() };
    let records =
        Records::open(&database.url(), Options { retention, ..Options::default() }).unwrap();
    write(&records, vec![block(10, 70, 2)]);
    assert_eq!(records.purge(at(70 + 3_600)).unwrap().blocks, 0);
    assert_eq!(records.purge(at(70 + 3_600 + 61)).unwrap().blocks, 1);
}

fn block(from: i64, until: i64, level: u32) -> Record {
    let block = Block {
        until: at(until),
        origin: Origin::Excess,
        shadow: false,
        level,
        forget: secs(3_600),
        note: BlockNote::default(),
    };
    let subject = subject_key("login", "192.0.2.1");
    let event = BlockEvent { subject, epoch: Time::ZERO, first_of_act: None, block };
    Record::automatic(at(from), RecordKind::Block(Box::new(event)))
}

fn reset(seconds: i64) -> Record {
    let subject = subject_key("login", "192.0.2.1");
    Record::automatic(at(seconds), RecordKind::Reset(subject))
}

/// The level in the records after these records, each in a transaction of its own.
fn level_after(all: Vec<Record>) -> u32 {
    let database = TestDatabase::new();
    let records = database.open();
    all.into_iter().for_each(|record| write(&records, vec![record]));
    let key = subject_key("login", "192.0.2.1").key;
    records.block_of(key).unwrap().unwrap().block.level
}

/// Nodes that share a database write their records in any order.
#[test]
fn the_newest_record_has_the_level_in_whatever_order_records_arrive() {
    assert_eq!(level_after(vec![block(10, 70, 1), block(80, 200, 2)]), 2);
    assert_eq!(level_after(vec![block(80, 200, 2), block(10, 70, 1)]), 2);
    assert_eq!(level_after(vec![block(80, 200, 3)]), 3, "records from before it were lost");
    assert_eq!(level_after(vec![block(10, 70, 4), reset(20)]), 0);
    assert_eq!(level_after(vec![reset(20), block(10, 70, 4)]), 0, "the block was reset");
    assert_eq!(level_after(vec![block(10, 70, 4), block(30, 90, 1), reset(20)]), 1);
    assert_eq!(level_after(vec![block(30, 90, 2), reset(20)]), 2, "two offences since the reset");
}

/// A settle from before a reset may be recorded after a debt from after it.
#[test]
fn a_debt_that_was_paid_back_before_a_reset_does_not_delete_one_from_after_it() {
    let database = TestDatabase::new();
    let records = database.open();
    let terms = BucketTerms { size: 10, tokens: 1, period: 1_000_000 };
    let debt = |epoch, balance| {
        let subject = subject_key("login", "192.0.2.1");
        RecordKind::Debt(Box::new(DebtEvent { subject, epoch, balance, terms }))
    };
    let reset = PolicyReset { policy: "login".to_owned(), epoch: at(5) };
    let all = [RecordKind::ResetPolicy(reset), debt(at(5), -3), debt(Time::ZERO, 0)];
    write(&records, all.map(|kind| Record::automatic(at(6), kind)).into());
    assert_eq!(database.rows("SELECT balance FROM debts"), [["-3"]]);
    write(&records, vec![Record::automatic(at(7), debt(at(5), 0))]);
    assert!(database.rows("SELECT balance FROM debts").is_empty());
}
