//! The same random batches through PostgreSQL and through core, compared answer by answer.
//!
//! They are those that the Redis script is compared with. Core runs ahead by as many batches as go
//! out together. Must not forgive: the first figure that differs ends the trace.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use catraca_core::run::run;
use catraca_core::time::Time;
use catraca_testkit::reference_cells::ReferenceCells;

use crate::helpers::{Database, patient, runtime, setting};
use crate::random::Random;

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Reply, StoreError>> + Send + 'a>>;

/// A batch, its instant, and what core answered.
type Step = (Batch, Time, Reply);

/// Random batches and core's answers.
struct Trace {
    random: Random,
    cells: ReferenceCells,
}

impl Trace {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), cells: ReferenceCells::default() }
    }

    fn told(&self) -> usize {
        self.random.told().iter().sum()
    }

    fn step(&mut self) -> Step {
        let (batch, now) = self.random.step();
        let reply = run(&batch, &mut self.cells, now);
        self.random.heard(&batch, &reply);
        (batch, now, reply)
    }

    /// So many batches at once, which arrive in their order.
    async fn compare(&mut self, store: &PostgresStore, depth: usize) -> Result<(), String> {
        let steps: Vec<Step> = (0..depth).map(|_| self.step()).collect();
        let mut sent: Vec<Sent<'_>> = steps.iter().map(|step| send(store, step)).collect();
        // A call is on its way when it has been polled, and may be back at once.
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

/// Compares so many batches of a seed.
fn compare(seed: u64, steps: usize, depth: usize, options: PostgresOptions) {
    let (database, runtime) = (Database::new(), runtime());
    let store = runtime.block_on(database.open(options));
    let mut trace = Trace::new(seed);
    while trace.told() < steps {
        let compared = runtime.block_on(trace.compare(&store, depth));
        compared.unwrap_or_else(|told| panic!("seed {seed}, before step {}: {told}", trace.told()));
    }
    println!("seed {seed}: {} batches, {depth} at a time, no difference", trace.told());
}

/// One connection, so that batches are applied in the order in which they came.
///
/// covers: 002-22, B-36
#[test]
fn batches_that_share_transactions_are_answered_as_core_answers_them() {
    let steps = setting("CATRACA_POSTGRES_STEPS", 20_000) as usize;
    let seeds = setting("CATRACA_POSTGRES_SEEDS", 3);
    let one = PostgresOptions { connections: 1, ..patient() };
    (0..seeds).for_each(|seed| compare(seed, steps / seeds as usize, 150, one));
}

#[test]
fn batches_one_by_one_are_answered_as_core_answers_them() {
    let steps = setting("CATRACA_POSTGRES_STEPS", 20_000) as usize / 10;
    compare(77, steps, 1, patient());
}
