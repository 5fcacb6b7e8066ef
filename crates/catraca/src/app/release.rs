//! Releases blocks: the one that an operator names, with those that the same act made.

use std::time::SystemTime;

use catraca_core::time::Time;

use super::blocks::members_of;
use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::records::{BlockId, BlockRow, Operator};

/// How often a release is tried while its blocks are extended.
const RELEASES_MAX: u32 = 3;

/// A block that an operator released.
#[derive(Clone, Debug)]
pub struct ReleasedBlock {
    /// The block before the release.
    pub before: BlockRow,
    /// The instant before the release.
    #[doc(hidden)]
    pub at: Time,
    /// The block after the release, if the records could be read and still have it.
    pub after: Option<BlockRow>,
    /// Why the records could not be read after the release, if so: it is done in either case.
    pub read_error: Option<String>,
    /// The blocks that were released with it, before the release: the same act had made them.
    pub members: Vec<BlockRow>,
    /// The blocks of the same act that are still active: the store does not have them as the
    /// records do.
    pub remaining: Vec<BlockRow>,
    /// Whether the counters of the released keys were reset too.
    pub counters_reset: bool,
    /// Why the counters were not reset although the call asked for it.
    pub reset_error: Option<String>,
    /// Whether the release is on disk.
    pub durable: bool,
}

impl ReleasedBlock {
    /// The instant before the release.
    pub fn at(&self) -> SystemTime {
        self.at.into()
    }
}

/// What became of blocks that were to be released together.
pub(super) struct ReleaseResult {
    /// The blocks that were ended, as they were before.
    pub ended: Vec<BlockRow>,
    /// The blocks that are still active.
    pub remaining: Vec<BlockRow>,
    /// Whether all that was done is on disk.
    pub durable: bool,
}

impl App {
    /// Ends a block, and unless `only` is set those that the same act made, in one step of the
    /// store. A block that has ended already is an error, and a later block of the same key stays:
    /// its id is another one, and the store compares the end of its block with that of the records.
    /// With `within`, only blocks of that namespace are found.
    pub async fn release(
        &self,
        by: &Operator<'_>,
        id: BlockId,
        within: Option<&str>,
        only: bool,
    ) -> Result<ReleasedBlock, AppError> {
        let by = OwnedOperator::new(by)?;
        let within = within.map(str::to_owned);
        let app = self.clone();
        self.run_to_end(async move {
            let incomplete = app.await_queued_records().await?;
            let block = app.find_block(id, within.as_deref(), incomplete).await?;
            let at = app.now();
            if block.block.until <= at {
                return Err(app.ended_error(&block, &[]).await?);
            }
            let mut rows = app.members_to_release(&block, at, only).await?;
            rows.insert(0, block.clone());
            let mut released = app.release_together(&by, rows).await?;
            let Some(index) = released.ended.iter().position(|row| row.id == id) else {
                let still = released.remaining.iter().find(|row| row.id == id);
                return Err(app.ended_error(still.unwrap_or(&block), &released.ended).await?);
            };
            let before = released.ended.remove(index);
            // Read again: the release has moved the end of the block.
            let after = app.read_records(move |records| records.block(id)).await;
            let read_error = after.as_ref().err().map(ToString::to_string);
            Ok(ReleasedBlock {
                before,
                at,
                after: after.ok().flatten().map(|row| app.shown_block(row)),
                read_error,
                members: released.ended,
                remaining: released.remaining,
                counters_reset: false,
                reset_error: None,
                durable: released.durable,
            })
        })
        .await
    }

    /// As [`App::release`], and then clears the keys whose blocks ended: then their counters do not
    /// block them again at the next check. A reset that fails does not undo the release: see
    /// [`ReleasedBlock::reset_error`].
    pub async fn release_and_reset(
        &self,
        by: &Operator<'_>,
        id: BlockId,
        within: Option<&str>,
        only: bool,
    ) -> Result<ReleasedBlock, AppError> {
        let owned = OwnedOperator::new(by)?;
        let within = within.map(str::to_owned);
        let app = self.clone();
        self.run_to_end(async move {
            let by = owned.borrow();
            let mut released = app.release(&by, id, within.as_deref(), only).await?;
            let rows = std::iter::once(&released.before).chain(&released.members);
            let keys = rows.map(|row| row.subject.clone()).collect();
            // The blocks have ended in either case, and a second release could not find them.
            match app.reset_keys(&owned, keys).await {
                Ok(durable) => {
                    released.counters_reset = true;
                    released.durable &= durable;
                }
                Err(error) => released.reset_error = Some(error.to_string()),
            }
            app.publish_change().await;
            Ok(released)
        })
        .await
    }

