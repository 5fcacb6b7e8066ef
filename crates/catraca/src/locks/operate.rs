//! What operators see and do: lists, counts, ending a lease, clearing a tenant.
//!
//! Must not show a proof, nor keep a room locked for long.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use catraca_core::lock::reply::{View, What};
use catraca_core::lock::tally::{Counts, Row};
use catraca_core::time::Span;

use super::Locks;
use super::error::LockError;
use super::times::LockTimes;

/// Leases that are looked at for one page.
pub(super) const LOOKED_MAX: usize = 10_000;
/// The most leases of one page.
pub const PAGE_MAX: usize = 1_000;
/// Leases that are ended before others get their turn.
pub(super) const CLEARED_AT_ONCE: usize = 200;
/// The longest that names stay taken after an operator ended their lease.
pub const COOL_DOWN_MAX: Span = Span::from_secs(60);

/// Which leases to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Only of this tenant.
    pub tenant: Option<&'a str>,
    /// Only of this kind.
    pub kind: Option<&'a str>,
    /// Only with a name or calendar that begins like this.
    pub prefix: Option<&'a str>,
}

/// Some leases, and where to go on.
#[derive(Clone, Debug)]
pub struct LockPage {
    /// The leases, oldest first.
    pub leases: Vec<View>,
    /// The number after which the next page begins; none on the last.
    pub next: Option<i64>,
}

/// What became of all attempts.
#[derive(Clone, Debug, Default)]
pub struct LockStats {
    /// By tenant and kind.
    pub rows: Vec<StatsRow>,
    /// All rows together.
    pub all: Counts,
    /// How many wait right now.
    pub waiters: usize,
}

/// What became of the attempts of one tenant and kind.
#[derive(Clone, Debug)]
pub struct StatsRow {
    /// The tenant.
    pub tenant: Option<Box<str>>,
    /// The kind.
    pub kind: Box<str>,
    /// The counts.
    pub counts: Counts,
}

/// What became of all attempts in every namespace.
#[derive(Clone, Debug)]
pub struct LockTotals<'l> {
    /// By kind; a kind may be a caller's own word.
    pub kinds: BTreeMap<Box<str>, Counts>,
    /// How many wait right now.
    pub waiters: usize,
    /// Leases in memory, ended ones that are remembered included.
    pub kept: usize,
    /// Calls that failed because something could not be put on disk.
    pub unkept: u64,
    /// How long callers waited, and how long leases were held.
    pub times: &'l LockTimes,
}

impl Locks {
    /// Leases in force with numbers above one, oldest first.
    pub fn list(
        &self,
        namespace: &str,
        filter: &Filter<'_>,
        (after, limit): (i64, usize),
    ) -> Result<LockPage, LockError> {
        let room = self.room(namespace)?;
        let limit = limit.clamp(1, PAGE_MAX);
        let (mut leases, mut next, mut looked) = (Vec::new(), None, 0);
        let mut inner = room.inner.lock();
        inner.book.list(after, self.clock.now(), |view| {
            if leases.len() == limit || looked == LOOKED_MAX {
                return ControlFlow::Break(());
            }
            looked += 1;
            next = Some(view.fence);
            if filter.fits(view) {
                leases.push(view.clone());
            }
            ControlFlow::Continue(())
        });
        let more = leases.len() == limit || looked == LOOKED_MAX;
        Ok(LockPage { leases, next: next.filter(|_| more) })
    }

    /// What became of all attempts.
    pub fn stats(&self, namespace: &str) -> Result<LockStats, LockError> {
        self.stats_of(namespace, None)
    }

    /// What became of the attempts of one tenant, or of all.
    pub fn stats_of(&self, namespace: &str, tenant: Option<&str>) -> Result<LockStats, LockError> {
        let room = self.room(namespace)?;
        let mut inner = room.inner.lock();
        while inner.book.sweep(self.clock.now()) {}
        let rows = inner.book.tally().rows().map(|(row, counts)| (row.clone(), *counts));
        let stats = LockStats::of(rows, tenant, inner.waiting_of(tenant));
        drop(inner);
        self.tidy(&room);
        Ok(stats)
    }

    /// What became of all attempts in every namespace, for whoever watches the process.
    pub fn totals(&self) -> LockTotals<'_> {
        let mut totals = LockTotals {
            kinds: BTreeMap::new(),
            waiters: 0,
            kept: 0,
            unkept: self.unkept.load(Ordering::Relaxed),
            times: &self.times,
        };
        for room in self.all() {
            let inner = room.inner.lock();
            totals.waiters += inner.waiting;
            totals.kept += inner.book.len();
            for ((_, kind), counts) in inner.book.tally().rows() {
                let row = totals.kinds.entry(kind.clone()).or_default();
                *row = row.plus(counts);
            }
        }
        totals
    }

    /// Ends a lease by its number; its names stay taken for a moment, for its holder to notice.
    pub fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> Result<Option<View>, LockError> {
        let room = self.room(namespace)?;
        let now = self.clock.now();
        let forced = {
            let mut inner = room.inner.lock();
            let found = inner.book.find(fence, now);
            let ours = |view: &View| tenant.is_none() || view.tenant() == tenant;
            let cool_down = cool_down.min(COOL_DOWN_MAX);
            let forced = found.filter(ours).and_then(|_| inner.book.force(fence, cool_down, now));
            if let Some(view) = &forced {
                inner.cool(view, now.after(cool_down));
            }
            forced
        };
        self.tidy(&room);
        Ok(forced)
    }

    /// Ends all that a tenant holds at this moment, but not what is confirmed; says how many. What
    /// is taken while it works stays.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Result<usize, LockError> {
        let room = self.room(namespace)?;
        let upto = room.inner.lock().book.fence();
        let (mut count, mut next) = (0, Some(0));
        while let Some(after) = next {
            let now = self.clock.now();
            let some = room.inner.lock().book.clear(tenant, (after, upto), CLEARED_AT_ONCE, now);
            count += some.0;
            next = some.1;
            self.tidy(&room);
            tokio::task::yield_now().await;
        }
        Ok(count)
    }
}

impl LockStats {
    /// Adds the rows of one tenant up, or all rows.
    pub(super) fn of(
        rows: impl IntoIterator<Item = (Row, Counts)>,
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

impl Filter<'_> {
    pub(super) fn fits(&self, view: &View) -> bool {
        let begins = |prefix: &str| match &view.what {
            What::Names(names) => names.iter().any(|name| name.key.starts_with(prefix)),
            What::Slot(names, _) => names.iter().any(|name| name.calendar.starts_with(prefix)),
        };
        self.tenant.is_none_or(|tenant| view.tenant() == Some(tenant))
            && self.kind.is_none_or(|kind| &*view.kind == kind)
            && self.prefix.is_none_or(begins)
    }
}
