//! Replays batches on all cores, with the results of one core.
//!
//! Every batch passes the same stages in the same order. A stage (the engine, the output) takes one
//! batch at a time, in the order of the history; the work between stages (parsing, rendering) runs
//! on all cores at once. So every decision sees exactly the state that the lines before it left,
//! and keys need not be analysed.

use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Error, Result, anyhow, bail};

use super::source::{Batch, Source};

/// The stages of a run, and the number of its threads.
pub struct Pipeline {
    threads: NonZero<usize>,
    turns: Arc<Turns>,
}

/// A value that batches use one after the other, in their order.
pub struct Stage<T> {
    turns: Arc<Turns>,
    index: usize,
    value: Mutex<T>,
}

/// The batch whose turn it is at each stage.
#[derive(Default)]
struct Turns {
    state: Mutex<TurnState>,
    changed: Condvar,
}

#[derive(Default)]
struct TurnState {
    /// The number of the next batch, by the index of the stage.
    next: Vec<u64>,
    /// The earliest batch that failed. Batches after it have no turn any more.
    failed: Option<u64>,
}

/// The history, and the error that ends the run.
struct Input {
    source: Source,
    /// The number of the next batch.
    next: u64,
    /// Set when there is nothing more to read: at the end of the history, or after an error.
    end: Option<Result<()>>,
    /// The number and the error of the earliest batch that failed.
    failure: Option<(u64, Error)>,
}

/// Marks a batch as failed if its thread panics: other threads would wait for its turn forever.
struct PanicGuard<'t> {
    turns: &'t Turns,
    batch: u64,
}

/// The number of threads that keeps all cores busy: one more than there are cores, because one
/// thread often waits for its turn.
pub fn default_threads() -> NonZero<usize> {
    match thread::available_parallelism() {
        Ok(cores) if cores.get() > 1 => cores.saturating_add(1),
        _ => NonZero::<usize>::MIN,
    }
}

impl Pipeline {
    /// A pipeline without stages.
    pub fn new(threads: NonZero<usize>) -> Self {
        Self { threads, turns: Arc::default() }
    }

    /// Adds a stage. Every batch must take its turns in the order in which stages are added.
    pub fn add_stage<T>(&self, value: T) -> Stage<T> {
        let mut state = self.turns.lock();
        let index = state.next.len();
        state.next.push(0);
        Stage { turns: Arc::clone(&self.turns), index, value: Mutex::new(value) }
    }

    /// Calls `work` with every batch and its number, until the end or the first error. The inner
    /// error is one of reading: it ends the history, and all batches before it are complete.
    pub fn run(
        &self,
        source: Source,
        work: impl Fn(u64, &Batch) -> Result<()> + Sync,
    ) -> Result<Result<()>> {
        let input = Mutex::new(Input { source, next: 0, end: None, failure: None });
        let panicked = thread::scope(|scope| {
            let spawn = |_| scope.spawn(|| self.work_on_batches(&input, &work));
            let threads: Vec<_> = (0..self.threads.get()).map(spawn).collect();
            threads.into_iter().filter_map(|thread| thread.join().err()).count() > 0
        });
        let input = input.into_inner().unwrap_or_else(PoisonError::into_inner);
        if panicked {
            // The panic itself was printed by the panic hook.
            bail!("a thread of the run panicked");
        }
        match input.failure {
            Some((_, error)) => Err(error),
            None => Ok(input.end.unwrap_or(Ok(()))),
        }
    }

    fn work_on_batches(
        &self,
        input: &Mutex<Input>,
        work: &(impl Fn(u64, &Batch) -> Result<()> + Sync),
    ) {
        loop {
            let next = lock(input).next_batch();
            let Some((number, batch)) = next else { return };
            let guard = PanicGuard { turns: &self.turns, batch: number };
            let result = work(number, &batch);
            drop(guard);
            if let Err(error) = result {
                self.turns.fail(number);
                lock(input).fail(number, error);
            }
        }
    }
}

impl<T> Stage<T> {
    /// Waits until all earlier batches have left this stage, then calls `work`. An error ends the
    /// run: no later batch has a turn.
    pub fn take_turn<R>(&self, batch: u64, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        self.turns.wait(self.index, batch)?;
        // Never contended: only the batch whose turn it is locks the value.
        let result = work(&mut lock(&self.value));
        if result.is_ok() {
            self.turns.pass(self.index);
        }
        result
    }

