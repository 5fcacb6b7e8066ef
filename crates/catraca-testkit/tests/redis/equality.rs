//! The same traces through the memory store and through Redis: every figure of every reply.
//!
//! Several traces go at once, each with keys of its own; the operations of each go through several
//! instances, one after the other. Both stores are told the instant. Must not
//! forgive: the first reply that differs ends the test.

use std::sync::Arc;
use std::time::Instant;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{SharedStore, Store, When};
use catraca::{ManualClock, Memory, MemoryOptions};
use catraca_core::time::Time;
use catraca_testkit::redis::RedisServer;
use tokio::task::JoinSet;

use super::desk::{CALM, setting};
use super::random::Random;

const TRACES: u64 = 8;
/// Instances that each trace goes through.
const INSTANCES: usize = 3;

/// covers: 002-44, B-33, B-34, B-37
#[test]
fn memory_and_redis_answer_alike() {
    let Some(server) = RedisServer::start() else { return };
    let operations = setting("CATRACA_REDIS_OPERATIONS", 100_000);
    let seed = setting("CATRACA_REDIS_SEED", 20_261_116);
    let begun = Instant::now();
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let mut traces = JoinSet::new();
        for trace in seed..seed + TRACES {
            traces.spawn(compare(server.url(), trace, operations / TRACES));
        }
        traces.join_all().await
    });
    println!("{operations} operations from seed {seed}, no difference, in {:?}", begun.elapsed());
}

async fn compare(url: String, seed: u64, operations: u64) {
    let options =
        RedisOptions { deadline: CALM, prefix: format!("t{seed}:"), ..RedisOptions::default() };
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(RedisStore::connect(&url, options.clone()).await.unwrap());
    }
    let memory = Memory::new(MemoryOptions::default(), Arc::new(ManualClock::default()));
    let (mut random, mut latest) = (Random::new(seed), Time::from_micros(0));
    for number in 0..operations {
        let (batch, now) = random.step();
        // A process has one clock, which never goes back: what it has forgotten it cannot find.
        latest = latest.max(now);
        let now = latest;
        let ours = memory.apply(&batch, When::At(now)).unwrap();
        let redis = &instances[number as usize % INSTANCES];
        let theirs = redis.apply(&batch, When::At(now)).await.unwrap();
        let at = now.micros();
        assert_eq!(ours, theirs, "seed {seed}, operation {number}, at {at}: {batch:#?}");
        random.heard(&batch, &ours);
    }
    println!("seed {seed}: batches of each kind {:?}", random.told());
}
