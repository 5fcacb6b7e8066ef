//! Counters of lock attempts and leases, by tenant and kind.
//!
//! In every row `total = success + conflicts`, and `success = active + released + expired +
//! forced`. The number of rows is bounded, since callers choose the names.

use std::collections::BTreeMap;

use super::reply::LeaseState;

/// The most rows. Later tenants and kinds share one row.
pub const ROWS_MAX: usize = 10_000;
/// The tenant and kind of the shared row.
pub const OTHERS: &str = "(others)";

/// The counts of one tenant and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptCounts {
    /// Attempts that were granted.
    pub success: u64,
    /// Attempts that failed because the name or range was taken.
    pub conflicts: u64,
    /// Live leases.
    pub active: u64,
    /// Leases that were released or cancelled.
    pub released: u64,
    /// Leases that expired.
    pub expired: u64,
    /// Leases that an operator ended.
    pub forced: u64,
    /// Grants that were reverted because they could not be persisted. They are in no other count.
    pub undone: u64,
}

/// The tenant and the kind of a row.
pub type AttemptCountsKey = (Option<Box<str>>, Box<str>);

/// The counters of one namespace.
#[derive(Clone, Debug, Default)]
pub struct LockCounters {
    rows: BTreeMap<AttemptCountsKey, AttemptCounts>,
}

impl AttemptCounts {
    /// All attempts that have a result.
    pub const fn total(&self) -> u64 {
        self.success + self.conflicts
    }

    /// The sum of two rows.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            success: self.success + other.success,
            conflicts: self.conflicts + other.conflicts,
            active: self.active + other.active,
            released: self.released + other.released,
            expired: self.expired + other.expired,
            forced: self.forced + other.forced,
            undone: self.undone + other.undone,
        }
    }
}

impl LockCounters {
    /// All rows, sorted by tenant and kind.
    pub fn rows(&self) -> impl Iterator<Item = (&AttemptCountsKey, &AttemptCounts)> {
        self.rows.iter()
    }

    pub(super) fn on_granted(&mut self, tenant: Option<&str>, kind: &str) {
        let row = self.row(tenant, kind);
        row.success += 1;
        row.active += 1;
    }

    /// A grant that could not be persisted.
    pub(super) fn on_undone(&mut self, tenant: Option<&str>, kind: &str) {
        let row = self.row(tenant, kind);
        row.undone += 1;
        // Saturating, because the counters of a partially loaded table start at zero, although its
        // leases were granted before.
        row.success = row.success.saturating_sub(1);
        row.active = row.active.saturating_sub(1);
    }

    pub(super) fn on_conflict(&mut self, tenant: Option<&str>, kind: &str) {
        self.row(tenant, kind).conflicts += 1;
    }

    pub(super) fn on_ended(&mut self, tenant: Option<&str>, kind: &str, how: LeaseState) {
        let row = self.row(tenant, kind);
        row.active = row.active.saturating_sub(1);
        match how {
            LeaseState::Released => row.released += 1,
            LeaseState::Expired => row.expired += 1,
            LeaseState::Forced => row.forced += 1,
            LeaseState::Held | LeaseState::Confirmed => {}
        }
    }

    /// An expired hold that was confirmed again: it counts as a new grant.
    pub(super) fn on_revived(&mut self, tenant: Option<&str>, kind: &str) {
        self.on_granted(tenant, kind);
    }

    /// The row of a tenant and kind. Rows are never removed, so that a lease ends in the row in
    /// which it was granted.
    fn row(&mut self, tenant: Option<&str>, kind: &str) -> &mut AttemptCounts {
        let mut row = (tenant.map(Box::from), Box::from(kind));
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&row) {
            row = (Some(OTHERS.into()), OTHERS.into());
        }
        self.rows.entry(row).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counters: &LockCounters) -> AttemptCounts {
        *counters.rows().next().unwrap().1
    }

    #[test]
    fn a_grant_that_was_undone_counts_only_as_undone() {
        let mut counters = LockCounters::default();
        counters.on_granted(None, "k");
        counters.on_granted(None, "k");
        counters.on_undone(None, "k");
        counters.on_undone(None, "k");
        assert_eq!(counts(&counters), AttemptCounts { undone: 2, ..AttemptCounts::default() });
    }

    #[test]
    fn every_end_is_counted_by_its_kind() {
        let mut counters = LockCounters::default();
        (0..6).for_each(|_| counters.on_granted(None, "k"));
        counters.on_revived(None, "k");
        for how in [LeaseState::Released, LeaseState::Expired, LeaseState::Forced] {
            counters.on_ended(None, "k", how);
            counters.on_ended(None, "k", how);
        }
        counters.on_conflict(None, "k");
        counters.on_conflict(None, "k");
        let expected = AttemptCounts {
            success: 7,
            conflicts: 2,
            active: 1,
            released: 2,
            expired: 2,
            forced: 2,
            undone: 0,
        };
        assert_eq!(counts(&counters), expected);
        assert_eq!(expected.total(), 9);
    }

    #[test]
    fn the_sum_of_two_rows_adds_every_count() {
        let row = AttemptCounts {
            success: 2,
            conflicts: 3,
            active: 4,
            released: 5,
            expired: 6,
            forced: 7,
            undone: 8,
        };
        let sum = AttemptCounts {
            success: 4,
            conflicts: 6,
            active: 8,
            released: 10,
            expired: 12,
            forced: 14,
            undone: 16,
        };
        assert_eq!(row.plus(&row), sum);
    }

    #[test]
    fn names_beyond_the_last_row_share_one() {
        let mut counters = LockCounters::default();
        for number in 0..=ROWS_MAX {
            counters.on_conflict(None, &number.to_string());
        }
        counters.on_conflict(None, "0");
        counters.on_conflict(Some("t"), "new");
        assert_eq!(counters.rows().count(), ROWS_MAX + 1);
        let conflicts = |tenant: Option<&str>, kind: &str| {
            let key = (tenant.map(Box::from), Box::from(kind));
            counters.rows().find(|row| *row.0 == key).map(|row| row.1.conflicts)
        };
        assert_eq!(conflicts(None, "0"), Some(2));
        assert_eq!(conflicts(Some(OTHERS), OTHERS), Some(2));
    }
}
