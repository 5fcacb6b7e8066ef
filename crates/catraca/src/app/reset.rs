//! Reset of the keys of one subject, or of a whole policy.

use catraca_core::digest::Key;
use catraca_core::subject::Subject;

use super::blocks::members_of;
use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::event::Event;
use crate::records::{BlockRow, Operator, PolicyReset, RecordKind, SubjectKey};

/// The result of a reset of a whole policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyResetResult {
    /// How many blocks it ended; absent if they could not be counted. They have no effect in either
    /// case.
    pub blocks: Option<u64>,
    /// Whether it is on disk.
    pub durable: bool,
}

/// The result of a reset of one subject's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyResetResult {
    /// The blocks of other keys that the reset released, because the same acts had made them;
    /// absent if the records could not be read.
    pub members: Option<Vec<BlockRow>>,
    /// Those of them that are still active: the store does not have them as the records do.
    pub remaining: Vec<BlockRow>,
    /// Whether it is on disk.
    pub durable: bool,
}

impl App {
    /// Clears counters, block, level and ban counts of a subject under one policy, and ends the
    /// blocks of other keys that the same acts made as its block.
    pub async fn reset(
        &self,
        by: &Operator<'_>,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<KeyResetResult, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let keys = self.engine().resolve_keys(&self.rules(), namespace, policy, subject)?;
        let app = self.clone();
        self.run_to_end(async move {
            // A reset must not fail because the records do.
            let members = app.members_of_keys(&keys).await.ok();
            let is_read = members.is_some();
            // First the members: after the reset, a repeated one would not find them.
            let released = app.release_together(&by, members.unwrap_or_default()).await?;
            let durable = app.reset_keys(&by, keys).await?;
            // Other nodes drop the keys from their caches.
            app.publish_change().await;
            Ok(KeyResetResult {
                members: is_read.then_some(released.ended),
                remaining: released.remaining,
                durable: durable && released.durable,
            })
        })
        .await
    }

    /// Clears keys. Returns whether that is on disk.
    pub(super) async fn reset_keys(
        &self,
        by: &OwnedOperator,
        keys: Vec<SubjectKey>,
    ) -> Result<bool, AppError> {
        let exchange = self.engine().reset_exchange(keys);
        let (reset, receipt) = self.run_audited(by, exchange).await?;
        reset?;
        let (_, durable) = self.confirm_act(receipt).await;
        Ok(durable)
    }

    /// The active blocks of other keys that the same acts made as the blocks of these keys.
    async fn members_of_keys(&self, keys: &[SubjectKey]) -> Result<Vec<BlockRow>, AppError> {
        self.await_queued_records().await?;
        let now = self.now();
        let keys: Vec<Key> = keys.iter().map(|subject| subject.key).collect();
        let members = self.read_records(move |records| {
            let mut found: Vec<BlockRow> = Vec::new();
            for key in &keys {
                let Some(block) = records.block_of(*key)? else { continue };
                found.extend(members_of(records, &block, now)?);
            }
            found.retain(|row| !keys.contains(&row.subject.key));
            found.dedup_by_key(|row| row.id);
            Ok(found)
        });
        Ok(self.shown_blocks(members.await?))
    }

    /// Clears all keys of one policy, in every namespace: from now on its keys have other digests,
    /// so that no old counter or block is found. Then the old blocks are ended in the records.
    pub async fn reset_policy(
        &self,
        by: &Operator<'_>,
        policy: &str,
    ) -> Result<PolicyResetResult, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let policy = policy.to_owned();
        self.run_to_end(async move {
            let event = app.engine().advance_epoch(&policy)?;
            let in_store = app.share_epoch(&event).await;
            let recorded = app.record_audited(&by, &event)?.await.is_durable();
            let durable = in_store.unwrap_or(recorded);
            // Other nodes apply the reset at once, before the old blocks are ended.
            app.publish_change().await;
            let blocks = if durable { app.sweep_blocks().await } else { None };
            // Once more, so that other nodes drop the ended blocks from their caches.
            app.publish_change().await;
            Ok(PolicyResetResult { blocks, durable })
        })
        .await
    }

    /// With records of each node: writes the new epoch to the store; returns whether it has it.
    async fn share_epoch(&self, event: &Event<'_>) -> Option<bool> {
        let shared = self.node_scope()?;
        let Event::PolicyReset { policy, epoch, .. } = event else { return None };
        let reset = PolicyReset { policy: policy.to_string(), epoch: *epoch };
        Some(shared.write_rule_changes(&[RecordKind::ResetPolicy(reset)]).await)
    }

    /// Ends the blocks of earlier epochs and returns how many; `None` if the records failed. The
    /// next purge of the records ends the others.
    async fn sweep_blocks(&self) -> Option<u64> {
        let mut blocks = 0;
        loop {
            let now = self.now();
            let swept = self.change_records(move |records| records.sweep(now)).await.ok()?;
            blocks += swept.blocks.len() as u64;
            // An error is ignored: these blocks have no effect, and the store drops them when they
            // end.
            let _ = match &self.parts.shared {
                Some(shared) => shared.sweep(&swept.blocks).await,
                None => self.engine().sweep(&swept.blocks),
            };
            if !swept.more {
                return Some(blocks);
            }
        }
    }
}
