//! Blocks for operators: list, show with history, create and release.

use catraca_core::batch::BlockReply;
use catraca_core::cell::block::BlockProposal;
use catraca_core::refusal::Refusal;
use catraca_core::subject::Subject;
use catraca_core::time::Time;

use super::operator::{OwnedOperator, check_text};
use super::{App, AppError};
use crate::event::SubjectKey;
use crate::records::{
    AttributeValue, BlockId, BlockQuery, BlockRow, Cursor, HistoryRow, Operator, Page,
};

/// The blocks that an operator created.
#[derive(Clone, Debug)]
pub struct CreatedBlocks {
    /// Each blocked key with its block, and the block's id. Only the records know whether the act
    /// has extended an older block, so there is no id while the act is not on disk.
    pub blocks: Vec<(SubjectKey, BlockReply, Option<BlockId>)>,
    /// Whether they are on disk.
    pub durable: bool,
}

/// A block that an operator released.
#[derive(Clone, Debug)]
pub struct ReleasedBlock {
    /// The block before the release.
    pub before: BlockRow,
    /// The instant before the release.
    pub at: Time,
    /// The block after the release, if the records still have it.
    pub after: Option<BlockRow>,
    /// Whether the release is on disk.
    pub durable: bool,
}

/// A block with its history.
#[derive(Clone, Debug)]
pub struct BlockWithHistory {
    /// The block.
    pub row: BlockRow,
    /// Every step, oldest first.
    pub history: Vec<HistoryRow>,
}

impl App {
    /// Blocks, newest first.
    pub async fn blocks(&self, query: BlockQuery) -> Result<Page<BlockRow, Cursor>, AppError> {
        self.await_queued_records().await?;
        let now = self.now();
        self.read_records(move |records| records.blocks(&query, now)).await
    }

    /// One block with its history.
    pub async fn block_with_history(&self, id: BlockId) -> Result<BlockWithHistory, AppError> {
        let row = self.find_block(id).await?;
        let (row, history) = self
            .read_records(move |records| {
                let history = records.history(&row)?;
                Ok((row, history))
            })
            .await?;
        Ok(BlockWithHistory { row, history })
    }

    /// A value in every form that the records may have it: as it is, or as a pseudonym under the
    /// current secret or an older one.
    pub fn stored_values(
        &self,
        attribute: &str,
        value: &str,
    ) -> Result<Vec<AttributeValue>, Refusal> {
        self.engine().stored_names(attribute, value)
    }

    /// Blocks every key under which a policy counts a subject. Audited with the block's reason if
    /// the operator gives none.
    pub async fn block(
        &self,
        by: &Operator<'_>,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
        proposal: BlockProposal,
    ) -> Result<CreatedBlocks, AppError> {
        let reason = check_text("reason", proposal.note.reason.as_deref())?;
        let by = OwnedOperator::new(by)?.or_why(reason);
        let app = self.clone();
        let namespace = namespace.to_owned();
        let policy = policy.to_owned();
        let subject = subject.to_owned_pairs();
        self.run_to_end(async move {
            let subject = Subject::from_owned_pairs(&subject);
            app.create_blocks(&by, &namespace, &policy, &subject, proposal).await
        })
        .await
    }

    async fn create_blocks(
        &self,
        by: &OwnedOperator,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
        proposal: BlockProposal,
    ) -> Result<CreatedBlocks, AppError> {
        let rules = self.rules();
        let exchange =
            self.engine().block_exchange(&rules, namespace, policy, subject, proposal)?;
        let (blocked, receipt) = self.run_audited(by, exchange).await?;
        let blocked = blocked?;
        let durable = receipt.await.is_durable();
        let mut blocks = Vec::with_capacity(blocked.len());
        for (subject, reply) in blocked {
            let key = subject.key;
            let row = match durable {
                true => self.read_records(move |records| records.block_of(key)).await?,
                false => None,
            };
            blocks.push((subject, reply, row.map(|row| row.id)));
        }
        Ok(CreatedBlocks { blocks, durable })
    }

    /// Ends a block. A block that has ended already is an error, and a later block of the same key
    /// stays: its id is another one.
    pub async fn release(&self, by: &Operator<'_>, id: BlockId) -> Result<ReleasedBlock, AppError> {
        let by = OwnedOperator::new(by)?;
        let before = self.find_block(id).await?;
        let at = self.now();
        if before.block.until <= at {
            return Err(self.ended_error(&before).await?);
        }
        let app = self.clone();
        self.run_to_end(async move {
            let exchange = app.engine().unblock_exchange(vec![before.subject.clone()]);
            let (released, receipt) = app.run_audited(&by, exchange).await?;
            let was_active = released?;
            let durable = receipt.await.is_durable();
            // Other nodes drop the key from their caches.
            app.publish_change().await;
            if !was_active {
                return Err(app.ended_error(&before).await?);
            }
            // Read again: the release has moved the end of the block.
            let after = app.read_records(move |records| records.block(id)).await?;
            Ok(ReleasedBlock { before, at, after, durable })
        })
        .await
    }

    /// The error of a release of a block that has ended. Names the later block of the same key, if
    /// there is one: the operator may want to release that.
    async fn ended_error(&self, block: &BlockRow) -> Result<AppError, AppError> {
        let key = block.subject.key;
        let newest = self.read_records(move |records| records.block_of(key)).await?;
        let now = self.now();
        let later = newest.filter(|row| row.id != block.id && row.block.is_active(now, false));
        let mut detail = format!("block {} has ended already, and nothing was released", block.id);
        if let Some(later) = later {
            detail += &format!("; the same key is now blocked by block {}", later.id);
        }
        Ok(AppError::not_found("not-blocked", detail))
    }

    async fn find_block(&self, id: BlockId) -> Result<BlockRow, AppError> {
        self.await_queued_records().await?;
        let found = self.read_records(move |records| records.block(id)).await?;
        let unknown = || AppError::not_found("unknown-block", format!("there is no block {id}"));
        found.ok_or_else(unknown)
    }
}
