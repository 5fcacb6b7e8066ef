//! The desk at which cases are tried: short words for batches, rows and instants.
//!
//! Must not judge.

use std::fmt::Debug;

use catraca::store::{Store, When};
use catraca_core::batch::{
    Batch, BlockRow, Check, CheckReply, CheckRow, Credit, CreditReply, CreditRow, Recalled,
    ReconcileRow, Reconciled, Reply, RowReply, RowSettled, Settle, SettleReply, SettleRow,
    Standing,
};
use catraca_core::cell::block::{Act, Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, FixedTerms, InflightTerms, Limit, Penalty, WindowTerms};
use catraca_core::price::Price;
use catraca_core::time::{Span, Time};

/// What a case comes to: nothing, or what was promised and what came instead.
pub(super) type Proof = Result<(), String>;

/// Microseconds of a second, of a millisecond.
pub(super) const S: i64 = 1_000_000;
pub(super) const MS: i64 = 1_000;

/// The instant from which cases count: 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600 * S;

/// An empty store, and the calls that cases make of it.
pub(super) struct Desk {
    pub store: Box<dyn Store>,
}

impl Desk {
    pub fn apply(&self, batch: &Batch, at: i64) -> Result<Reply, String> {
        self.store.apply(batch, When::At(instant(at))).map_err(|error| error.to_string())
    }

    /// Checks some rows at an instant, in microseconds from the start.
    pub fn check(&self, rows: &[CheckRow], at: i64) -> Result<CheckReply, String> {
        self.ask(Check { rows: rows.iter().cloned().collect(), ..Check::default() }, at)
    }

    /// Checks one row, and gives its reply.
    pub fn one(&self, row: &CheckRow, at: i64) -> Result<RowReply, String> {
        let reply = self.check(std::slice::from_ref(row), at)?;
        reply.rows.into_iter().next().ok_or_else(|| "a row has no reply".to_owned())
    }

    /// Peeks at one row.
    pub fn peek(&self, row: &CheckRow, at: i64) -> Result<RowReply, String> {
        let rows = [row.clone()].into_iter().collect();
        let reply = self.ask(Check { rows, peek: true, ..Check::default() }, at)?;
        reply.rows.into_iter().next().ok_or_else(|| "a row has no reply".to_owned())
    }

    /// Units free in one row, without charging any.
    pub fn free(&self, row: &CheckRow, at: i64) -> Result<i64, String> {
        self.peek(row, at).map(|reply| reply.free)
    }

    pub fn ask(&self, check: Check, at: i64) -> Result<CheckReply, String> {
        match self.apply(&Batch::Check(check), at)? {
            Reply::Check(reply) => Ok(reply),
            other => odd(&other),
        }
    }

    pub fn settle(&self, settle: Settle, at: i64) -> Result<SettleReply, String> {
        match self.apply(&Batch::Settle(settle), at)? {
            Reply::Settle(reply) => Ok(reply),
            other => odd(&other),
        }
    }

    /// Settles one row for the first time, and gives its result.
    pub fn settle_one(&self, mark: u8, row: SettleRow, at: i64) -> Result<RowSettled, String> {
        let expires = instant(at).after(Span::from_secs(60));
        let (mark, rows) = (key(mark), vec![row]);
        match self.settle(Settle { mark, expires, rows, reference: None }, at)? {
            SettleReply::Settled { again: false, rows, .. } if rows.len() == 1 => {
                rows.into_iter().next().ok_or_else(String::new)
            }
            other => Err(format!("a first settle of one row answered {other:?}")),
        }
    }

    pub fn recall(&self, reference: Key, at: i64) -> Result<Option<Recalled>, String> {
        match self.apply(&Batch::Recall(reference), at)? {
            Reply::Recall(recalled) => Ok(recalled),
            other => odd(&other),
        }
    }

