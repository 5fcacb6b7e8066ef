//! Keys, rows, batches, and a store with a manual clock.

use std::sync::Arc;

use catraca::clock::ManualClock;
use catraca::memory::{Memory, MemoryOptions};
use catraca::store::{Store, When};
use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::batch::{Batch, CheckBatch, CheckReply, CheckRow, Reply, RowReply};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::time::{Span, Time};
use smallvec::{SmallVec, smallvec};

pub const START: Time = Time::from_micros(1_800_000_000_000_000);

/// A store with these options, and its clock.
pub fn store(options: MemoryOptions) -> (Memory, ManualClock) {
    let clock = ManualClock::at(START);
    (Memory::new(options, Arc::new(clock.clone())), clock)
}

/// A key with the distribution of a digest.
pub fn key(number: u64) -> Key {
    let whole = u128::from(mix(number)) << 64 | u128::from(mix(!number));
    Key::from_bytes(whole.to_be_bytes())
}

pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A deterministic random number generator (SplitMix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % bound
    }

    pub fn amount(&mut self, bound: u64) -> i64 {
        self.below(bound) as i64
    }

    pub fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A bucket of `size` tokens that refills one token every `refill`.
pub fn bucket(size: i64, refill: Span) -> Limit {
    Limit::Bucket(BucketTerms { size, tokens: 1, period: refill.micros() })
}

pub fn window(limit: i64, span: Span) -> Limit {
    Limit::Window(smallvec![WindowTerms { limit, span }])
}

pub fn fixed(limit: i64, span: Span) -> Limit {
    Limit::Fixed(FixedTerms { limit, span, aligned: false })
}

pub fn inflight(limit: i64, hold: Span) -> Limit {
    Limit::Inflight(InflightTerms { limit, hold })
}

pub fn row(key: Key, limit: Limit) -> CheckRow {
    CheckRow { family: 1, lease: 1, ..CheckRow::new(key, limit) }
}

/// A row whose excess starts a block.
pub fn strict(key: Key, limit: Limit, block: Span) -> CheckRow {
    CheckRow { penalty: Some(Penalty::without_escalation(block)), ..row(key, limit) }
}

pub fn check(rows: impl IntoIterator<Item = CheckRow>) -> Batch {
    Batch::Check(CheckBatch { rows: rows.into_iter().collect(), ..CheckBatch::default() })
}

pub fn peek(row: CheckRow) -> Batch {
    Batch::Check(CheckBatch { rows: smallvec![row], peek: true, ..CheckBatch::default() })
}

pub fn apply(memory: &Memory, batch: &Batch) -> Reply {
    memory.apply(batch, When::Store).expect("memory never fails")
}

pub fn check_reply(memory: &Memory, batch: &Batch) -> CheckReply {
    match apply(memory, batch) {
        Reply::Check(reply) => reply,
        other => panic!("{other:?} is no answer to a check"),
    }
}

pub fn passes(memory: &Memory, row: CheckRow) -> bool {
    check_reply(memory, &check([row])).passed
}

/// The reply to a check of one row.
pub fn answer(memory: &Memory, row: CheckRow) -> RowReply {
    let rows: SmallVec<[RowReply; 1]> = check_reply(memory, &check([row])).rows;
    rows.into_iter().next().expect("one row in, one row out")
}

pub fn block(keys: impl IntoIterator<Item = Key>, origin: Origin, span: Span) -> Batch {
    let note = BlockNote { reason: Some("by hand".into()), ..BlockNote::default() };
    let act = BlockProposal::new(Penalty::without_escalation(span), origin, false, note);
    Batch::Block(keys.into_iter().map(|key| (key, act.clone())).collect())
}

/// The number of these keys that are blocked now.
pub fn count_blocked(memory: &Memory, keys: impl IntoIterator<Item = Key>) -> usize {
    let rows = keys.into_iter().map(|key| row(key, Limit::Unlimited));
    rows.filter(|row| !passes(memory, row.clone())).count()
}
