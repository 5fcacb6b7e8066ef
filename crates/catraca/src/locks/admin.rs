//! Operator calls: list leases, statistics, force-release a lease, clear a tenant.
//!
//! Lease ids are not shown. Long calls release the mutex now and then.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use catraca_core::lock::counters::{AttemptCounts, AttemptCountsKey};
use catraca_core::lock::reply::{Lease, LeaseTarget};
use catraca_core::time::Span;

use super::Locks;
use super::lock_error::LockError;
use super::metrics::LockTimes;

/// The most leases examined for one page.
pub(super) const EXAMINED_MAX: usize = 10_000;
/// The largest page size.
pub const PAGE_MAX: usize = 1_000;
/// Leases that `clear` ends before it yields to other calls.
pub(super) const CLEARED_AT_ONCE: usize = 200;
/// The longest cooldown of names after an operator ended their lease.
pub const COOL_DOWN_MAX: Span = Span::from_secs(60);

/// Which leases to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseFilter<'a> {
    /// Only of this tenant.
    pub tenant: Option<&'a str>,
    /// Only of this kind.
    pub kind: Option<&'a str>,
    /// Only with a name or calendar that has this prefix.
    pub prefix: Option<&'a str>,
}

/// One page of leases.
#[derive(Clone, Debug)]
pub struct LockPage {
    /// The leases, oldest first.
    pub leases: Vec<Lease>,
    /// The fence after which the next page begins; absent on the last page.
    pub next: Option<i64>,
}

/// Statistics of attempts and leases.
#[derive(Clone, Debug, Default)]
pub struct LockStats {
    /// By tenant and kind.
    pub rows: Vec<StatsRow>,
    /// The sum of all rows.
    pub all: AttemptCounts,
    /// Callers that wait now.
    pub waiters: usize,
}

/// Statistics of one tenant and kind.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The kind.
    pub kind: Box<str>,
    /// The counts.
    pub counts: AttemptCounts,
}

/// Statistics of all namespaces.
#[derive(Clone, Debug)]
pub struct LockTotals<'l> {
    /// By kind; callers choose the names of kinds.
    pub kinds: BTreeMap<Box<str>, AttemptCounts>,
    /// Callers that wait now.
    pub waiters: usize,
    /// Leases in memory, including ended ones that are remembered.
    pub lease_entries: usize,
    /// Calls that failed because the journal could not be written.
    pub write_failures: u64,
    /// Durations of waits and of leases.
    pub times: &'l LockTimes,
}

impl Locks {
    /// Active leases with a fence above `after`, oldest first.
    pub fn list(
        &self,
        namespace: &str,
        filter: &LeaseFilter<'_>,
        (after, limit): (i64, usize),
    ) -> Result<LockPage, LockError> {
        let ns = self.namespace(namespace)?;
        let limit = limit.clamp(1, PAGE_MAX);
        let mut leases = Vec::new();
        let mut next = None;
        let mut examined = 0;
        let mut state = ns.state.lock();
        state.table.list(after, self.clock.now(), |lease| {
            if leases.len() == limit || examined == EXAMINED_MAX {
                return ControlFlow::Break(());
            }
            examined += 1;
            next = Some(lease.fence);
            if filter.matches(lease) {
                leases.push(lease.clone());
            }
            ControlFlow::Continue(())
        });
        let more = leases.len() == limit || examined == EXAMINED_MAX;
        Ok(LockPage { leases, next: next.filter(|_| more) })
    }

    /// Statistics of a namespace.
    pub fn stats(&self, namespace: &str) -> Result<LockStats, LockError> {
        self.stats_of(namespace, None)
    }

    /// Statistics of one tenant, or of all.
    pub fn stats_of(&self, namespace: &str, tenant: Option<&str>) -> Result<LockStats, LockError> {
        let ns = self.namespace(namespace)?;
        let mut state = ns.state.lock();
        while state.table.sweep(self.clock.now()) {}
        let rows = state.table.counters().rows().map(|(row, counts)| (row.clone(), *counts));
        let stats = LockStats::of(rows, tenant, state.waiting_of(tenant));
        drop(state);
        self.process_ends(&ns);
        Ok(stats)
    }

    /// Statistics of all namespaces, for metrics.
    pub fn totals(&self) -> LockTotals<'_> {
        let mut totals = LockTotals {
            kinds: BTreeMap::new(),
            waiters: 0,
            lease_entries: 0,
            write_failures: self.write_failures.load(Ordering::Relaxed),
            times: &self.times,
        };
        for ns in self.all_namespaces() {
            let state = ns.state.lock();
            totals.waiters += state.waiting;
            totals.lease_entries += state.table.len();
            for ((_, kind), counts) in state.table.counters().rows() {
                let row = totals.kinds.entry(kind.clone()).or_default();
                *row = row.plus(counts);
            }
        }
        totals
    }

    /// Ends a lease by its fence. Its names stay taken for `cool_down`, so that the holder can
    /// notice.
    pub fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> Result<Option<Lease>, LockError> {
        let ns = self.namespace(namespace)?;
        let now = self.clock.now();
        let forced = {
            let mut state = ns.state.lock();
            let found = state.table.find(fence, now);
            let is_visible = |lease: &Lease| tenant.is_none() || lease.tenant() == tenant;
            let cool_down = cool_down.min(COOL_DOWN_MAX);
            let forced =
                found.filter(is_visible).and_then(|_| state.table.force(fence, cool_down, now));
            if let Some(lease) = &forced {
                state.start_cooldown(lease, now.after(cool_down));
            }
            forced
        };
        self.process_ends(&ns);
        Ok(forced)
    }

    /// Ends all leases that a tenant holds now, except confirmed slots, and returns how many.
    /// Leases granted meanwhile stay.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Result<usize, LockError> {
        let ns = self.namespace(namespace)?;
        let upto = ns.state.lock().table.fence();
        let mut count = 0;
        let mut next = Some(0);
        while let Some(after) = next {
            let now = self.clock.now();
            let fences = (after, upto);
            let cleared = ns.state.lock().table.clear(tenant, fences, CLEARED_AT_ONCE, now);
            count += cleared.0;
            next = cleared.1;
            self.process_ends(&ns);
            tokio::task::yield_now().await;
        }
        Ok(count)
    }
}

impl LockStats {
    /// Sums the rows of one tenant, or all rows.
    pub(super) fn of(
        rows: impl IntoIterator<Item = (AttemptCountsKey, AttemptCounts)>,
        only: Option<&str>,
        waiters: usize,
    ) -> Self {
        let mut stats = Self { waiters, ..Self::default() };
        for ((tenant, kind), counts) in rows {
            if only.is_none() || tenant.as_deref() == only {
                stats.all = stats.all.plus(&counts);
                stats.rows.push(StatsRow { tenant, kind, counts });
            }
        }
        stats
    }
}

impl LeaseFilter<'_> {
    pub(super) fn matches(&self, lease: &Lease) -> bool {
        let has_prefix = |prefix: &str| match &lease.target {
            LeaseTarget::Names(names) => names.iter().any(|name| name.key.starts_with(prefix)),
            LeaseTarget::Slot(names, _) => {
                names.iter().any(|name| name.calendar.starts_with(prefix))
            }
        };
        self.tenant.is_none_or(|tenant| lease.tenant() == Some(tenant))
            && self.kind.is_none_or(|kind| &*lease.kind == kind)
            && self.prefix.is_none_or(has_prefix)
    }
}
