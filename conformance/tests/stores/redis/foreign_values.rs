//! Foreign values under Catraca's keys: a limit applies although another program wrote there.

use catraca::redis::ScriptArgs;
use catraca::store::{Store, When};
use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::batch::{Batch, CheckBatch, CheckRow, Reply};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::time::Span;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::{RespClient, RespValue};

use super::helpers::connect;

const PREFIX: &[u8] = b"catraca:";
const LIMIT: i64 = 3;
const HOUR: Span = Span::from_secs(3_600);

fn bucket() -> Limit {
    Limit::Bucket(BucketTerms { size: LIMIT, tokens: 1, period: 3_600_000_000 })
}

fn window() -> Limit {
    Limit::Window([WindowTerms { limit: LIMIT, span: HOUR }].into_iter().collect())
}

fn row(name: u8, limit: Limit) -> CheckRow {
    CheckRow {
        family: name.into(),
        penalty: Some(Penalty::without_escalation(HOUR)),
        ..CheckRow::new(Key::from_bytes([name; 16]), limit)
    }
}

fn gate(limits: &[Limit]) -> Batch {
    let rows = (1..).zip(limits.iter().cloned());
    let rows = rows.map(|(name, limit)| row(name, limit)).collect();
    Batch::Check(CheckBatch { rows, ..CheckBatch::default() })
}

fn names(batch: &Batch) -> Vec<Vec<u8>> {
    ScriptArgs::new(PREFIX, batch).keys().map(<[u8]>::to_vec).collect()
}

/// Replaces the values of all keys of a batch by lists.
fn overwrite(client: &mut RespClient, batch: &Batch) {
    for name in names(batch) {
        client.call(&[b"DEL", &name]).unwrap();
        assert_eq!(client.call(&[b"LPUSH", &name, b"foreign"]).unwrap(), RespValue::Int(1));
    }
}

fn kind(client: &mut RespClient, name: &[u8]) -> RespValue {
    client.call(&[b"TYPE", name]).unwrap()
}

/// Gates that the script's fast path answers, and others.
fn gates() -> Vec<Batch> {
    let fixed = Limit::Fixed(FixedTerms { limit: LIMIT, span: HOUR, aligned: false });
    let inflight = Limit::Inflight(InflightTerms { limit: LIMIT, hold: HOUR });
    let two = [WindowTerms { limit: LIMIT, span: HOUR }, WindowTerms { limit: 9, span: HOUR }];
    let several = Limit::Window(two.into_iter().collect());
    let gates: [&[Limit]; 7] = [
        &[bucket()],
        &[bucket(), bucket()],
        &[window()],
        &[bucket(), window()],
        &[fixed],
        &[inflight],
        &[several],
    ];
    gates.iter().map(|limits| gate(limits)).collect()
}

#[test]
fn keys_of_another_type_are_written_over_by_the_first_decision() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    let mut client = server.connect();
    for batch in gates() {
        overwrite(&mut client, &batch);
        let passed = |_: &i32| match store.apply(&batch, When::Store).unwrap() {
            Reply::Check(reply) => reply.passed,
            other => panic!("{other:?}"),
        };
        let admitted = (0..9).filter(passed).count();
        assert_eq!(admitted as i64, LIMIT, "{batch:?}");
        let counter = &names(&batch)[0];
        assert_eq!(kind(&mut client, counter), RespValue::Bytes(b"string".to_vec()), "{batch:?}");
        client.call(&[b"FLUSHALL"]).unwrap();
    }
}

/// A block replaces any value under its key.
#[test]
fn a_block_is_written_over_what_is_no_block() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    let mut client = server.connect();
    let asked = gate(&[bucket()]);
    let Batch::Check(CheckBatch { rows, .. }) = &asked else { panic!("not a check") };
    let key = rows[0].key;
    let name = &names(&asked)[1];
    let origin = Origin::Operator;
    let note = BlockNote::default();
    let proposal = BlockProposal::new(Penalty::without_escalation(HOUR), origin, false, note);
    let block = Batch::Block(vec![(key, proposal)]);
    let values: [&[&[u8]]; 2] = [&[b"SADD", name, b"foreign"], &[b"SET", name, b"too short"]];
    for overwrite in values {
        client.call(&[b"DEL", name]).unwrap();
        client.call(overwrite).unwrap();
        let freed = store.apply(&Batch::Unblock(vec![key.into()]), When::Store).unwrap();
        assert_eq!(freed, Reply::Unblock(vec![false]), "{overwrite:?}");
        let Reply::Block(blocks) = store.apply(&block, When::Store).unwrap() else { panic!() };
        assert!(blocks[0].as_ref().unwrap().changed, "{blocks:?}");
        let Reply::Check(reply) = store.apply(&asked, When::Store).unwrap() else { panic!() };
        assert!(!reply.passed && reply.rows[0].block.is_some(), "{reply:?}");
    }
}
