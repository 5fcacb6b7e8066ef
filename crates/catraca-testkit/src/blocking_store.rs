//! Adapts an async shared store to the blocking `Store` trait, so that the store contract runs on
//! both. Errors are passed on as they are.

use catraca::store::{SharedStore, Store, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use tokio::runtime::{Handle, Runtime};

/// A shared store and the runtime of its calls.
#[derive(Debug)]
pub struct BlockingStore<S> {
    store: S,
    runtime: Runtime,
}

impl<S: SharedStore> BlockingStore<S> {
    /// Creates the store on a new runtime.
    pub fn start<E>(make: impl AsyncFnOnce() -> Result<S, E>) -> Result<Self, E> {
        let runtime = runtime();
        let store = runtime.block_on(make())?;
        Ok(Self { store, runtime })
    }

    /// The store itself.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The runtime of its calls.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }
}

impl<S: SharedStore> Store for BlockingStore<S> {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        self.runtime.block_on(self.store.apply(batch, when))
    }
}

#[expect(clippy::expect_used, reason = "a test cannot run without threads")]
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads for the store")
}
