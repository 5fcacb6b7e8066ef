//! Logs when records can no longer be written or would be lost, and when they are written again;
//! each once.

use catraca::records::{Health, Records};
use tracing::{error, info, warn};

use crate::context::RECORDS_NOT_MAINTAINED;

/// What was logged last.
#[derive(Default)]
pub struct RecordsLog {
    was_down: bool,
    was_lost: bool,
    was_unmaintained: bool,
    rejected: u64,
}

impl RecordsLog {
    /// Logs what has changed since the last call.
    pub fn check(&mut self, health: &Health) {
        match &health.down {
            Some(why) if !self.was_down => {
                error!(why = &**why, "records not written: acts are answered `durable: false`");
            }
            None if self.was_down => info!("records are written again"),
            _ => {}
        }
        match &health.file_fault {
            Some(why) if !self.was_lost => {
                error!(why = &**why, "records file lost: acts are answered `durable: false`");
            }
            None if self.was_lost => info!("the records file is back: acts are durable again"),
            _ => {}
        }
        self.check_maintenance(health);
        if health.rejected > self.rejected {
            let count = health.rejected - self.rejected;
            let why = health.rejection.as_deref().unwrap_or_default();
            error!(count, why, "records rejected by the database for good: they are lost");
        }
        self.rejected = health.rejected;
        self.was_down = health.down.is_some();
        self.was_lost = health.file_fault.is_some();
    }

    fn check_maintenance(&mut self, health: &Health) {
        match &health.maintenance_fault {
            Some(why) if !self.was_unmaintained => {
                warn!(why = &**why, "{RECORDS_NOT_MAINTAINED}");
            }
            None if self.was_unmaintained => {
                info!("the maintenance of the records succeeds again");
            }
            _ => {}
        }
        self.was_unmaintained = health.maintenance_fault.is_some();
    }
}

/// Saves records whose file was deleted, moved or replaced, and says how to use the copy.
pub fn rescue(records: &Records) {
    match records.rescue() {
        Ok(None) => {}
        Ok(Some(copy)) => {
            let copy = copy.display().to_string();
            error!(
                copy,
                "the records file was deleted, moved or replaced while the server ran; this copy \
                 has all records: restore it with `catraca restore --force` before the next start"
            );
        }
        Err(error) => {
            let why = error.to_string();
            error!(why, "the records file was lost, and no copy of the records can be written");
        }
    }
}
