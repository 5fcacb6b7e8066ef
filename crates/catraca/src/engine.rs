//! The engine: joins catalog, clock and store, with one method per operation.
//!
//! Each operation selects policies, plans a batch, applies it to the store, concludes the reply and
//! emits events. In process, `check` is a plain function call: it uses no other thread and takes no
//! lock to read the catalog. Rules belong in core, and wire formats in the front ends.

mod buckets;
mod check;
mod credit;
mod exchange;
#[cfg(feature = "shared")]
mod local_share;
mod operator;
#[cfg(feature = "records")]
mod operator_lists;
mod policy_reset;
#[cfg(feature = "records")]
mod resume;
mod settle;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catraca_core::ban_storm::BanStorm;
use catraca_core::catalog::Catalog;
use catraca_core::digest::{Digester, Secret};
use catraca_core::plan::{KeyScope, namespace_group};
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::sharding::Sharding;
use catraca_core::ticket::TicketSealer;
use parking_lot::Mutex;

use crate::clock::{Clock, SystemClock};
use crate::event::{Event, EventListener};
use crate::memory::{Memory, MemoryOptions, RestoreOutcome, SnapshotError};
use crate::rule_set::RuleSet;
use crate::store::Store;

pub use buckets::{BucketObservation, OBSERVATIONS_MAX};
pub use check::{CheckMode, CheckPlan, RulesSnapshot};
pub use credit::Credit;
#[cfg(feature = "records")]
pub use operator_lists::ListedEntry;
#[cfg(feature = "records")]
pub use resume::{ResumeError, ResumeSummary};
pub use settle::{CheckRef, Settle};

#[cfg(feature = "shared")]
pub(crate) use exchange::{BatchTarget, Events, Exchange, FailureModes, ReplySource, StoreReply};
#[cfg(feature = "shared")]
pub(crate) use local_share::local_charge;
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use policy_reset::SWEEP_BATCH;
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use resume::ResumeBatches;
#[cfg(feature = "shared")]
pub(crate) use settle::recall_reply;

/// How many undeclared gate names are remembered for reports. Callers may choose such names, so the
/// set must be bounded.
const UNLISTED_MAX: usize = 1_000;

/// Decides for any API: may this caller pass now, what does it cost, and what happens when they
/// misbehave.
pub struct Engine<S = Memory> {
    rules: ArcSwap<RuleSet>,
    /// Serializes writers of `rules`. Readers load the current value and never wait.
    write_lock: Mutex<()>,
    store: S,
    clock: Arc<dyn Clock>,
    digester: Digester,
    sealer: TicketSealer,
    ids: TicketIds,
    ban_storms: Mutex<HashMap<Name, BanStorm>>,
    unlisted: Mutex<BTreeSet<String>>,
    listener: Option<EventListener>,
    /// How keys are grouped on the servers of the store. It never changes: with other groups the
    /// keys would differ, and stored state would not be found.
    sharding: Sharding,
}

/// Sets up and builds an engine.
pub struct Builder {
    catalog: Arc<Catalog>,
    clock: Arc<dyn Clock>,
    /// Random if not set.
    secret: Option<Secret>,
    options: MemoryOptions,
    namespaces: Vec<String>,
    listener: Option<EventListener>,
    sharding: Sharding,
}

/// Ticket ids that never repeat under one secret: a random half for the process, and a counter.
struct TicketIds {
    process: u64,
    next: AtomicU64,
}

impl Engine<Memory> {
    /// An engine with a memory store, the system clock and a random secret.
    pub fn new(catalog: Catalog) -> Self {
        Self::builder(catalog).build()
    }

    /// A builder, to set the clock, the secret, the memory limits or a listener.
    pub fn builder(catalog: Catalog) -> Builder {
        Builder {
            catalog: Arc::new(catalog),
            clock: Arc::new(SystemClock::new()),
            secret: None,
            options: MemoryOptions::default(),
            namespaces: Vec::new(),
            listener: None,
            sharding: Sharding::Unsharded,
        }
    }
}

impl Builder {
    /// Sets the clock, such as [`crate::ManualClock`] in tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
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

    /// Whether a secret was set.
    #[cfg(feature = "shared")]
    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
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
        Memory::with_groups(self.options, groups, Arc::clone(&self.clock))
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
            store,
            clock: self.clock,
            digester: Digester::new(&secret),
            sealer: TicketSealer::new(&secret),
            ids: TicketIds { process: u64::from_le_bytes(process), next: AtomicU64::new(1) },
            ban_storms: Mutex::default(),
            unlisted: Mutex::default(),
            listener: self.listener,
            sharding: self.sharding,
        }
    }
}

