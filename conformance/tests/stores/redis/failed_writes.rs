//! Writes that fail, and expiries that are lost: neither is silent, and neither frees a caller or
//! blocks one for ever.

use catraca::redis::{RedisStore, ScriptArgs};
use catraca::store::{Store, StoreError, When};
use catraca_core::batch::{Batch, CheckBatch, CheckReply, CheckRow, Reply};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::time::Span;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::fake_clock::FakeClockLibrary;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::{RespClient, RespValue};

use super::helpers::connect;

const HOUR: Span = Span::from_secs(3_600);

/// A limit of one, whose excess starts a block of an hour.
fn batch(limit: Limit) -> Batch {
    let penalty = Some(Penalty::without_escalation(HOUR));
    let row = CheckRow { penalty, ..CheckRow::new(Key::from_bytes([7; 16]), limit) };
    Batch::Check(CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() })
}

fn limits() -> [Limit; 2] {
    let window = [WindowTerms { limit: 1, span: HOUR }].into_iter().collect();
    let bucket = BucketTerms { size: 1, tokens: 1, period: HOUR.micros() };
    [Limit::Window(window), Limit::Bucket(bucket)]
}

fn check(
    store: &BlockingStore<RedisStore>,
    batch: &Batch,
    when: When,
) -> Result<CheckReply, StoreError> {
    match store.apply(batch, when)? {
        Reply::Check(reply) => Ok(reply),
        other => panic!("not the reply of a check: {other:?}"),
    }
}

/// The excess that cannot be written is an error: no denial without its block, and no admission.
///
/// covers: B-32
#[test]
fn a_block_that_cannot_be_written_is_an_error_and_starts_when_it_can() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    let faults: [[&[&str]; 2]; 2] = [
        [&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]],
        [&["ACL", "SETUSER", "default", "-set"], &["ACL", "SETUSER", "default", "+@all"]],
    ];
    for [begin, end] in faults {
        for limit in limits() {
            let batch = batch(limit);
            assert!(check(&store, &batch, When::Store).unwrap().passed, "{begin:?}");
            server.command(begin);
            for _ in 0..3 {
                let reply = check(&store, &batch, When::Store);
                assert!(reply.is_err(), "{begin:?}: {reply:?}");
            }
            server.command(end);
            let excess = check(&store, &batch, When::Store).unwrap();
            let block = excess.rows[0].block.as_ref();
            assert!(!excess.passed && block.is_some(), "{begin:?}: {excess:?}");
            server.command(&["FLUSHALL"]);
        }
    }
}

fn name_of(batch: &Batch) -> Vec<Vec<u8>> {
    ScriptArgs::new(b"catraca:", batch).keys().map(<[u8]>::to_vec).collect()
}

/// Removes the expiry of every key of a batch that exists; how many had one.
fn persist(client: &mut RespClient, batch: &Batch) -> usize {
    let names = name_of(batch).into_iter();
    names.filter(|name| client.call(&[b"PERSIST", name]).unwrap() == RespValue::Int(1)).count()
}

/// Whether a key of the batch exists that never expires.
fn lasts_for_ever(client: &mut RespClient, batch: &Batch) -> bool {
    let mut names = name_of(batch).into_iter();
    names.any(|name| client.call(&[b"PTTL", &name]).unwrap() == RespValue::Int(-1))
}

/// The end of a block is in its value, so the key's expiry only frees memory.
///
/// covers: B-32
#[test]
fn a_key_that_lost_its_expiry_blocks_no_longer_than_it_said_and_gets_it_back() {
    let clock = FakeClockLibrary::build();
    let Some(server) = RedisServer::start_with_clock(&clock) else { return };
    let store = connect(&server.url());
    let mut client = server.connect();
    for limit in limits() {
        clock.set(0);
        let batch = batch(limit);
        let ask = || check(&store, &batch, When::Store).unwrap();
        assert!(ask().passed);
        let excess = ask();
        let end = excess.rows[0].block.as_ref().map(|block| block.until);
        assert!(!excess.passed && end.is_some(), "the excess starts the block: {excess:?}");
        assert_eq!(persist(&mut client, &batch), 2, "counter and block had an expiry");
        assert!(lasts_for_ever(&mut client, &batch));
        clock.set(3_000);
        let blocked = ask();
        assert_eq!(blocked.rows[0].block.as_ref().map(|block| block.until), end, "{blocked:?}");
        clock.set(3_700);
        assert!(ask().passed, "the block ended when it said");
        assert!(!ask().passed, "and a new one starts");
        assert!(!lasts_for_ever(&mut client, &batch), "both keys expire again");
        server.command(&["FLUSHALL"]);
    }
}
