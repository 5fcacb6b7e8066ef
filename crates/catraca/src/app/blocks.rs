//! Blocks for operators: list, show with history, create and release.

use catraca_core::batch::BlockReply;
use catraca_core::cell::block::BlockProposal;
use catraca_core::refusal::Refusal;
use catraca_core::subject::Subject;
use catraca_core::time::Time;

use super::operator::{OwnedOperator, check_text};
use super::page_size::check_page_size;
use super::{App, AppError};
use crate::event::SubjectKey;
use crate::records::{
    AttributeValue, BlockId, BlockQuery, BlockRow, BlockStates, Cursor, HistoryRow, Incomplete,
    Operator, Page, Records, RecordsError,
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
    /// Why the newest steps may be missing, if so.
    pub incomplete: Option<Incomplete>,
}

impl App {
    /// Blocks, newest first. Active blocks that one act made are one entry, with its members.
    pub async fn blocks(&self, query: BlockQuery) -> Result<Page<ListedBlock, Cursor>, AppError> {
        check_page_size(query.limit)?;
        let incomplete = self.await_queued_records().await?;
        Ok(Page { incomplete, ..self.recorded_blocks(query).await? })
    }

    /// As [`App::blocks`], without a wait for records that are queued.
    pub(super) async fn recorded_blocks(
        &self,
        query: BlockQuery,
    ) -> Result<Page<ListedBlock, Cursor>, AppError> {
        let now = self.now();
        let app = self.clone();
        self.read_records(move |records| {
            let page = records.blocks(&query, now)?;
            let companions = match query.states {
                BlockStates::Active => records.companions(&page.rows, now)?,
                BlockStates::Ended | BlockStates::All => Vec::new(),
            };
            let companions = app.shown_blocks(companions);
            let listed = app.shown_blocks(page.rows).into_iter().map(|row| {
                let others = companions.iter().filter(|other| other.id != row.id);
                let members = others.filter(|other| row.is_of_same_act(other)).cloned().collect();
                ListedBlock { row, members }
            });
            Ok(Page { rows: listed.collect(), next: page.next, incomplete: page.incomplete })
        })
        .await
    }

    /// One block with its history. With `within`, only blocks of that namespace are found.
    pub async fn block_with_history(
        &self,
        id: BlockId,
        within: Option<&str>,
    ) -> Result<BlockWithHistory, AppError> {
        let incomplete = self.await_queued_records().await?;
        let row = self.find_block(id, within, incomplete).await?;
        let now = self.now();
        let app = self.clone();
        self.read_records(move |records| {
            let history = records.history(&row)?;
            let members = app.shown_blocks(members_of(records, &row, now)?);
            Ok(BlockWithHistory { row, members, history, incomplete })
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
        let (recorded, durable) = self.confirm_act(receipt).await;
        let mut blocks = Vec::with_capacity(blocked.len());
        for (subject, reply) in blocked {
            let key = subject.key;
            let row = match recorded {
                true => self.read_records(move |records| records.block_of(key)).await?,
                false => None,
            };
            blocks.push((subject, reply, row.map(|row| row.id)));
        }
        Ok(CreatedBlocks { blocks, durable })
    }

    /// A block of the records, which may be `incomplete`: then the error says so.
    pub(super) async fn find_block(
        &self,
        id: BlockId,
        within: Option<&str>,
        incomplete: Option<Incomplete>,
    ) -> Result<BlockRow, AppError> {
        let found = self.read_records(move |records| records.block(id)).await?;
        let unknown = || {
            let mut detail = format!("there is no block {id}");
            if let Some(incomplete) = incomplete {
                detail += &format!("; {}", incomplete.as_str());
            }
            AppError::not_found("unknown-block", detail)
        };
        let found = found.filter(|row| within.is_none_or(|name| row.subject.namespace == name));
        found.map(|row| self.shown_block(row)).ok_or_else(unknown)
    }
}

/// The active blocks that the same acts made as this one, if it is active itself.
pub(super) fn members_of(
    records: &Records,
    block: &BlockRow,
    now: Time,
) -> Result<Vec<BlockRow>, RecordsError> {
    if block.block.until <= now { Ok(Vec::new()) } else { records.members(block, now) }
}
