//! The same traces through the memory store and through Redis: every figure must be equal.
//!
//! Several traces run concurrently, each with its own keys; each sends its operations in turn
//! through several store instances. Both stores get the same instant. The first reply that differs
//! ends the test.

use std::sync::Arc;
use std::time::Instant;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{SharedStore, Store, When};
use catraca::{ManualClock, Memory, MemoryOptions};
use catraca_core::time::Time;
use catraca_testkit::redis::RedisServer;
use tokio::task::JoinSet;

use super::helpers::{LONG_DEADLINE, setting};
use crate::random::Random;

const TRACES: u64 = 8;
/// Store instances per trace.
const INSTANCES: usize = 3;

/// covers: 002-44, B-33, B-34, B-37
#[test]
fn memory_and_redis_answer_alike() {
    let Some(server) = RedisServer::start() else { return };
    let operations = setting("CATRACA_REDIS_OPERATIONS", 100_000);
    let seed = setting("CATRACA_REDIS_SEED", 20_261_116);
    let start = Instant::now();
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let mut traces = JoinSet::new();
        for trace in seed..seed + TRACES {
            traces.spawn(compare(server.url(), trace, operations / TRACES));
        }
        traces.join_all().await
    });
    println!("{operations} operations from seed {seed}, no difference, in {:?}", start.elapsed());
}

async fn compare(url: String, seed: u64, operations: u64) {
    let options = RedisOptions {
        deadline: LONG_DEADLINE,
        prefix: format!("t{seed}:"),
        ..RedisOptions::default()
    };
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(RedisStore::connect(&url, options.clone()).await.unwrap());
    }
    let memory = Memory::new(MemoryOptions::default(), Arc::new(ManualClock::default()));
    let mut random = Random::new(seed);
    let mut latest = Time::from_micros(0);
    for number in 0..operations {
        let (batch, now) = random.step();
        // The memory store deletes expired cells, so its clock must not go back.
        latest = latest.max(now);
        let now = latest;
        let ours = memory.apply(&batch, When::At(now)).unwrap();
        let redis = &instances[number as usize % INSTANCES];
        let theirs = redis.apply(&batch, When::At(now)).await.unwrap();
        let at = now.micros();
        assert_eq!(ours, theirs, "seed {seed}, operation {number}, at {at}: {batch:#?}");
        random.learn(&batch, &ours);
    }
    println!("seed {seed}: batches of each kind {:?}", random.counts());
}
