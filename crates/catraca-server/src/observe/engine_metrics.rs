//! Counters of decisions, blocks, settles, credits and reloads, by policy, reason and mode.
//!
//! Labels come from the catalog and from fixed sets, never from callers, so that a caller cannot
//! create series. A check takes no lock and allocates nothing here: it finds its policy's counters
//! in an immutable table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use catraca::core::route::UNROUTED;
use catraca::event::{BlockEvent, Event};
use catraca::settlement::SettleState;
use catraca::{Catalog, Decision};
use parking_lot::Mutex;

use super::latency::{HistogramSnapshot, LatencyHistogram};
use super::policy_metrics::PolicyMetricsTable;

/// The label of credit events that no policy of the catalog names.
const OTHER: &str = "(other)";
/// The label values of `settles`, in the order of `settle_index`.
const SETTLE_RESULTS: [&str; 3] = ["applied", "again", "expired"];
/// The label values of `reloads`, which is indexed by `usize::from(applied)`.
const RELOAD_RESULTS: [&str; 2] = ["refused", "applied"];

/// All counters since the start.
pub struct EngineMetrics {
    policies: ArcSwap<PolicyMetricsTable>,
    degraded: AtomicU64,
    /// Latencies of round trips to the shared store.
    round_trips: LatencyHistogram,
    /// How many of them failed.
    round_trips_failed: AtomicU64,
    settles: [AtomicU64; SETTLE_RESULTS.len()],
    credits: Mutex<Credits>,
    bodies_truncated: AtomicU64,
    /// Checks of undeclared gates.
    unlisted_checks: AtomicU64,
    /// Operators' queries that did not wait for all queued records.
    incomplete_queries: AtomicU64,
    reloads: [AtomicU64; RELOAD_RESULTS.len()],
}

/// Credits by event and result.
#[derive(Default)]
struct Credits {
    /// The event names of the catalog, sorted.
    events: Vec<String>,
    /// By event and result.
    counts: BTreeMap<(String, &'static str), u64>,
}

impl EngineMetrics {
    /// Counters at zero, for the policies of this catalog.
    pub fn new(catalog: &Catalog) -> Self {
        let metrics = Self {
            policies: ArcSwap::from_pointee(PolicyMetricsTable::new(catalog, None)),
            degraded: AtomicU64::default(),
            round_trips: LatencyHistogram::default(),
            round_trips_failed: AtomicU64::default(),
            settles: Default::default(),
            credits: Mutex::default(),
            bodies_truncated: AtomicU64::default(),
            unlisted_checks: AtomicU64::default(),
            incomplete_queries: AtomicU64::default(),
            reloads: Default::default(),
        };
        metrics.credits.lock().events = credit_events(catalog);
        metrics
    }

    /// Adds the policies of another catalog. Called before it is applied, so that its first
    /// decisions find their counters.
    pub fn prepare_catalog(&self, catalog: &Catalog) {
        let policies = PolicyMetricsTable::new(catalog, Some(&self.policies.load()));
        self.policies.store(Arc::new(policies));
        self.credits.lock().events = credit_events(catalog);
    }

