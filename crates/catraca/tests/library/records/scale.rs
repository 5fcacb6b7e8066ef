//! Many blocks: the time until all of them apply after a start, and until one is on disk.
//!
//! Small by default; `CATRACA_BLOCKS=1000000 cargo test … --test records scale -- --nocapture`
//! prints the figures for a million.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca::records::{BlockQuery, Record};
use catraca::{Catalog, Engine, ManualClock, MemoryOptions};
use catraca_core::cell::CellKind;
use catraca_core::cell::block::Origin;

use super::helpers::{
    SECRET, START, TestDatabase, at, block_record, engine, excess_block, passes, subject_key, write,
};

const LOGIN: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"2 per 1m\"\nblock = \"15m\"";

fn count() -> u64 {
    std::env::var("CATRACA_BLOCKS").map_or(20_000, |text| text.parse().unwrap())
}

fn address(number: u64) -> String {
    std::net::Ipv6Addr::from(u128::from(number) << 64 | 0x2001_0db8 << 96).to_string()
}

/// An engine with memory for a million blocks, more than the default.
fn large_engine() -> Engine {
    let memory = MemoryOptions { block_bytes: 512 << 20, ..MemoryOptions::default() };
    let catalog = Catalog::parse(LOGIN).unwrap();
    Engine::builder(catalog).clock(ManualClock::at(START)).secret(SECRET).memory(memory).build()
}

#[test]
fn every_live_block_is_in_force_before_the_first_answer() {
    let database = TestDatabase::new();
    let many = count();
    let records = database.open();
    let begun = Instant::now();
    for first in (0..many).step_by(1_000) {
        let some = first..many.min(first + 1_000);
        let all = some.map(|n| excess_block("login", &address(n), at(0), at(3_600))).collect();
        write(&records, all);
    }
    println!("{many} blocks written in {:?}", begun.elapsed());
    assert_eq!(records.close(), 0);
    let begun = Instant::now();
    let records = Arc::new(database.open());
    let opened = begun.elapsed();
    let engine = large_engine();
    let resumed = engine.resume(&records, None).unwrap();
    println!("{many} blocks in force after {:?}, {opened:?} of it to open", begun.elapsed());
    assert_eq!((resumed.blocks, resumed.blocks_left_out), (many, 0));
    assert_eq!(engine.store().stats()[CellKind::Block].cells as u64, many);
    let begun = Instant::now();
    let page = records.blocks(&BlockQuery::default(), at(1)).unwrap();
    println!("a page of {} in {:?}", page.rows.len(), begun.elapsed());
    assert_eq!(page.rows.len(), 50);
}

/// A store that is too small reports how many blocks were not restored.
#[test]
fn blocks_without_room_are_counted() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, (0..500).map(|n| excess_block("login", &address(n), at(0), at(60))).collect());
    let memory = MemoryOptions { block_bytes: 8 << 10, ..MemoryOptions::default() };
    let catalog = Catalog::parse(LOGIN).unwrap();
    let engine = Engine::builder(catalog).clock(ManualClock::at(START)).memory(memory).build();
    let resumed = engine.resume(&records, None).unwrap();
    let kept = engine.store().stats()[CellKind::Block].cells as u64;
    assert!(kept > 0 && resumed.blocks_left_out > 0, "{resumed:?}");
    assert_eq!(kept + resumed.blocks_left_out, 500);
}

/// Prints how long single and concurrent acts wait for the disk; asserts only the number of
/// commits.
#[test]
fn acts_that_come_together_share_their_wait() {
    let database = TestDatabase::new();
    let records = database.open();
    let mut alone: Vec<Duration> = (0..200)
        .map(|n| {
            let begun = Instant::now();
            write(&records, vec![excess_block("login", &address(n), at(0), at(60))]);
            begun.elapsed()
        })
        .collect();
    let before = records.health();
    let begun = Instant::now();
    let block = |n| {
        block_record(subject_key("login", &address(n)), at(60), Origin::Operator, Some("fraud"))
    };
    let acts = (1_000..5_000).map(|n| Record::operator(at(0), "ana", None, block(n)));
    let receipts: Vec<_> = acts.map(|act| records.record(vec![act])).collect();
    assert!(receipts.into_iter().all(|receipt| receipt.wait().is_durable()));
    let spent = begun.elapsed();
    let after = records.health();
    alone.sort();
    println!("alone: median {:?}, p99 {:?}", alone[100], alone[198]);
    println!("4000 acts together: {spent:?}, {} commits", after.commits - before.commits);
    assert_eq!(after.written - before.written, 4_000);
    assert!(after.commits - before.commits < 2_000, "{after:?}");
}

#[test]
fn a_check_never_waits_and_its_block_is_on_disk_soon() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (engine, _) = engine(LOGIN, &records);
    for number in 0..500 {
        let address = address(number);
        assert_eq!(
            [0; 3].map(|_| passes(&engine, "login", &[("ip", &address)])),
            [true, true, false]
        );
    }
    records.flush().unwrap();
    let health = records.health();
    assert_eq!((health.waiting, health.lost, health.failures), (0, 0, 0));
    let all = BlockQuery { limit: 1_000, ..BlockQuery::default() };
    assert_eq!(records.blocks(&all, at(1)).unwrap().rows.len(), 500);
}
