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
    AttributeValue, BlockId, BlockQuery, BlockRow, BlockStates, Cursor, HistoryRow, Operator, Page,
    Records, RecordsError,
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
    /// The blocks that were released with it, before the release: the same act had made them.
    pub members: Vec<BlockRow>,
    /// Whether the release is on disk.
    pub durable: bool,
}

/// A block of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlock {
    /// The block.
    pub row: BlockRow,
    /// The other active blocks that the same act made.
    pub members: Vec<BlockRow>,
}

/// A block with its history.
#[derive(Clone, Debug)]
pub struct BlockWithHistory {
    /// The block.
    pub row: BlockRow,
    /// The blocks that a release of this one ends too, because the same act made them.
    pub members: Vec<BlockRow>,
    /// Every step, oldest first.
    pub history: Vec<HistoryRow>,
}

impl App {
    /// Blocks, newest first. Active blocks that one act made are one entry, with its members.
    pub async fn blocks(&self, query: BlockQuery) -> Result<Page<ListedBlock, Cursor>, AppError> {
        self.await_queued_records().await?;
        let now = self.now();
        self.read_records(move |records| {
            let page = records.blocks(&query, now)?;
            let companions = match query.states {
                BlockStates::Active => records.companions(&page.rows, now)?,
                BlockStates::Ended | BlockStates::All => Vec::new(),
            };
            let listed = page.rows.into_iter().map(|row| {
                let others = companions.iter().filter(|other| other.id != row.id);
                let members = others.filter(|other| row.is_of_same_act(other)).cloned().collect();
                ListedBlock { row, members }
            });
            Ok(Page { rows: listed.collect(), next: page.next })
        })
        .await
    }

    /// One block with its history. With `within`, only blocks of that namespace are found.
    pub async fn block_with_history(
        &self,
        id: BlockId,
        within: Option<&str>,
    ) -> Result<BlockWithHistory, AppError> {
        let row = self.find_block(id, within).await?;
        let now = self.now();
        self.read_records(move |records| {
            let history = records.history(&row)?;
            let members = members_of(records, &row, now)?;
            Ok(BlockWithHistory { row, members, history })
        })
        .await
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

    /// Ends a block, and unless `only` is set those that the same act made. A block that has ended
    /// already is an error, and a later block of the same key stays: its id is another one. With
    /// `within`, only blocks of that namespace are found.
    pub async fn release(
        &self,
        by: &Operator<'_>,
        id: BlockId,
        within: Option<&str>,
        only: bool,
    ) -> Result<ReleasedBlock, AppError> {
        let by = OwnedOperator::new(by)?;
        let before = self.find_block(id, within).await?;
        let at = self.now();
        if before.block.until <= at {
            return Err(self.ended_error(&before).await?);
        }
        let mut members = Vec::new();
        if !only {
            let row = before.clone();
            members = self.read_records(move |records| members_of(records, &row, at)).await?;
        }
        let app = self.clone();
        self.run_to_end(async move {
            let rows = std::iter::once(&before).chain(&members);
            let keys = rows.map(|row| row.subject.clone()).collect();
            let exchange = app.engine().unblock_exchange(keys);
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
            Ok(ReleasedBlock { before, at, after, members, durable })
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

    async fn find_block(&self, id: BlockId, within: Option<&str>) -> Result<BlockRow, AppError> {
        self.await_queued_records().await?;
        let found = self.read_records(move |records| records.block(id)).await?;
        let unknown = || AppError::not_found("unknown-block", format!("there is no block {id}"));
        let found = found.filter(|row| within.is_none_or(|name| row.subject.namespace == name));
        found.ok_or_else(unknown)
    }
}

/// The active blocks that the same acts made as this one, if it is active itself.
fn members_of(
    records: &Records,
    block: &BlockRow,
    now: Time,
) -> Result<Vec<BlockRow>, RecordsError> {
    if block.block.until <= now { Ok(Vec::new()) } else { records.members(block, now) }
}
