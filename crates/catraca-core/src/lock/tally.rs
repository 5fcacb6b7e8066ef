//! Counts that add up: what became of every attempt, by tenant and kind.
//!
//! In every row `total = success + conflicts`, and `success = active + released + expired +
//! forced`. Must not grow with the names that callers make up.

use std::collections::BTreeMap;

use super::reply::State;

/// The most rows; whoever comes later is counted with others.
pub const ROWS_MAX: usize = 10_000;
/// The tenant of the row that is shared when there are too many.
pub const OTHERS: &str = "(others)";

/// One row of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts that were granted.
    pub success: u64,
    /// Attempts that met somebody else.
    pub conflicts: u64,
    /// Leases in force.
    pub active: u64,
    /// Leases that were given back.
    pub released: u64,
    /// Leases that ended by themselves.
    pub expired: u64,
    /// Leases that an operator ended.
    pub forced: u64,
    /// Grants that were taken back because they could not be kept; in no other count.
    pub undone: u64,
}

/// Whose counts: the tenant and the kind.
pub type Row = (Option<Box<str>>, Box<str>);

/// All rows of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    rows: BTreeMap<Row, Counts>,
}

impl Counts {
    /// All attempts.
    pub const fn total(&self) -> u64 {
        self.success + self.conflicts
    }

    /// The sum of both.
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

impl Tally {
    /// Every row, by tenant and kind.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, &Counts)> {
        self.rows.iter()
    }

    pub(super) fn granted(&mut self, tenant: Option<&str>, kind: &str) {
        let row = self.row(tenant, kind);
        row.success += 1;
        row.active += 1;
    }

    /// A grant that never was: it could not be kept.
    pub(super) fn undone(&mut self, tenant: Option<&str>, kind: &str) {
        let row = self.row(tenant, kind);
        row.undone += 1;
        row.success = row.success.saturating_sub(1);
        row.active = row.active.saturating_sub(1);
    }

    pub(super) fn missed(&mut self, tenant: Option<&str>, kind: &str) {
        self.row(tenant, kind).conflicts += 1;
    }

    pub(super) fn ended(&mut self, tenant: Option<&str>, kind: &str, how: State) {
        let row = self.row(tenant, kind);
        row.active = row.active.saturating_sub(1);
        match how {
            State::Released => row.released += 1,
            State::Expired => row.expired += 1,
            State::Forced => row.forced += 1,
            State::Held | State::Confirmed => {}
        }
    }

    /// An ended lease that is in force again.
    pub(super) fn revived(&mut self, tenant: Option<&str>, kind: &str) {
        self.granted(tenant, kind);
    }

    /// Once a row is there, it stays, so what began in one ends in the same.
    fn row(&mut self, tenant: Option<&str>, kind: &str) -> &mut Counts {
        let mut row = (tenant.map(Box::from), Box::from(kind));
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&row) {
            row = (Some(OTHERS.into()), OTHERS.into());
        }
        self.rows.entry(row).or_default()
    }
}
