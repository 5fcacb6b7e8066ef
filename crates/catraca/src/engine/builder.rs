//! Sets up an engine: clock, secret, memory limits, listener.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use catraca_core::catalog::Catalog;
use catraca_core::digest::{Digester, Secret};
use catraca_core::plan::namespace_group;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::sharding::Sharding;
use catraca_core::ticket::TicketSealer;
use parking_lot::Mutex;

use super::{Engine, TicketIds, random_bytes};
use crate::clock::{Clock, SystemClock};
use crate::event::{Event, EventListener};
use crate::memory::{Memory, MemoryOptions, RestoreOutcome, SnapshotError};
use crate::rule_set::RuleSet;
use crate::store::Store;

/// Sets up and builds an engine.
///
/// ```
/// use std::time::SystemTime;
///
/// use catraca::{Catalog, Engine, ManualClock, MemoryOptions};
///
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let engine = Engine::builder(catalog)
///     .clock(ManualClock::at(SystemTime::UNIX_EPOCH))
///     .memory(MemoryOptions { budget_bytes: 32 << 20, ..MemoryOptions::default() })
///     .listener(|event| println!("{event:?}"))
///     .build();
/// assert!(engine.gate("api")?.check(["198.51.100.7"])?.allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Builder {
    catalog: Arc<Catalog>,
    /// The system clock if not set. It is not read before: tools such as valgrind hide it.
    clock: Option<Arc<dyn Clock>>,
    /// Random if not set.
    secret: Option<Secret>,
    options: MemoryOptions,
    namespaces: Vec<String>,
    listener: Option<EventListener>,
    report_keys: bool,
    sharding: Sharding,
}

impl Builder {
    pub(super) fn new(catalog: Catalog) -> Self {
        Self {
            catalog: Arc::new(catalog),
            clock: None,
            secret: None,
            options: MemoryOptions::default(),
            namespaces: Vec::new(),
            listener: None,
            report_keys: false,
            sharding: Sharding::Unsharded,
        }
    }

    /// Sets the clock, such as [`crate::ManualClock`] in tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the secret of digests and tickets. With a stored secret they stay valid after a
    /// restart.
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sets the limits of the memory store.
    #[must_use]
    pub fn memory(mut self, options: MemoryOptions) -> Self {
        self.options = options;
        self
    }

    /// Guarantees each of these namespaces, and all others together, an equal part of one half of
    /// every memory pool. The other half is first come. Without this call there is one part.
    #[must_use]
    pub fn namespaces(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.namespaces = names.into_iter().collect();
        self
    }

    /// Calls `listener` with every event, on the thread that caused it.
    #[must_use]
    pub fn listener(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Gives the events of decisions the keys of their rows, which costs a digest for each private
    /// value. Records that count the attempts of single keys need it.
    #[must_use]
    pub fn report_keys(mut self, is_wanted: bool) -> Self {
        self.report_keys = is_wanted;
        self
    }

    /// Whether a secret was set.
    #[cfg(feature = "shared")]
    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Encrypts messages between nodes.
    #[cfg(all(feature = "shared", feature = "records"))]
    pub(crate) fn message_sealer(&self) -> catraca_core::ticket::MessageSealer {
        let secret = self.secret.clone().unwrap_or_else(|| Secret::from_bytes(random_bytes()));
        catraca_core::ticket::MessageSealer::new(&secret)
    }

    /// For a store with several servers, groups keys as the catalog's `shard_by` says.
    #[cfg(feature = "shared")]
    pub(crate) fn shard_keys(mut self, is_sharded: bool) -> Self {
        if is_sharded {
            self.sharding = Sharding::from_catalog(&self.catalog);
        }
        self
    }

    /// Builds the engine with an empty memory store.
    pub fn build(mut self) -> Engine {
        let store = self.empty_memory();
        self.build_with_store(store)
    }

    /// An empty memory store, divided by namespaces if there are several.
    fn empty_memory(&mut self) -> Memory {
        let secret = self.secret.get_or_insert_with(|| Secret::from_bytes(random_bytes()));
        let digester = Digester::new(secret);
        let names = self.namespaces.iter().filter(|name| *name != DEFAULT_NAMESPACE);
        let groups = names.map(|name| namespace_group(&digester, name));
        let clock = self.clock.get_or_insert_with(system_clock);
        Memory::with_groups(self.options, groups, Arc::clone(clock))
    }

    /// Builds the engine with the cells of a snapshot, and reports what was read. A missing file is
    /// a first start; any other problem is an error that names the file.
    ///
    /// Keys are digests under the secret, so the snapshot must have been made with the same secret.
    /// Without a secret this is an error, because with a new random one no cell would be found.
    ///
    /// ```
    /// use catraca::{Catalog, Check, Engine, Secret};
    ///
    /// let text = "[policy.login]\n by = ['ip']\n window = '1 per 1h'";
    /// let secret = Secret::from_bytes([7; 32]); // in production: random, from a file
    /// let file = std::env::temp_dir().join(format!("catraca-{}.snapshot", std::process::id()));
    /// let check = Check::new("login", [("ip", "198.51.100.7")]);
    ///
    /// let engine = Engine::builder(Catalog::parse(text)?).secret(secret.clone()).build();
    /// assert!(engine.check(&check)?.allowed);
    /// engine.store().snapshot(&file)?;
    ///
    /// let (again, found) = Engine::builder(Catalog::parse(text)?).secret(secret).restore(&file)?;
    /// assert!(!again.check(&check)?.allowed, "{found:?}");
    /// # std::fs::remove_file(&file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(mut self, snapshot: &Path) -> Result<(Engine, RestoreOutcome), SnapshotError> {
        if self.secret.is_none() {
            return Err(SnapshotError::NoSecret { path: snapshot.to_owned() });
        }
        let (store, restored) = self.empty_memory().with_snapshot(snapshot)?;
        Ok((self.build_with_store(store), restored))
    }

    /// Builds the engine with another store, such as a restored [`Memory`]. If the store reads a
    /// clock, give it the clock of this builder.
    pub fn build_with_store<S: Store>(self, store: S) -> Engine<S> {
        let secret = self.secret.unwrap_or_else(|| Secret::from_bytes(random_bytes()));
        let process: [u8; 8] = random_bytes();
        Engine {
            rules: ArcSwap::from_pointee(RuleSet::new(self.catalog)),
            write_lock: Mutex::new(()),
            #[cfg(all(feature = "shared", feature = "records"))]
            local_changes: Default::default(),
            store,
            clock: self.clock.unwrap_or_else(system_clock),
            digester: Digester::new(&secret),
            sealer: TicketSealer::new(&secret),
            ids: TicketIds { process: u64::from_le_bytes(process), next: AtomicU64::new(1) },
            ban_storms: Mutex::default(),
            unlisted: Mutex::default(),
            listener: self.listener,
            report_keys: self.report_keys,
            sharding: self.sharding,
        }
    }
}

fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}
