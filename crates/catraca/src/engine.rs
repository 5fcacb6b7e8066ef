//! The engine: the one room where catalog, clock and store meet.
//!
//! Every verb is a straight line: select, plan, apply, conclude, record. In process `check` is a
//! plain function call: no
//! thread, no lock on the way to the catalog. Must not hold rules (core has them) nor speak any
//! wire.

mod acts;
mod check;
mod credit;
#[cfg(feature = "records")]
mod operate;
#[cfg(feature = "records")]
mod resume;
mod settle;
mod states;
mod whole;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catraca_core::catalog::Catalog;
use catraca_core::digest::{Digester, Secret};
use catraca_core::plan::Scope;
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::spread::Spread;
use catraca_core::storm::Storm;
use catraca_core::ticket::Sealer;
use parking_lot::Mutex;

use crate::clock::{Clock, SystemClock};
use crate::event::{Event, Listener};
use crate::memory::{Memory, MemoryOptions, Restored, SnapshotError};
use crate::store::Store;
use crate::world::World;

pub use acts::BlockOrder;
#[cfg(feature = "records")]
pub use resume::{ResumeError, Resumed};
pub use settle::{Settle, Stub};
pub use states::Observed;

#[cfg(feature = "shared")]
pub(crate) use acts::{bare, ordering};
#[cfg(feature = "shared")]
pub(crate) use check::{Planned, Prepared, checked};
#[cfg(feature = "shared")]
pub(crate) use credit::{CreditCall, given};
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use resume::Resuming;
#[cfg(feature = "shared")]
pub(crate) use settle::{Opened, note_of, recalled, settled};
#[cfg(feature = "shared")]
pub(crate) use states::{looking_at, not_a_bucket, states};
#[cfg(feature = "shared")]
pub(crate) use whole::SWEPT;

/// How many undeclared gate names are kept for reports.
const UNLISTED_MAX: usize = 1_000;

/// Decides for any API: may this caller pass now, what does it cost, and what happens when they
/// misbehave.
pub struct Engine<S = Memory> {
    world: ArcSwap<World>,
    /// Writers of the world take turns; readers never wait.
    writing: Mutex<()>,
    store: S,
    clock: Arc<dyn Clock>,
    digester: Digester,
    sealer: Sealer,
    ids: Ids,
    storms: Mutex<HashMap<Name, Storm>>,
    unlisted: Mutex<BTreeSet<String>>,
    listener: Option<Listener>,
    /// By what the store spreads keys over servers: decided once, or state would be lost.
    spread: Spread,
}

/// Builds an engine in process.
pub struct Builder {
    catalog: Arc<Catalog>,
    clock: Arc<dyn Clock>,
    /// Random unless given.
    secret: Option<Secret>,
    options: MemoryOptions,
    listener: Option<Listener>,
    spread: Spread,
}

/// Ids that never repeat under one secret: a random half for the process, a counted half for the
/// ticket.
struct Ids {
    process: u64,
    next: AtomicU64,
}

impl Engine<Memory> {
    /// An engine in process, with the system's clock and a secret of its own.
    pub fn new(catalog: Catalog) -> Self {
        Self::builder(catalog).build()
    }

    /// An engine to be set up.
    pub fn builder(catalog: Catalog) -> Builder {
        Builder {
            catalog: Arc::new(catalog),
            clock: Arc::new(SystemClock::new()),
            secret: None,
            options: MemoryOptions::default(),
            listener: None,
            spread: Spread::Nowhere,
        }
    }
}

impl Builder {
    /// Uses another clock, such as [`crate::ManualClock`] in tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Uses this secret for digests and tickets, so that they outlive the process.
    #[must_use]
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Uses these bounds for the memory store.
    #[must_use]
    pub fn memory(mut self, options: MemoryOptions) -> Self {
        self.options = options;
        self
    }

    /// Sends every event to a listener, on the thread that caused it.
    #[must_use]
    pub fn listener(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Whether a secret was given.
    #[cfg(feature = "shared")]
    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Keys for a store that spreads over servers, as the catalog wants them to.
    #[cfg(feature = "shared")]
    pub(crate) fn spread(mut self, spreads: bool) -> Self {
        if spreads {
            self.spread = Spread::wanted(&self.catalog);
        }
        self
    }

    /// The engine.
    pub fn build(self) -> Engine {
        let store = Memory::new(self.options, Arc::clone(&self.clock));
        self.over(store)
    }

    /// The engine over the cells of a snapshot, and what was found of it. A missing file is a
    /// first start; any other trouble is an error that names the file.
    ///
    /// Keys are digests under the secret, so it must be the one the snapshot was made with: none
    /// is refused here, and under another one nothing would be found again.
    ///
    /// ```
    /// use catraca::{Catalog, Check, Engine, Secret};
    ///
    /// let text = "[policy.login]\n by = ['ip']\n window = '1 per 1h'";
    /// let secret = Secret::from_bytes([7; 32]); // in earnest: random, and kept in a file
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
    pub fn restore(self, snapshot: &Path) -> Result<(Engine, Restored), SnapshotError> {
        if self.secret.is_none() {
            return Err(SnapshotError::NoSecret { path: snapshot.to_owned() });
        }
        let clock = Arc::clone(&self.clock);
        let (store, restored) = Memory::restore(snapshot, self.options, clock)?;
        Ok((self.over(store), restored))
    }

    /// The engine over a store of your own, such as a [`Memory`] that was restored. A store that
    /// reads a clock should have the one given to this builder.
    pub fn over<S: Store>(self, store: S) -> Engine<S> {
        let secret = self.secret.unwrap_or_else(|| Secret::from_bytes(random()));
        let process: [u8; 8] = random();
        Engine {
            world: ArcSwap::from_pointee(World::new(self.catalog)),
            writing: Mutex::new(()),
            store,
            clock: self.clock,
            digester: Digester::new(&secret),
            sealer: Sealer::new(&secret),
            ids: Ids { process: u64::from_le_bytes(process), next: AtomicU64::new(1) },
            storms: Mutex::default(),
            unlisted: Mutex::default(),
            listener: self.listener,
            spread: self.spread,
        }
    }
}

impl<S> Engine<S> {
    /// The catalog in force.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.world.load().catalog)
    }

