//! Joins the parts of an application.

use std::sync::Arc;

#[cfg(feature = "locks")]
use catraca_core::digest::Secret;
use tokio::sync::Semaphore;

use super::settle::offloaded_max;
use super::{App, AppParts};
#[cfg(feature = "locks")]
use crate::clock::SystemClock;
#[cfg(feature = "locks")]
use crate::engine::random_bytes;
use crate::engine::{Builder, Engine};
#[cfg(feature = "locks")]
use crate::locks::Locks;
#[cfg(feature = "records")]
use crate::records::Records;
use crate::shared::{NoSecret, SharedDriver, SharedOptions};
use crate::store::SharedStore;

/// Sets up and builds an [`App`].
pub struct AppBuilder {
    engine: Arc<Engine>,
    shared: Option<Arc<SharedDriver>>,
    #[cfg(feature = "records")]
    records: Option<Arc<Records>>,
    #[cfg(feature = "records")]
    sequence: u64,
    #[cfg(feature = "locks")]
    locks: Option<Arc<Locks>>,
}

impl App {
    /// An application over an engine of this process.
    ///
    /// ```
    /// use catraca::{App, Catalog, Check, Engine};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1h'")?;
    /// let app = App::local(Engine::new(catalog)).build();
    /// let check = Check::new("login", [("ip", "198.51.100.7")]);
    /// assert!(app.check(&check).await?.allowed);
    /// assert!(!app.check(&check).await?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    pub fn local(engine: impl Into<Arc<Engine>>) -> AppBuilder {
        AppBuilder {
            engine: engine.into(),
            shared: None,
            #[cfg(feature = "records")]
            records: None,
            #[cfg(feature = "records")]
            sequence: 0,
            #[cfg(feature = "locks")]
            locks: None,
        }
    }

    /// An application over a store that other nodes use too. The memory store that the engine's
    /// builder sets up decides while the shared store is unavailable.
    pub fn over_store(
        engine: Builder,
        store: Arc<dyn SharedStore>,
        options: SharedOptions,
    ) -> Result<AppBuilder, NoSecret> {
        let driver = Arc::new(SharedDriver::new(engine, store, options)?);
        let local = Self::local(Arc::clone(driver.engine()));
        Ok(AppBuilder { shared: Some(driver), ..local })
    }
}

/// Locks in memory. Their secret is not needed by any other process.
#[cfg(feature = "locks")]
fn volatile_locks() -> Locks {
    let secret = Secret::from_bytes(random_bytes());
    Locks::in_memory(Arc::new(SystemClock::new()), &secret)
}

impl AppBuilder {
    /// Writes blocks, lists, facts, modes and acts to these records. Call [`App::resume`] before
    /// the first check.
    #[cfg(feature = "records")]
    #[must_use]
    pub fn records(mut self, records: Arc<Records>) -> Self {
        self.records = Some(records);
        self
    }

    /// How many rows the records have acknowledged at the start, by
    /// [`crate::records::Records::sequence`]: a snapshot contains this number if the records cannot
    /// be read then.
    #[cfg(feature = "records")]
    #[must_use]
    pub fn sequence(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self
    }

    /// Offers these locks and slots. By default they are in memory and end with the process.
    #[cfg(feature = "locks")]
    #[must_use]
    pub fn locks(mut self, locks: Arc<Locks>) -> Self {
        self.locks = Some(locks);
        self
    }

    /// Builds the application.
    pub fn build(self) -> App {
        App {
            parts: Arc::new(AppParts {
                #[cfg(feature = "records")]
                catalog_since: parking_lot::Mutex::new(self.engine.now()),
                engine: self.engine,
                shared: self.shared,
                #[cfg(feature = "records")]
                records: self.records,
                #[cfg(feature = "locks")]
                locks: self.locks.unwrap_or_else(|| Arc::new(volatile_locks())),
                #[cfg(feature = "records")]
                change_lock: tokio::sync::Mutex::default(),
                #[cfg(feature = "records")]
                recorded_namespaces: parking_lot::Mutex::default(),
                #[cfg(feature = "records")]
                last_sequence: self.sequence.into(),
                offload_permits: Arc::new(Semaphore::new(offloaded_max())),
            }),
        }
    }
}