    /// The value after the run.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    fn wait(&self, stage: usize, batch: u64) -> Result<()> {
        let mut state = self.lock();
        loop {
            if state.failed.is_some_and(|failed| failed < batch) {
                return Err(anyhow!("an earlier batch failed"));
            }
            if state.next[stage] == batch {
                return Ok(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pass(&self, stage: usize) {
        self.lock().next[stage] += 1;
        self.changed.notify_all();
    }

    fn fail(&self, batch: u64) {
        let mut state = self.lock();
        state.failed = Some(state.failed.map_or(batch, |failed| failed.min(batch)));
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        lock(&self.state)
    }
}

impl Input {
    /// The next batch with its number; `None` at the end, and after a failure.
    fn next_batch(&mut self) -> Option<(u64, Batch)> {
        if self.end.is_some() || self.failure.is_some() {
            return None;
        }
        match self.source.next_batch() {
            Ok(Some(batch)) => {
                let number = self.next;
                self.next += 1;
                return Some((number, batch));
            }
            Ok(None) => self.end = Some(Ok(())),
            Err(error) => self.end = Some(Err(error)),
        }
        None
    }

    /// Keeps the error of the earliest batch, which is the one that a single thread would meet.
    fn fail(&mut self, batch: u64, error: Error) {
        if self.failure.as_ref().is_none_or(|(earliest, _)| batch < *earliest) {
            self.failure = Some((batch, error));
        }
    }
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.turns.fail(self.batch);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read};

    use super::*;

    const THREADS: NonZero<usize> = NonZero::new(4).unwrap();

    fn source(input: impl Read + Send + 'static) -> Source {
        Source::from_reader(input, Arc::new(())).unwrap().with_batch_bytes(1)
    }

    fn lines(count: u64) -> Source {
        source(Cursor::new("x\n".repeat(count as usize)))
    }

    #[test]
    fn every_stage_sees_the_batches_in_order() {
        let pipeline = Pipeline::new(THREADS);
        let first = pipeline.add_stage(Vec::new());
        let second = pipeline.add_stage(Vec::new());
        let push = |seen: &mut Vec<u64>, number| {
            seen.push(number);
            Ok(())
        };
        let work = |number, _: &Batch| {
            first.take_turn(number, |seen| push(seen, number))?;
            second.take_turn(number, |seen| push(seen, number))
        };
        pipeline.run(lines(500), work).unwrap().unwrap();
        let all: Vec<u64> = (0..500).collect();
        assert_eq!(first.into_inner(), all);
        assert_eq!(second.into_inner(), all);
    }

    #[test]
    fn the_earliest_error_ends_the_run_and_earlier_batches_are_complete() {
        for failing in [0, 1, 7, 99] {
            let pipeline = Pipeline::new(THREADS);
            let engine = pipeline.add_stage(());
            let output = pipeline.add_stage(0);
            let work = |number, _: &Batch| {
                let fails = number >= failing;
                engine.take_turn(number, |()| match fails {
                    true => Err(anyhow!("batch {number}")),
                    false => Ok(()),
                })?;
                output.take_turn(number, |written| {
                    *written += 1;
                    Ok(())
                })
            };
            let error = pipeline.run(lines(100), work).unwrap_err();
            assert_eq!(error.to_string(), format!("batch {failing}"));
            assert_eq!(output.into_inner(), failing);
        }
    }

    #[test]
    fn a_panic_ends_the_run() {
        let pipeline = Pipeline::new(THREADS);
        let stage = pipeline.add_stage(());
        let work = |number, _: &Batch| {
            assert!(number != 5, "this panic is part of the test");
            stage.take_turn(number, |()| Ok(()))
        };
        let error = pipeline.run(lines(100), work).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }

    /// Some lines, and then an error.
    struct BrokenInput(Cursor<Vec<u8>>);

    impl Read for BrokenInput {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk is gone")),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn the_lines_before_an_error_of_reading_are_complete() {
        let pipeline = Pipeline::new(THREADS);
        let stage = pipeline.add_stage(0);
        let work = |number, _: &Batch| {
            stage.take_turn(number, |seen| {
                *seen += 1;
                Ok(())
            })
        };
        let source = source(BrokenInput(Cursor::new(b"a\nb\nc\n".to_vec())));
        let error = pipeline.run(source, work).unwrap().unwrap_err();
        assert_eq!(error.root_cause().to_string(), "the disk is gone");
        assert_eq!(stage.into_inner(), 3);
    }
}