    /// Counts an event.
    pub fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Decided { gate, decision, .. } => {
                let is_unlisted = decision.unlisted && *gate != UNROUTED;
                add(&self.unlisted_checks, u64::from(is_unlisted));
                self.count_decision(decision);
            }
            Event::Blocked { block, .. } => {
                let policies = self.policies.load();
                let BlockEvent { subject, block, .. } = &**block;
                policies.policy(&subject.policy).count_block(block.origin, block.shadow);
            }
            Event::Settled(settlement) => {
                self.count_settle(settlement.state);
                add(&self.bodies_truncated, u64::from(settlement.body_truncated));
            }
            Event::NotSettled { state, .. } => self.count_settle(*state),
            Event::RatioCounted { at, policy, in_part } => {
                if let Some(watch) = &self.policies.load().policy(policy).watch {
                    watch.count(*at, *in_part);
                }
            }
            Event::Credited { event, refused } => {
                self.count_credit(event, refused.map_or("applied", |refused| refused.as_str()));
            }
            Event::LowWater { policy, .. } => {
                add(&self.policies.load().policy(policy).low_water, 1)
            }
            Event::BanStorm { policy, .. } => {
                let policies = self.policies.load();
                policies.policy(policy).storms.iter().for_each(|storms| add(storms, 1));
            }
            Event::StoreCalled { took, failed } => {
                self.round_trips.note(Duration::from_micros(took.micros().unsigned_abs()));
                add(&self.round_trips_failed, u64::from(*failed));
            }
            Event::RecordsBehind { .. } => add(&self.incomplete_queries, 1),
            Event::ConditionsFailed { policy, count, .. } => {
                let policies = self.policies.load();
                add(&policies.policy(policy).conditions_failed, u64::from(*count));
            }
            _ => {}
        }
    }

    /// Latencies of round trips to the shared store, and how many failed.
    pub fn store_round_trips(&self) -> (HistogramSnapshot, u64) {
        (self.round_trips.snapshot(), read(&self.round_trips_failed))
    }

    /// Counts a reload, applied or refused.
    pub fn note_reload(&self, applied: bool) {
        add(&self.reloads[usize::from(applied)], 1);
    }

    /// Reloads by result.
    pub fn reloads(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RELOAD_RESULTS.iter().zip(&self.reloads).map(|(result, count)| (*result, read(count)))
    }

    /// The counters of all policies.
    pub fn policies(&self) -> Arc<PolicyMetricsTable> {
        self.policies.load_full()
    }

    /// Settles by result.
    pub fn settles(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SETTLE_RESULTS.iter().zip(&self.settles).map(|(result, count)| (*result, read(count)))
    }

    /// Credits by event and result.
    pub fn credits(&self) -> Vec<((String, &'static str), u64)> {
        let credits = self.credits.lock();
        credits.counts.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }

    /// Checks of gates that the catalog does not declare.
    pub fn unlisted_checks(&self) -> u64 {
        read(&self.unlisted_checks)
    }

    /// Operators' queries that were answered before all queued records were written.
    pub fn incomplete_queries(&self) -> u64 {
        read(&self.incomplete_queries)
    }

    /// Degraded decisions, and bodies that were too large for the conditions that read them.
    pub fn incomplete_inputs(&self) -> [u64; 2] {
        [&self.degraded, &self.bodies_truncated].map(read)
    }

    fn count_decision(&self, decision: &Decision) {
        let policies = self.policies.load();
        let named = match decision.policy.as_deref() {
            Some(name) => policies.policy(name),
            None => policies.without_policy(),
        };
        named.decisions.add(decision.reason, decision.mode);
        if decision.degraded {
            add(&self.degraded, 1);
        }
        for row in &decision.rows {
            if !row.allowed {
                policies.policy(&row.policy).denials.add(row.reason, row.mode);
            }
            if policies.any_low_water()
                && let Some(lowest) = &policies.policy(&row.policy).lowest
                && let Some((remaining, limit)) = row.remaining.zip(row.limit)
            {
                lowest.note(decision.at, remaining, limit);
            }
        }
    }

    fn count_settle(&self, state: SettleState) {
        add(&self.settles[settle_index(state)], 1);
    }

    /// Counts a credit. The event's name comes from a caller, so names that are not in the catalog
    /// are counted as `(other)`.
    fn count_credit(&self, event: &str, result: &'static str) {
        let mut credits = self.credits.lock();
        let known = credits.events.iter().any(|known| known == event);
        let event = if known { event } else { OTHER };
        *credits.counts.entry((event.to_owned(), result)).or_default() += 1;
    }
}

/// The names of all credit events of a catalog.
fn credit_events(catalog: &Catalog) -> Vec<String> {
    let terms = catalog
        .policies
        .iter()
        .flat_map(|policy| policy.base.iter().chain(policy.tiers.iter().map(|tier| &tier.terms)));
    let mut names: Vec<String> =
        terms.flat_map(|terms| &terms.credits).map(|credit| credit.event.to_string()).collect();
    names.sort();
    names.dedup();
    names
}

/// Where a settle is counted; the match is exhaustive, so a new state needs a place here.
fn settle_index(state: SettleState) -> usize {
    match state {
        SettleState::Applied => 0,
        SettleState::Again => 1,
        SettleState::Expired => 2,
    }
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
