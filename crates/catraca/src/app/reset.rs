//! Reset of the keys of one subject, or of a whole policy.

use catraca_core::subject::Subject;

use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::event::Event;
use crate::records::{Operator, PolicyReset, RecordKind};

/// The result of a reset of a whole policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyResetResult {
    /// How many blocks it ended; absent if they could not be counted. They have no effect in either
    /// case.
    pub blocks: Option<u64>,
    /// Whether it is on disk.
    pub durable: bool,
}

impl App {
    /// Clears counters, block, level and ban counts of a subject under one policy. Returns whether
    /// that is on disk.
    pub async fn reset(
        &self,
        by: &Operator<'_>,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let keys = self.engine().resolve_keys(&self.rules(), namespace, policy, subject)?;
        let app = self.clone();
        self.run_to_end(async move {
            let exchange = app.engine().reset_exchange(keys);
            let (reset, receipt) = app.run_audited(&by, exchange).await?;
            reset?;
            let (_, durable) = app.confirm_act(receipt).await;
            // Other nodes drop the key from their caches.
            app.publish_change().await;
            Ok(durable)
        })
        .await
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