impl<S> Engine<S> {
    /// The active catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.rules.load().catalog)
    }

    /// Replaces the catalog. State is kept; the next decision uses the new catalog.
    ///
    /// If keys are grouped by an attribute (`shard_by`), the new catalog must use the same one.
    pub fn reload(&self, catalog: Catalog) {
        let reloaded = self.replace_catalog(catalog);
        self.emit(&reloaded);
    }

    /// Replaces the catalog. Returns the event, which the caller must report.
    pub(crate) fn replace_catalog(&self, catalog: Catalog) -> Event<'static> {
        let revision = catalog.revision.clone();
        let policies = catalog.policies.len() as u32;
        let catalog = Arc::new(catalog);
        self.update_rules(|rules| {
            let next = rules.with_catalog(Arc::clone(&catalog));
            #[cfg(feature = "records")]
            let next = next.with_hidden_entries(&self.digester);
            Ok::<_, Refusal>(next)
        })
        .ok();
        Event::CatalogReloaded { at: self.now(), revision, policies }
    }

    /// Overrides the mode of a policy, or returns it to the catalog's. Takes effect at once.
    pub fn set_mode(&self, policy: &str, mode: Option<Mode>) -> Result<(), Refusal> {
        self.update_rules(|rules| {
            rules.catalog.find(policy).ok_or_else(|| Refusal::UnknownPolicy(policy.to_owned()))?;
            Ok(rules.with_mode(policy, mode))
        })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Undeclared gates that were checked, at most 1,000 of them.
    pub fn undeclared_gates(&self) -> Vec<String> {
        self.unlisted.lock().iter().cloned().collect()
    }

    pub(crate) fn rules(&self) -> arc_swap::Guard<Arc<RuleSet>> {
        self.rules.load()
    }

    /// The current instant, by the engine's clock.
    pub fn now(&self) -> catraca_core::time::Time {
        self.clock.now()
    }

    pub(crate) fn digester(&self) -> &Digester {
        &self.digester
    }

    fn update_rules<E>(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, E>,
    ) -> Result<(), E> {
        let _guard = self.write_lock.lock();
        // Loaded under the lock: two writers must not start from the same value, or one change is
        // lost.
        let next = change(&self.rules.load())?;
        self.rules.store(Arc::new(next));
        Ok(())
    }

    fn scope<'a>(&'a self, rules: &'a RuleSet, namespace: &'a str) -> KeyScope<'a> {
        KeyScope {
            digester: &self.digester,
            namespace,
            unlisted: None,
            sharding: &self.sharding,
            epochs: &rules.epochs,
        }
    }

    /// How keys are grouped on the servers of the store.
    pub fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Identifies how stored keys are made. State that was stored under another id is not found.
    #[cfg(feature = "records")]
    pub(crate) fn keys_id(&self) -> String {
        // Stored in the records and compared at every start: these texts must not change.
        let secret = self.digester.cell_key_id();
        match &self.sharding {
            Sharding::Unsharded => secret.to_owned(),
            Sharding::Namespace => format!("{secret} spread by namespace"),
            Sharding::Attribute(attribute) => format!("{secret} spread by {attribute}"),
        }
    }

    /// The current rules, for an async operation that keeps them over an await.
    #[cfg(feature = "shared")]
    pub(crate) fn rules_snapshot(&self) -> Arc<RuleSet> {
        self.rules.load_full()
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Remembers an undeclared gate. Returns whether it is a new one.
    fn note_unlisted(&self, gate: &str) -> bool {
        let mut names = self.unlisted.lock();
        let is_new = names.len() < UNLISTED_MAX && !names.contains(gate);
        if is_new {
            names.insert(gate.to_owned());
        }
        is_new
    }
}

impl<S: Store> fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("revision", &self.rules.load().catalog.revision).finish()
    }
}

impl TicketIds {
    fn next(&self) -> u128 {
        let counted = self.next.fetch_add(1, Ordering::Relaxed);
        u128::from(self.process) << 64 | u128::from(counted)
    }
}

/// Finds a policy by name.
fn find_policy(rules: &RuleSet, policy: &str) -> Result<PolicyId, Refusal> {
    let found = rules.catalog.find(policy).map(|(id, _)| id);
    found.ok_or_else(|| Refusal::UnknownPolicy(policy.to_owned()))
}

/// The namespace of callers that name none.
pub const fn default_namespace() -> &'static str {
    DEFAULT_NAMESPACE
}

/// Random bytes from the system. Without them no secret can be made, so the process must not start.
#[expect(clippy::expect_used, reason = "there is nothing to fall back to")]
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