    /// The blocks that a release of this one ends too.
    async fn members_to_release(
        &self,
        block: &BlockRow,
        now: Time,
        only: bool,
    ) -> Result<Vec<BlockRow>, AppError> {
        if only {
            return Ok(Vec::new());
        }
        let row = block.clone();
        let members = self.read_records(move |records| members_of(records, &row, now)).await?;
        Ok(self.shown_blocks(members))
    }

    /// Ends blocks together, again while some of them are extended. Fails only if nothing was done.
    pub(super) async fn release_together(
        &self,
        by: &OwnedOperator,
        rows: Vec<BlockRow>,
    ) -> Result<ReleaseResult, AppError> {
        let mut result = ReleaseResult { ended: Vec::new(), remaining: rows, durable: true };
        for _ in 0..RELEASES_MAX {
            if let Err(error) = self.release_remaining(by, &mut result).await {
                if result.ended.is_empty() {
                    return Err(error);
                }
                // What was done is reported, with the blocks that are left.
                break;
            }
            if result.remaining.is_empty() {
                break;
            }
            // The store has other ends: these blocks have ended since, or were extended.
            let Ok(rows) = self.active_now(&result.remaining).await else { break };
            let end = |row: &BlockRow| (row.id, row.block.until);
            let is_changed = rows.iter().map(end).ne(result.remaining.iter().map(end));
            result.remaining = rows;
            if !is_changed || result.remaining.is_empty() {
                break;
            }
        }
        if !result.ended.is_empty() {
            // Other nodes drop the keys from their caches.
            self.publish_change().await;
        }
        Ok(result)
    }

    /// Ends, in one batch, those of the remaining blocks that the store has as the records do.
    async fn release_remaining(
        &self,
        by: &OwnedOperator,
        result: &mut ReleaseResult,
    ) -> Result<(), AppError> {
        if result.remaining.is_empty() {
            return Ok(());
        }
        let rows = result.remaining.iter();
        let rows = rows.map(|row| (row.subject.clone(), Some(row.block.until))).collect();
        let (released, receipt) =
            self.run_audited(by, self.engine().unblock_exchange(rows)).await?;
        let released = released?;
        let (_, durable) = self.confirm_act(receipt).await;
        result.durable &= durable;
        let rows = std::mem::take(&mut result.remaining).into_iter().zip(released);
        for (row, is_released) in rows {
            let list = if is_released { &mut result.ended } else { &mut result.remaining };
            list.push(row);
        }
        Ok(())
    }

    /// Those of these blocks that are still active, as the records have them now.
    async fn active_now(&self, rows: &[BlockRow]) -> Result<Vec<BlockRow>, AppError> {
        self.await_queued_records().await?;
        let ids: Vec<BlockId> = rows.iter().map(|row| row.id).collect();
        let now = self.now();
        let rows = self.read_records(move |records| {
            let mut found = Vec::new();
            for id in ids {
                found.extend(records.block(id)?.filter(|row| row.block.is_active(now, true)));
            }
            Ok(found)
        });
        Ok(self.shown_blocks(rows.await?))
    }

    /// The error of a release of a block that has ended. Names the later block of the same key, if
    /// there is one: the operator may want to release that. `others` of its act were released.
    async fn ended_error(
        &self,
        block: &BlockRow,
        others: &[BlockRow],
    ) -> Result<AppError, AppError> {
        let now = self.now();
        let row = block.clone();
        let read = self
            .read_records(move |records| {
                Ok((records.block_of(row.subject.key)?, records.members(&row, now)?))
            })
            .await;
        let (newest, members) = match read {
            // The others were released, and the answer must name them.
            Err(_) if !others.is_empty() => (None, Vec::new()),
            read => read?,
        };
        let later = newest.filter(|row| row.id != block.id && row.block.is_active(now, false));
        let done = match others {
            [] => "nothing was released".to_owned(),
            _ => format!("only other blocks of its act were released: {}", ids_text(others)),
        };
        let mut detail = match block.block.is_active(now, true) {
            false => format!("block {} has ended already, and {done}", block.id),
            true => format!(
                "the store does not have block {} as the records do, and {done}; try again, or \
                 reset the key",
                block.id
            ),
        };
        if let Some(later) = later {
            detail += &format!("; the same key is now blocked by block {}", later.id);
        }
        if !members.is_empty() {
            let ids = ids_text(&members);
            detail += &format!("; of the blocks that the same acts made, these are active: {ids}");
        }
        Ok(AppError::not_found("not-blocked", detail))
    }
}

fn ids_text(rows: &[BlockRow]) -> String {
    rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>().join(", ")
}
