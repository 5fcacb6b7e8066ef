//! The same random batches through PostgreSQL and through core: every reply must be equal.
//!
//! The batches are those of the Redis script's test. They are sent several at a time; core runs
//! them first. The first figure that differs ends the trace.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use catraca_core::run::run;
use catraca_core::time::Time;
use catraca_testkit::reference_cells::ReferenceCells;

use super::helpers::{Database, long_deadline, runtime, setting};
use crate::random::Random;

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Reply, StoreError>> + Send + 'a>>;

/// A batch, its instant, and core's reply.
type Step = (Batch, Time, Reply);

/// Random batches and core's replies.
struct Trace {
    random: Random,
    cells: ReferenceCells,
}

impl Trace {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), cells: ReferenceCells::default() }
    }

    fn count(&self) -> usize {
        self.random.counts().iter().sum()
    }

    fn step(&mut self) -> Step {
        let (batch, now) = self.random.step();
        let reply = run(&batch, &mut self.cells, now);
        self.random.learn(&batch, &reply);
        (batch, now, reply)
    }

    /// Compares `depth` batches that are sent together, in their order.
    async fn compare(&mut self, store: &PostgresStore, depth: usize) -> Result<(), String> {
        let steps: Vec<Step> = (0..depth).map(|_| self.step()).collect();
        let mut sent: Vec<Sent<'_>> = steps.iter().map(|step| send(store, step)).collect();
        // The first poll sends a call, so polling in order sends them in order; a poll may already
        // return the reply.
        let early: Vec<_> = poll_fn(|context| {
            let poll = |call: &mut Sent<'_>| match call.as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            };
            Poll::Ready(sent.iter_mut().map(poll).collect())
        })
        .await;
        for ((call, early), (batch, now, ours)) in sent.into_iter().zip(early).zip(&steps) {
            let theirs = match early {
                Some(answer) => answer,
                None => call.await,
            };
            if !matches!(&theirs, Ok(theirs) if theirs == ours) {
                let at = now.micros();
                return Err(format!("at {at}: {batch:#?}\ncore: {ours:#?}\nstore: {theirs:#?}"));
            }
        }
        Ok(())
    }
}

fn send<'a>(store: &'a PostgresStore, (batch, now, _): &'a Step) -> Sent<'a> {
    Box::pin(store.apply(batch, When::At(*now)))
}

/// Compares `steps` batches of a seed, `depth` at a time.
fn compare(seed: u64, steps: usize, depth: usize, options: PostgresOptions) {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(options));
    let mut trace = Trace::new(seed);
    while trace.count() < steps {
        let compared = runtime.block_on(trace.compare(&store, depth));
        compared
            .unwrap_or_else(|error| panic!("seed {seed}, before step {}: {error}", trace.count()));
    }
    println!("seed {seed}: {} batches, {depth} at a time, no difference", trace.count());
}

/// Uses one connection, so that batches are applied in the order in which they were sent.
///
/// covers: 002-22, B-36
#[test]
fn batches_that_share_transactions_are_answered_as_core_answers_them() {
    let steps = setting("CATRACA_POSTGRES_STEPS", 20_000) as usize;
    let seeds = setting("CATRACA_POSTGRES_SEEDS", 3);
    let one = PostgresOptions { connections: 1, ..long_deadline() };
    (0..seeds).for_each(|seed| compare(seed, steps / seeds as usize, 150, one));
}

#[test]
fn batches_one_by_one_are_answered_as_core_answers_them() {
    let steps = setting("CATRACA_POSTGRES_STEPS", 20_000) as usize / 10;
    compare(77, steps, 1, long_deadline());
}
