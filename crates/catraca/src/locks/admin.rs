//! Operator calls: list leases, statistics, force-release a lease, clear a tenant.
//!
//! Lease ids are not shown. Lists and clears are several short operations of the store, so that
//! other callers get their turn in between.

use std::collections::BTreeMap;
use std::time::Duration;

use catraca_core::lock::counters::{AttemptCounts, AttemptCountsKey};
use catraca_core::lock::reply::{Lease, LeaseTarget};
use catraca_core::lock::{LockOp, LockOutcome};
use catraca_core::time::Span;

use super::Locks;
use super::lock_error::LockError;
use super::metrics::DurationHistogram;
use super::port::FreedNotice;

/// The most leases examined for one page.
const EXAMINED_MAX: usize = 10_000;
/// The largest page size.
pub const PAGE_MAX: usize = 1_000;
/// Leases per list operation.
const LISTED_AT_ONCE: usize = 200;
/// Leases that one clear operation ends.
const CLEARED_AT_ONCE: usize = 200;
/// The longest cooldown of names after an operator ended their lease.
#[doc(hidden)]
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

/// Counts of all namespaces of a store in this process.
#[derive(Clone, Debug)]
pub struct LockTotals<'l> {
    /// By kind; callers choose the names of kinds.
    pub kinds: BTreeMap<Box<str>, AttemptCounts>,
    /// Leases in memory, including ended ones that are remembered.
    pub lease_entries: usize,
    /// How long leases were held.
    pub held_times: &'l DurationHistogram,
}

impl Locks {
    /// Active leases with a fence above `after`, oldest first; at most `limit` of them.
    pub async fn list(
        &self,
        namespace: &str,
        filter: &LeaseFilter<'_>,
        after: i64,
        limit: usize,
    ) -> Result<LockPage, LockError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let mut page = LockPage { leases: Vec::new(), next: Some(after) };
        let mut examined = 0;
        while let Some(after) = page.next.filter(|_| examined < EXAMINED_MAX) {
            let op = LockOp::List { after, most: LISTED_AT_ONCE };
            let LockOutcome::Listed { leases, next } = self.ask(namespace, &op).await?.outcome
            else {
                return Err(LockError::unexpected_reply());
            };
            examined += LISTED_AT_ONCE;
            page.next = next;
            for lease in leases.into_iter().filter(|lease| filter.matches(lease)) {
                page.leases.push(lease);
                if page.leases.len() == limit {
                    page.next = page.leases.last().map(|lease| lease.fence);
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// Statistics of one tenant, or of all, over all nodes; waiting callers only of this process.
    pub async fn stats_of(
        &self,
        namespace: &str,
        tenant: Option<&str>,
    ) -> Result<LockStats, LockError> {
        // Leases that have expired must not count as active.
        self.sweep(namespace).await?;
        let LockOutcome::Counters(rows) = self.ask(namespace, &LockOp::Counters).await?.outcome
        else {
            return Err(LockError::unexpected_reply());
        };
        Ok(LockStats::of(rows, tenant, self.queues.waiting_in(namespace, tenant)))
    }

    /// Ends a lease by its fence. Its names stay taken for `cool_down`, so that the holder can
    /// notice.
    pub async fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: impl Into<Duration>,
    ) -> Result<Option<Lease>, LockError> {
        let tenant = tenant.map(Box::from);
        let cool_down = Span::from(cool_down.into()).min(COOL_DOWN_MAX);
        let op = LockOp::Force { fence, tenant, cool_down };
        let LockOutcome::Forced(lease) = self.ask(namespace, &op).await?.outcome else {
            return Err(LockError::unexpected_reply());
        };
        let Some(lease) = lease else { return Ok(None) };
        if let LeaseTarget::Names(names) = &lease.target {
            // The names are free after the cool-down, which is earlier than their waiters know.
            for name in names {
                self.queues.on_freed(FreedNotice::Name(name.digest(namespace)));
            }
        }
        Ok(Some(*lease))
    }

    /// Ends all leases that a tenant holds now, except confirmed slots, and returns how many.
    /// Leases granted meanwhile stay.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Result<usize, LockError> {
        let mut count = 0;
        let mut next = Some(0);
        let mut last = None;
        while let Some(after) = next {
            let tenant = tenant.map(Box::from);
            let most = CLEARED_AT_ONCE;
            let op = LockOp::Clear { tenant, after, upto: last, most };
            let outcome = self.ask(namespace, &op).await?.outcome;
            // The first reply fixes the highest fence to clear.
            let LockOutcome::Cleared { ended, next: on, upto } = outcome else {
                return Err(LockError::unexpected_reply());
            };
            count += ended;
            next = on;
            last = Some(upto);
            // The memory store answers at once; other calls get their turn here.
            tokio::task::yield_now().await;
        }
        Ok(count)
    }
}

impl LockStats {
    /// Sums the rows of one tenant, or all rows.
    fn of(
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
    fn matches(&self, lease: &Lease) -> bool {
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
