//! Counters of what was decided, by policy, reason and mode; never by caller.
//!
//! Labels come from the catalog and from our own words, so that no caller can make a series. A
//! decision finds its row by one look into an immutable table. Must not take a lock, nor allocate,
//! on the way of a check.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use catraca::event::Event;
use catraca::settlement::Settled;
use catraca::{Catalog, Decision};
use parking_lot::Mutex;

use super::policies::Rows;
use crate::http::{Clocked, Times};

/// The event of a credit that no policy of the catalog knows.
const OTHER: &str = "(other)";
/// What a settle comes to, by its place.
const SETTLED: [(&str, Settled); 3] =
    [("applied", Settled::Applied), ("again", Settled::Again), ("expired", Settled::Expired)];
/// What became of a catalog, by its place: whether it was put in force.
const RELOADED: [&str; 2] = ["refused", "applied"];

/// What happened so far.
pub struct Meter {
    rows: ArcSwap<Rows>,
    degraded: AtomicU64,
    /// Trips to a shared store: how long they took, and how many had no answer.
    trips: Clocked,
    lost: AtomicU64,
    settles: [AtomicU64; SETTLED.len()],
    credits: Mutex<Credits>,
    conditions_failed: AtomicU64,
    bodies_truncated: AtomicU64,
    reloads: [AtomicU64; RELOADED.len()],
}

/// Credits by event and by what they came to.
#[derive(Default)]
struct Credits {
    events: Vec<String>,
    counts: BTreeMap<(String, &'static str), u64>,
}

impl Meter {
    /// A meter that has seen nothing of this catalog's policies.
    pub fn new(catalog: &Catalog) -> Self {
        let meter = Self {
            rows: ArcSwap::from_pointee(Rows::new(catalog, None)),
            degraded: AtomicU64::default(),
            trips: Clocked::default(),
            lost: AtomicU64::default(),
            settles: Default::default(),
            credits: Mutex::default(),
            conditions_failed: AtomicU64::default(),
            bodies_truncated: AtomicU64::default(),
            reloads: Default::default(),
        };
        meter.credits.lock().events = events(catalog);
        meter
    }

    /// Learns of another catalog, before it is in force.
    pub fn know(&self, catalog: &Catalog) {
        let rows = Rows::new(catalog, Some(&self.rows.load()));
        self.rows.store(Arc::new(rows));
        self.credits.lock().events = events(catalog);
    }

    /// Hears an event.
    pub fn hear(&self, event: &Event<'_>) {
        match event {
            Event::Decided { decision, .. } => self.decided(decision),
            Event::Blocked(block) => {
                self.rows.load().of(&block.policy).block(block.origin, block.shadow);
            }
            Event::Settled(settlement) => {
                self.settled(settlement.state);
                add(&self.bodies_truncated, u64::from(settlement.body_truncated));
            }
            Event::NotSettled(state) => self.settled(*state),
            Event::Watched { at, policy, in_part } => {
                if let Some(watch) = &self.rows.load().of(policy).watch {
                    watch.count(*at, *in_part);
                }
            }
            Event::Credited { event, refused } => {
                self.credited(event, refused.map_or("applied", |refused| refused.as_str()));
            }
            Event::LowWater { policy, .. } => add(&self.rows.load().of(policy).low_water, 1),
            Event::Storm { policy, .. } => {
                let rows = self.rows.load();
                rows.of(policy).storms.iter().for_each(|storms| add(storms, 1));
            }
            Event::Asked { took, failed } => {
                self.trips.note(Duration::from_micros(took.micros().unsigned_abs()));
                add(&self.lost, u64::from(*failed));
            }
            Event::ConditionsFailed { count } => add(&self.conditions_failed, u64::from(*count)),
            _ => {}
        }
    }

    /// How long trips to a shared store took, and how many had no answer.
    pub fn trips(&self) -> (Times, u64) {
        (self.trips.times(), read(&self.lost))
    }

    /// Notes whether a catalog was put in force.
    pub fn reloaded(&self, applied: bool) {
        add(&self.reloads[usize::from(applied)], 1);
    }

    /// Catalogs that were refused, and that were put in force.
    pub fn reloads(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RELOADED.iter().zip(&self.reloads).map(|(word, count)| (*word, read(count)))
    }

    /// Every policy's figures.
    pub fn rows(&self) -> Arc<Rows> {
        self.rows.load_full()
    }

    /// Settles by what they came to.
    pub fn settles(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SETTLED.iter().zip(&self.settles).map(|((word, _), count)| (*word, read(count)))
    }

    /// Credits by event and by what they came to.
    pub fn credits(&self) -> Vec<((String, &'static str), u64)> {
        let credits = self.credits.lock();
        credits.counts.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }

    /// Decisions made with less than what they should know, conditions that could not be judged,
    /// and bodies that conditions did not see because they are too large.
    pub fn troubles(&self) -> [u64; 3] {
        [&self.degraded, &self.conditions_failed, &self.bodies_truncated].map(read)
    }

    fn decided(&self, decision: &Decision) {
        let rows = self.rows.load();
        let named = decision.policy.as_deref().map_or_else(|| rows.nobody(), |name| rows.of(name));
        named.decisions.add(decision.reason, decision.mode);
        if decision.degraded {
            add(&self.degraded, 1);
        }
        for row in &decision.rows {
            if !row.allowed {
                rows.of(&row.policy).denials.add(row.reason, row.mode);
            }
            if rows.any_low_water()
                && let Some(lowest) = &rows.of(&row.policy).lowest
                && let Some((remaining, limit)) = row.remaining.zip(row.limit)
            {
                lowest.note(decision.at, remaining, limit);
            }
        }
    }

    fn settled(&self, state: Settled) {
        let place = SETTLED.iter().position(|(_, one)| *one == state).unwrap_or_default();
        add(&self.settles[place], 1);
    }

    /// An event's name comes from a caller, so only those of the catalog are told apart.
    fn credited(&self, event: &str, came: &'static str) {
        let mut credits = self.credits.lock();
        let known = credits.events.iter().any(|known| known == event);
        let event = if known { event } else { OTHER };
        *credits.counts.entry((event.to_owned(), came)).or_default() += 1;
    }
}

/// The names of the events that earn something.
fn events(catalog: &Catalog) -> Vec<String> {
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

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
