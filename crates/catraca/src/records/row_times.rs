//! The times of rows and records as types of the standard library, for programs that embed them.

use std::time::{Duration, SystemTime};

use super::privacy::ExportedEntry;
use super::record::{KeyCount, PolicyReset, Record};
use super::row::{
    AuditRow, BlockRow, Cursor, FactRow, HistoryRow, KeyAttempts, ListRow, RestoredDebt,
    RevisionRow, TopBlocked,
};
use super::sqlite::RestoredBackup;

impl BlockRow {
    /// When the block was started.
    pub fn since(&self) -> SystemTime {
        self.since.into()
    }
}

impl HistoryRow {
    /// When.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }

    /// The end of the block after the step; absent if it had none.
    pub fn until(&self) -> Option<SystemTime> {
        Some(self.until).filter(|until| !until.is_forever()).map(SystemTime::from)
    }
}

impl AuditRow {
    /// When.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

impl ListRow {
    /// When it was added or last changed.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }

    /// When it expires; without an end it is active until it is removed.
    pub fn until(&self) -> Option<SystemTime> {
        self.until.map(SystemTime::from)
    }
}

impl FactRow {
    /// When it was last set.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

impl RevisionRow {
    /// When it was loaded.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

impl RestoredDebt {
    /// When.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

impl TopBlocked {
    /// The latest end of a block; absent if that block has none.
    pub fn last_until(&self) -> Option<SystemTime> {
        Some(self.last_until).filter(|until| !until.is_forever()).map(SystemTime::from)
    }
}

impl KeyAttempts {
    /// The first attempt.
    pub fn first(&self) -> SystemTime {
        self.first.into()
    }

    /// The last attempt.
    pub fn last(&self) -> SystemTime {
        self.last.into()
    }
}

impl KeyCount {
    /// The first attempt.
    pub fn first(&self) -> SystemTime {
        self.first.into()
    }

    /// The last attempt.
    pub fn last(&self) -> SystemTime {
        self.last.into()
    }
}

impl Cursor {
    /// The start of the last block of the page.
    pub fn since(&self) -> SystemTime {
        self.since.into()
    }
}

impl ExportedEntry {
    /// When it expires; absent means never.
    pub fn until(&self) -> Option<SystemTime> {
        self.until.map(SystemTime::from)
    }
}

impl Record {
    /// The time by the engine's clock.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

impl PolicyReset {
    /// Counters, blocks and debts from before this time no longer count.
    pub fn epoch(&self) -> SystemTime {
        self.epoch.into()
    }
}

impl RestoredBackup {
    /// How long the next start grants no locks, because leases that the backup does not contain may
    /// still be valid. Zero if there never were leases.
    pub fn locks_wait(&self) -> Duration {
        self.locks_wait.into()
    }
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::block::Origin;
    use catraca_core::time::Time;

    use super::*;

    #[test]
    fn a_row_has_the_instants_of_std_and_none_for_a_block_without_an_end() {
        let mut row = HistoryRow {
            id: 1,
            at: Time::from_millis(1_500),
            act: "started".to_owned(),
            origin: Origin::Operator,
            reason: None,
            until: Time::from_millis(3_000),
            level: 0,
            by: None,
        };
        let seconds = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds);
        assert_eq!((row.at(), row.until()), (seconds(1.5), Some(seconds(3.0))));
        row.until = Time::FOREVER;
        assert_eq!(row.until(), None);
    }
}
