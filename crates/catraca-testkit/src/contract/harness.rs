//! The harness of the store contract: short constructors for batches, rows and instants, and calls
//! to the store under test.

use std::fmt::Debug;

use catraca::store::{Store, When};
use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::batch::{
    Batch, BlockReply, BucketAdjustment, CheckBatch, CheckReply, CheckRow, CreditBatch,
    CreditReply, CreditRow, ReconcileRow, Reply, RowReply, RowSettlement, SettleBatch, SettleReply,
    SettleRow, StoredReference, UnblockRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::price::Price;
use catraca_core::time::{Span, Time};

/// The result of a case; an error holds the expected and the actual value.
pub(super) type CaseResult = Result<(), String>;

/// A second in microseconds, the unit of all instants here.
pub(super) const S: i64 = 1_000_000;
/// A millisecond in microseconds.
pub(super) const MS: i64 = 1_000;

/// The instant 0 of every case: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600 * S;

/// A store under test, empty when a case begins.
pub(super) struct StoreHarness {
    pub store: Box<dyn Store>,
}

impl StoreHarness {
    pub fn apply(&self, batch: &Batch, at: i64) -> Result<Reply, String> {
        self.store.apply(batch, When::At(instant(at))).map_err(|error| error.to_string())
    }

    /// Checks some rows at an instant, in microseconds from `START`.
    pub fn check(&self, rows: &[CheckRow], at: i64) -> Result<CheckReply, String> {
        self.check_batch(
            CheckBatch { rows: rows.iter().cloned().collect(), ..CheckBatch::default() },
            at,
        )
    }

    /// Checks one row and returns its reply.
    pub fn check_one(&self, row: &CheckRow, at: i64) -> Result<RowReply, String> {
        let reply = self.check(std::slice::from_ref(row), at)?;
        reply.rows.into_iter().next().ok_or_else(|| "a row has no reply".to_owned())
    }

    /// Peeks at one row: the same verdict as a check, without any change.
    pub fn peek(&self, row: &CheckRow, at: i64) -> Result<RowReply, String> {
        let rows = [row.clone()].into_iter().collect();
        let reply =
            self.check_batch(CheckBatch { rows, peek: true, ..CheckBatch::default() }, at)?;
        reply.rows.into_iter().next().ok_or_else(|| "a row has no reply".to_owned())
    }

    /// Units free in one row, read with a peek.
    pub fn free(&self, row: &CheckRow, at: i64) -> Result<i64, String> {
        self.peek(row, at).map(|reply| reply.free)
    }

    pub fn check_batch(&self, check: CheckBatch, at: i64) -> Result<CheckReply, String> {
        match self.apply(&Batch::Check(check), at)? {
            Reply::Check(reply) => Ok(reply),
            other => wrong_reply(&other),
        }
    }

    pub fn settle(&self, settle: SettleBatch, at: i64) -> Result<SettleReply, String> {
        match self.apply(&Batch::Settle(settle), at)? {
            Reply::Settle(reply) => Ok(reply),
            other => wrong_reply(&other),
        }
    }

    /// Settles one row under a marker that must be new, and returns the row's result.
    pub fn settle_one(&self, mark: u8, row: SettleRow, at: i64) -> Result<RowSettlement, String> {
        let expires = instant(at).after(Span::from_secs(60));
        let mark = key(mark);
        let rows = vec![row];
        match self.settle(SettleBatch { marker: mark, expires, rows, reference: None }, at)? {
            SettleReply::Settled { already_settled: false, rows, .. } if rows.len() == 1 => {
                rows.into_iter().next().ok_or_else(String::new)
            }
            other => Err(format!("a first settle of one row answered {other:?}")),
        }
    }

    pub fn recall(&self, reference: Key, at: i64) -> Result<Option<StoredReference>, String> {
        match self.apply(&Batch::Recall(reference), at)? {
            Reply::Recall(recalled) => Ok(recalled),
            other => wrong_reply(&other),
        }
    }

    pub fn credit(
        &self,
        reference: Key,
        event: &str,
        row: CreditRow,
        at: i64,
    ) -> Result<CreditReply, String> {
        let batch = CreditBatch { reference, event: event.into(), rows: vec![row] };
        match self.apply(&Batch::Credit(batch), at)? {
            Reply::Credit(reply) => Ok(reply),
            other => wrong_reply(&other),
        }
    }

    pub fn block(&self, key: Key, act: BlockProposal, at: i64) -> Result<BlockReply, String> {
        match self.apply(&Batch::Block(vec![(key, act)]), at)? {
            Reply::Block(blocks) if blocks.len() == 1 => {
                blocks.into_iter().flatten().next().ok_or_else(|| "no block is active".to_owned())
            }
            other => wrong_reply(&other),
        }
    }

    /// Whether an active block was lifted.
    pub fn unblock(&self, key: Key, at: i64) -> Result<bool, String> {
        self.unblock_row(key.into(), at)
    }

    /// Whether an active block with the end of the row was lifted.
    pub fn unblock_row(&self, row: UnblockRow, at: i64) -> Result<bool, String> {
        match self.apply(&Batch::Unblock(vec![row]), at)? {
            Reply::Unblock(was_blocked) if was_blocked.len() == 1 => Ok(was_blocked[0]),
            other => wrong_reply(&other),
        }
    }

    pub fn reset(&self, key: Key, at: i64) -> CaseResult {
        match self.apply(&Batch::Reset(vec![key]), at)? {
            Reply::Reset(now) => same("the instant of a reset", now, instant(at)),
            other => wrong_reply(&other),
        }
    }

    pub fn reconcile(&self, row: ReconcileRow, at: i64) -> Result<BucketAdjustment, String> {
        match self.apply(&Batch::Reconcile(vec![row]), at)? {
            Reply::Reconcile(done) if done.len() == 1 => Ok(done[0]),
            other => wrong_reply(&other),
        }
    }
}

/// Fails with both values if they differ.
pub(super) fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> CaseResult {
    if got == want { Ok(()) } else { Err(format!("{what}: promised {want:?}, got {got:?}")) }
}

/// An instant, in microseconds from `START`.
pub(super) fn instant(at: i64) -> Time {
    Time::from_micros(START + at)
}

/// A distinct key per number; the multiplication varies all of its bytes.
pub(super) fn key(number: u8) -> Key {
    let multiplier = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    Key::from_bytes(multiplier.wrapping_mul(u128::from(number) + 1).to_be_bytes())
}

/// A row that requests one unit of `limit`.
pub(super) fn row(number: u8, limit: Limit) -> CheckRow {
    CheckRow { family: 7, ..CheckRow::new(key(number), limit) }
}

/// The same row with another cost.
pub(super) fn with_held(held: i64, row: &CheckRow) -> CheckRow {
    CheckRow { held, ..row.clone() }
}

/// The same row with a block of fixed length, in microseconds, when the limit is exceeded.
pub(super) fn with_block(span: i64, row: &CheckRow) -> CheckRow {
    let penalty = Some(Penalty::without_escalation(Span::from_micros(span)));
    CheckRow { penalty, ..row.clone() }
}

/// The settlement of a row that was charged at `at`, with its final price.
pub(super) fn settle_row(row: &CheckRow, at: i64, price: i64) -> SettleRow {
    SettleRow {
        family: row.family,
        tier_counter: row.tier_counter,
        shared: row.shared.clone(),
        held: row.held,
        price: Price::Units(price),
        penalty: row.penalty,
        shadow: row.shadow,
        lease: row.lease,
        ..SettleRow::new(row.key, row.limit.clone(), instant(at))
    }
}

/// A block of fixed length with a reason.
pub(super) fn block_proposal(origin: Origin, span: Span) -> BlockProposal {
    let note = BlockNote { reason: Some("asked for".into()), ..BlockNote::default() };
    BlockProposal::new(Penalty::without_escalation(span), origin, false, note)
}

/// A bucket that refills `tokens` per `period` microseconds; the fraction is in lowest terms, as
/// stores expect it.
pub(super) fn terms(size: i64, tokens: i64, period: i64) -> BucketTerms {
    BucketTerms { size, tokens, period }
}

pub(super) fn bucket(size: i64, tokens: i64, period: i64) -> Limit {
    Limit::Bucket(terms(size, tokens, period))
}

pub(super) fn window(limit: i64, span: i64) -> Limit {
    windows(&[(limit, span)])
}

pub(super) fn windows(all: &[(i64, i64)]) -> Limit {
    let terms =
        |(limit, span): &(i64, i64)| WindowTerms { limit: *limit, span: Span::from_micros(*span) };
    Limit::Window(all.iter().map(terms).collect())
}

pub(super) fn fixed_window(limit: i64, span: i64, aligned: bool) -> Limit {
    Limit::Fixed(FixedTerms { limit, span: Span::from_micros(span), aligned })
}

pub(super) fn inflight(limit: i64, hold: i64) -> Limit {
    Limit::Inflight(InflightTerms { limit, hold: Span::from_micros(hold) })
}

fn wrong_reply<T>(reply: &Reply) -> Result<T, String> {
    Err(format!("the reply is of another kind than the batch: {reply:?}"))
}
