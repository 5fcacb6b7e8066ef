//! Random decisions of an engine on the Redis store against the oracle: every figure of every
//! answer must be equal.
//!
//! `CATRACA_REDIS_DECISIONS` is the number of decisions and `CATRACA_REDIS_SEED` the seed. Catalogs
//! have tiers with and without counters of their own; reloads change terms and facts, and bring
//! them back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use catraca::store::Store;
use catraca_testkit::compare::engine_side::EngineSide;
use catraca_testkit::compare::{Divergence, compare_trace_on};
use catraca_testkit::generate::Rng;
use catraca_testkit::redis::RedisServer;

use super::helpers::{connect, setting};

/// Operations of one trace.
const LENGTH: usize = 300;
/// Each waits for the server most of the time.
const THREADS: usize = 4;

#[test]
fn an_engine_on_redis_and_the_oracle_agree_on_every_figure() {
    let Some(server) = RedisServer::start() else { return };
    let wanted = setting("CATRACA_REDIS_DECISIONS", 20_000);
    let seed = setting("CATRACA_REDIS_SEED", 20_261_117);
    let done = AtomicU64::new(0);
    let failed: Mutex<Option<Divergence>> = Mutex::default();
    let start = Instant::now();
    let mut rng = Rng::new(seed);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let mut rng = rng.fork();
            let store: Arc<dyn Store> = Arc::new(connect(&server.url()));
            let (done, failed) = (&done, &failed);
            scope.spawn(move || {
                let on_store = |versions: &[_]| EngineSide::on_store(versions, Arc::clone(&store));
                while done.load(Ordering::Relaxed) < wanted && failed.lock().unwrap().is_none() {
                    match compare_trace_on(on_store, rng.next_u64(), LENGTH) {
                        Ok(counts) => drop(done.fetch_add(counts.decisions, Ordering::Relaxed)),
                        Err(divergence) => *failed.lock().unwrap() = Some(*divergence),
                    }
                }
            });
        }
    });
    let done = done.into_inner();
    let failed = failed.into_inner().unwrap();
    let mismatches = usize::from(failed.is_some());
    let time = start.elapsed();
    println!("{done} decisions on Redis from seed {seed}, {mismatches} mismatches, in {time:?}");
    assert!(failed.is_none(), "{}", failed.map(|found| found.to_string()).unwrap_or_default());
    assert!(done >= wanted);
}
