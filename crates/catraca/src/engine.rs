//! The engine: joins catalog, clock and store, with one method per operation.
//!
//! Each operation selects policies, plans a batch, applies it to the store, concludes the reply and
//! emits events. In process, `check` is a plain function call: it uses no other thread and takes no
//! lock to read the catalog. Rules belong in core, and wire formats in the front ends.

mod buckets;
mod builder;
mod check;
mod credit;
mod exchange;
mod fact_changes;
mod gate_error;
mod gate_handle;
#[cfg(all(feature = "shared", feature = "records"))]
mod local_changes;
#[cfg(feature = "shared")]
mod local_share;
mod operator;
#[cfg(feature = "records")]
mod operator_lists;
mod policy_reset;
#[cfg(feature = "records")]
mod resume;
mod settle;
mod stored_values;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catraca_core::ban_storm::BanStorm;
use catraca_core::catalog::Catalog;
use catraca_core::digest::Digester;
use catraca_core::plan::KeyScope;
use catraca_core::policy::{Mode, Name, PolicyId};
use catraca_core::refusal::Refusal;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_core::sharding::Sharding;
use catraca_core::ticket::TicketSealer;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::event::{Event, EventListener};
use crate::memory::Memory;
use crate::rule_set::{RulePart, RuleSet};
use crate::store::Store;

pub use buckets::{BucketObservation, OBSERVATIONS_MAX};
pub use builder::Builder;
pub use check::{CheckMode, CheckPlan, RulesSnapshot};
pub use credit::Credit;
pub use gate_error::GateError;
pub use gate_handle::{GateHandle, OwnedGate};
#[cfg(feature = "records")]
pub use operator_lists::ListedEntry;
#[cfg(feature = "records")]
pub use resume::{ResumeError, ResumeSummary};
pub use settle::{CheckRef, Settle};

#[cfg(feature = "shared")]
pub(crate) use exchange::{BatchTarget, Events, Exchange, FailureModes, ReplySource, StoreReply};
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use local_changes::LocalChanges;
#[cfg(feature = "shared")]
pub(crate) use local_share::local_charge;
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use policy_reset::SWEEP_BATCH;
#[cfg(all(feature = "shared", feature = "records"))]
pub(crate) use resume::ResumeBatches;
#[cfg(feature = "shared")]
pub(crate) use settle::{matches_head_ban, recall_reply};

/// How many undeclared gate names are remembered for reports. Callers may choose such names, so the
/// set must be bounded.
const UNLISTED_MAX: usize = 1_000;

/// Decides for any API: may this caller pass now, what does it cost, and what happens when they
/// misbehave.
///
/// ```
/// use std::sync::Arc;
/// use std::thread;
///
/// use catraca::{Catalog, Check, Engine};
///
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let engine = Arc::new(Engine::new(catalog));
/// let of_thread = Arc::clone(&engine);
/// let check = Check::new("api", [("ip", "198.51.100.7")]);
/// let from_thread = check.clone();
/// thread::spawn(move || of_thread.check(&from_thread)).join().expect("it does not panic")?;
/// assert_eq!(engine.peek(&check)?.remaining, Some(8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine<S = Memory> {
    rules: ArcSwap<RuleSet>,
    /// Serializes writers of `rules`. Readers load the current value and never wait.
    write_lock: Mutex<()>,
    #[cfg(all(feature = "shared", feature = "records"))]
    local_changes: LocalChanges,
    store: S,
    clock: Arc<dyn Clock>,
    digester: Digester,
    sealer: TicketSealer,
    ids: TicketIds,
    ban_storms: Mutex<HashMap<Name, BanStorm>>,
    unlisted: Mutex<BTreeSet<String>>,
    listener: Option<EventListener>,
    /// Whether the events of decisions have their keys.
    report_keys: bool,
    /// How keys are grouped on the servers of the store. It never changes: with other groups the
    /// keys would differ, and stored state would not be found.
    sharding: Sharding,
}

/// Ticket ids that never repeat under one secret: a random half for the process, and a counter.
struct TicketIds {
    process: u64,
    next: AtomicU64,
}

impl Engine<Memory> {
    /// An engine with a memory store, the system clock and a random secret. To share it between
    /// threads, put it into an [`Arc`].
    pub fn new(catalog: Catalog) -> Self {
        Self::builder(catalog).build()
    }

    /// A builder, to set the clock, the secret, the memory limits or a listener.
    pub fn builder(catalog: Catalog) -> Builder {
        Builder::new(catalog)
    }
}

impl<S> Engine<S> {
    /// The active catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.rules.load().catalog)
    }

    /// Replaces the catalog. State is kept; the next decision uses the new catalog.
    ///
    /// ```
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '1 per 1m'")?;
    /// let engine = Engine::new(catalog);
    /// let api = engine.gate("api")?;
    /// assert!(api.check(["198.51.100.7"])?.allowed);
    /// assert!(!api.check(["198.51.100.7"])?.allowed);
    /// engine.reload(Catalog::parse("[policy.api]\n by = ['ip']\n window = '2 per 1m'")?);
    /// assert!(api.check(["198.51.100.7"])?.allowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            let next = next.with_normalised_lists(&self.digester);
            Ok::<_, Refusal>(next)
        })
        .ok();
        Event::CatalogReloaded { at: self.now(), revision, policies }
    }

    /// Overrides the mode of a policy, or returns it to the catalog's. Takes effect at once.
    ///
    /// ```
    /// use catraca::catalog::Mode;
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '0 per 1m'")?;
    /// let engine = Engine::new(catalog);
    /// let api = engine.gate("api")?;
    /// assert!(!api.check(["198.51.100.7"])?.allowed);
    /// engine.set_mode("api", Some(Mode::Shadow))?; // decided and reported, but never denied
    /// assert!(api.check(["198.51.100.7"])?.allowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_mode(&self, policy: &str, mode: Option<Mode>) -> Result<(), Refusal> {
        find_policy(&self.rules.load(), policy)?;
        let policy = Name::from(policy);
        self.change_rules(RulePart::Modes, move |rules| {
            rules.set_override(&policy, mode);
            Ok(())
        })
    }

    /// Overrides the mode of a policy as another node did: not a change of this node.
    #[cfg(all(feature = "shared", feature = "records"))]
    pub(crate) fn override_mode(&self, policy: &str, mode: Option<Mode>) {
        let changed = self.update_rules(|rules| {
            let mut next = rules.clone();
            next.set_override(policy, mode);
            next.rebuild(RulePart::Modes, &self.digester);
            Ok::<_, Refusal>(next)
        });
        debug_assert!(changed.is_ok(), "this change is never refused");
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
    #[doc(hidden)]
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

    /// Makes a change of this node to lists, facts or modes. Until it is in the records, it is
    /// applied again to what is read from them.
    fn change_rules<R>(
        &self,
        part: RulePart,
        change: impl Fn(&mut RuleSet) -> Result<R, Refusal> + Send + Sync + 'static,
    ) -> Result<R, Refusal> {
        let _guard = self.write_lock.lock();
        let mut next = RuleSet::clone(&self.rules.load());
        let result = change(&mut next)?;
        next.rebuild(part, &self.digester);
        self.rules.store(Arc::new(next));
        #[cfg(all(feature = "shared", feature = "records"))]
        self.local_changes.add(move |rules| drop(change(rules)));
        Ok(result)
    }

    #[cfg(all(feature = "shared", feature = "records"))]
    pub(crate) fn local_changes(&self) -> &LocalChanges {
        &self.local_changes
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
