//! A shared store as a plain one, so that the same cases judge both.
//!
//! Must not retry nor hide an error: what the store answers is what the case sees.

use catraca::store::{SharedStore, Store, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use tokio::runtime::{Handle, Runtime};

/// A shared store, and the runtime that its calls are awaited on.
#[derive(Debug)]
pub struct Blocking<S> {
    store: S,
    runtime: Runtime,
}

impl<S: SharedStore> Blocking<S> {
    /// Makes the store on a runtime of its own.
    pub fn start<E>(make: impl AsyncFnOnce() -> Result<S, E>) -> Result<Self, E> {
        let runtime = runtime();
        let store = runtime.block_on(make())?;
        Ok(Self { store, runtime })
    }

    /// The store itself.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Where its calls run.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }
}

impl<S: SharedStore> Store for Blocking<S> {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        self.runtime.block_on(self.store.apply(batch, when))
    }
}

#[expect(clippy::expect_used, reason = "a test without threads cannot go on")]
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads for the store")
}