    /// Puts another catalog in force; state is kept, and the next decision uses it.
    ///
    /// Over a store that spreads by an attribute, it must spread by the same one.
    pub fn reload(&self, catalog: Catalog) {
        let (revision, policies) = (catalog.revision.clone(), catalog.policies.len() as u32);
        let catalog = Arc::new(catalog);
        self.change(|world| Ok::<_, Refusal>(world.with_catalog(Arc::clone(&catalog)))).ok();
        self.record(&Event::Catalog { at: self.now(), revision: &revision, policies });
    }

    /// Overrides a policy's mode at once, or gives it back to the catalog.
    pub fn set_mode(&self, policy: &str, mode: Option<Mode>) -> Result<(), Refusal> {
        self.change(|world| {
            world.catalog.find(policy).ok_or_else(|| Refusal::UnknownPolicy(policy.to_owned()))?;
            Ok(world.with_mode(policy, mode))
        })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Gates that were asked for and that nobody declared, up to a bound.
    pub fn unlisted(&self) -> Vec<String> {
        self.unlisted.lock().iter().cloned().collect()
    }

    pub(crate) fn world(&self) -> arc_swap::Guard<Arc<World>> {
        self.world.load()
    }

    /// The present instant, by the engine's clock.
    pub fn now(&self) -> catraca_core::time::Time {
        self.clock.now()
    }

    pub(crate) fn digester(&self) -> &Digester {
        &self.digester
    }

    fn change<E>(&self, change: impl FnOnce(&World) -> Result<World, E>) -> Result<(), E> {
        let _turn = self.writing.lock();
        let next = change(&self.world.load())?;
        self.world.store(Arc::new(next));
        Ok(())
    }

    fn scope<'a>(&'a self, world: &'a World, namespace: &'a str) -> Scope<'a> {
        let (digester, spread, resets) = (&self.digester, &self.spread, &*world.resets);
        Scope { digester, namespace, unlisted: None, spread, resets }
    }

    /// By what keys are spread over the servers of the store.
    pub fn spread(&self) -> &Spread {
        &self.spread
    }

    /// What stored keys were made with: what is kept under others is not found again.
    #[cfg(feature = "records")]
    pub(crate) fn keys_id(&self) -> String {
        let secret = self.digester.cell_id();
        match &self.spread {
            Spread::Nowhere => secret.to_owned(),
            Spread::Namespace => format!("{secret} spread by namespace"),
            Spread::Attribute(attribute) => format!("{secret} spread by {attribute}"),
        }
    }

    /// The world as it is, for a verb that waits meanwhile.
    #[cfg(feature = "shared")]
    pub(crate) fn world_now(&self) -> Arc<World> {
        self.world.load_full()
    }

    pub(crate) fn record(&self, event: &Event<'_>) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    fn note_unlisted(&self, gate: &str) {
        let mut known = self.unlisted.lock();
        if known.len() < UNLISTED_MAX && !known.contains(gate) {
            known.insert(gate.to_owned());
        }
    }
}

impl<S: Store> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("revision", &self.world.load().catalog.revision).finish()
    }
}

impl Ids {
    fn next(&self) -> u128 {
        let counted = self.next.fetch_add(1, Ordering::Relaxed);
        u128::from(self.process) << 64 | u128::from(counted)
    }
}

/// The policy of a name, or the refusal that says there is none.
fn find(world: &World, policy: &str) -> Result<PolicyId, Refusal> {
    let found = world.catalog.find(policy).map(|(id, _)| id);
    found.ok_or_else(|| Refusal::UnknownPolicy(policy.to_owned()))
}

/// The default namespace, for callers that have none.
pub const fn default_namespace() -> &'static str {
    DEFAULT_NAMESPACE
}

/// Random bytes from the system; a machine without them cannot keep a secret, so it must not start.
#[expect(clippy::expect_used, reason = "there is nothing to fall back to")]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
