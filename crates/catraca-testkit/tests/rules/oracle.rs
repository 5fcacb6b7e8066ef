//! Random decisions of the engine against the oracle: every figure of every answer must be equal.
//!
//! `CATRACA_ORACLE_DECISIONS` is the number of decisions (200,000 if unset) and `CATRACA_SEED` the
//! seed. A failure prints the seed of its trace, the catalog, the shortest list of operations, and
//! both answers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use catraca_testkit::compare::{self, Divergence};
use catraca_testkit::generate::Rng;

const DECISIONS: u64 = 200_000;
const SEED: u64 = 20_260_101;
/// Operations of one trace: long enough for tickets and refs to expire in it.
const LENGTH: usize = 300;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.trim().replace('_', "").parse().expect("a whole number"),
        Err(_) => default,
    }
}

/// Runs traces until enough decisions were compared or one failed.
fn work(mut rng: Rng, wanted: u64, done: &AtomicU64, failed: &Mutex<Vec<Divergence>>) {
    while done.load(Ordering::Relaxed) < wanted && failed.lock().expect("not poisoned").is_empty() {
        match compare::compare_trace(rng.next_u64(), LENGTH) {
            Ok(counts) => done.fetch_add(counts.decisions, Ordering::Relaxed),
            Err(divergence) => {
                failed.lock().expect("not poisoned").push(*divergence);
                return;
            }
        };
    }
}

/// covers: 002-06
#[test]
fn engine_and_oracle_agree_on_every_figure() {
    let wanted = number("CATRACA_ORACLE_DECISIONS", DECISIONS);
    let seed = number("CATRACA_SEED", SEED);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let done = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let began = Instant::now();
    let mut rng = Rng::new(seed);
    thread::scope(|scope| {
        for _ in 0..threads {
            let rng = rng.fork();
            scope.spawn(|| work(rng, wanted, &done, &failed));
        }
    });
    let done = done.into_inner();
    let failed = failed.into_inner().expect("not poisoned");
    let speed = done as f64 / began.elapsed().as_secs_f64();
    println!(
        "{done} decisions compared, seed {seed}, {} mismatches, {speed:.0} decisions/s on \
         {threads} threads",
        failed.len()
    );
    for divergence in &failed {
        println!("{divergence}");
    }
    assert!(failed.is_empty() && done >= wanted);
}
