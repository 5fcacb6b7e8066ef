//! Blocks in force whose key no request has any more, because the catalog makes other keys; and
//! list entries and facts whose value no caller can have any more.

use catraca_core::catalog::Catalog;
use catraca_core::select::orphan::{OrphanReason, may_orphan, new_orphan_reason};

use super::App;
use crate::records::{BlockRow, RecordsError};

/// The most orphaned blocks that are named.
const NAMED_MAX: usize = 20;

/// What a change of the catalog orphans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanedBlocks {
    /// How many blocks.
    pub count: u64,
    /// The first of them, each with the reason.
    pub first: Vec<(BlockRow, OrphanReason)>,
    /// How many entries of the run-time lists match no caller any more, or may not.
    pub entries: u64,
    /// How many facts apply to no caller any more, or may not.
    pub facts: u64,
}

impl App {
    /// The active blocks, list entries and facts that are orphaned if `after` replaces the catalog
    /// in use. Waits for the disk: it must not be called on an async worker.
    pub fn orphaned_by(&self, after: &Catalog) -> Result<OrphanedBlocks, RecordsError> {
        let before = self.catalog();
        let mut orphaned = OrphanedBlocks::default();
        let Some(records) = &self.parts.records else { return Ok(orphaned) };
        if !may_orphan(&before, after) {
            return Ok(orphaned);
        }
        (orphaned.entries, orphaned.facts) = self.engine().entries_and_facts_orphaned_by(after);
        records.each_active_block(self.now(), |row| {
            let subject = &row.subject;
            let reason = new_orphan_reason(&before, after, &subject.policy, &subject.parts);
            let Some(reason) = reason else { return };
            orphaned.count += 1;
            if orphaned.first.len() < NAMED_MAX {
                orphaned.first.push((self.shown_block(row), reason));
            }
        })?;
        Ok(orphaned)
    }
}