    pub fn credit(
        &self,
        reference: Key,
        event: &str,
        row: CreditRow,
        at: i64,
    ) -> Result<CreditReply, String> {
        let batch = Credit { reference, event: event.into(), rows: vec![row] };
        match self.apply(&Batch::Credit(batch), at)? {
            Reply::Credit(reply) => Ok(reply),
            other => odd(&other),
        }
    }

    pub fn block(&self, key: Key, act: Act, at: i64) -> Result<Standing, String> {
        match self.apply(&Batch::Block(vec![BlockRow::new(key, act)]), at)? {
            Reply::Block(standing) if standing.len() == 1 => {
                standing.into_iter().next().ok_or_else(String::new)
            }
            other => odd(&other),
        }
    }

    pub fn unblock(&self, key: Key, at: i64) -> Result<bool, String> {
        match self.apply(&Batch::Unblock(vec![key]), at)? {
            Reply::Unblock(stood) if stood.len() == 1 => Ok(stood[0]),
            other => odd(&other),
        }
    }

    pub fn reset(&self, key: Key, at: i64) -> Proof {
        match self.apply(&Batch::Reset(vec![key]), at)? {
            Reply::Reset(now) => same("the instant of a reset", now, instant(at)),
            other => odd(&other),
        }
    }

    pub fn reconcile(&self, row: ReconcileRow, at: i64) -> Result<Reconciled, String> {
        match self.apply(&Batch::Reconcile(vec![row]), at)? {
            Reply::Reconcile(done) if done.len() == 1 => Ok(done[0]),
            other => odd(&other),
        }
    }
}

/// Holds unless the two differ.
pub(super) fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Proof {
    if got == want { Ok(()) } else { Err(format!("{what}: promised {want:?}, got {got:?}")) }
}

/// An instant, in microseconds from the start of every case.
pub(super) fn instant(at: i64) -> Time {
    Time::from_micros(START + at)
}

/// Keys that share nothing but their shape.
pub(super) fn key(number: u8) -> Key {
    let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    Key::from_bytes(spread.wrapping_mul(u128::from(number) + 1).to_be_bytes())
}

/// A row of one unit under these terms.
pub(super) fn row(number: u8, limit: Limit) -> CheckRow {
    CheckRow {
        key: key(number),
        family: 7,
        limit,
        held: 1,
        penalty: None,
        shadow: false,
        count_denied: false,
        lease: 0,
    }
}

/// The same row asking for more.
pub(super) fn asking(held: i64, row: &CheckRow) -> CheckRow {
    CheckRow { held, ..row.clone() }
}

/// The same row with a block of fixed length for an excess.
pub(super) fn blocking(span: i64, row: &CheckRow) -> CheckRow {
    let penalty = Some(Penalty::fixed(Span::from_micros(span)));
    CheckRow { penalty, ..row.clone() }
}

/// The settle of a row that was charged at an instant.
pub(super) fn paid(row: &CheckRow, at: i64, price: i64) -> SettleRow {
    SettleRow {
        place: 0,
        key: row.key,
        family: row.family,
        limit: row.limit.clone(),
        held: row.held,
        at: instant(at),
        price: Price::Units(price),
        debt: false,
        penalty: row.penalty,
        upstream: None,
        shadow: row.shadow,
        lease: row.lease,
        bans: Default::default(),
        watch: None,
    }
}

/// A block of fixed length, as ordered by somebody.
pub(super) fn ordered(origin: Origin, span: Span) -> Act {
    let note = Note { reason: Some("asked for".into()), ..Note::default() };
    Act { penalty: Penalty::fixed(span), origin, shadow: false, note }
}

/// `tokens` per `period` microseconds, already reduced.
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

pub(super) fn fixed(limit: i64, span: i64, aligned: bool) -> Limit {
    Limit::Fixed(FixedTerms { limit, span: Span::from_micros(span), aligned })
}

pub(super) fn inflight(limit: i64, hold: i64) -> Limit {
    Limit::Inflight(InflightTerms { limit, hold: Span::from_micros(hold) })
}

fn odd<T>(reply: &Reply) -> Result<T, String> {
    Err(format!("a reply that does not answer its batch: {reply:?}"))
}
