//! A generator of random batches of every kind over a few keys, so that batches interact often.

use std::sync::Arc;

use catraca_core::batch::{
    BanRow, Batch, CheckBatch, CheckRow, CreditBatch, CreditRow, NewReference, ReconcileRow,
    ReferenceUpdate, SettleBatch, SettleRow, UnblockRow, WatchRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::policy::OnFailure;
use catraca_core::price::Price;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};
use smallvec::smallvec;

use super::helpers::{Rng, START, bucket, fixed, inflight, key, row, window};

/// The number of row keys, and the first numbers of references and markers, which must differ.
const KEYS: u64 = 18;
const REFERENCES: u64 = 1_000;
const MARKS: u64 = 2_000;

pub struct BatchGenerator {
    rng: Rng,
    pub now: Time,
}

impl BatchGenerator {
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng(seed << 32), now: START }
    }

    /// The next batch, some time later.
    pub fn next_batch(&mut self) -> Batch {
        let pause = if self.rng.one_in(50) { 20_000_000 } else { 300_000 };
        self.now = self.now.after(Span::from_micros(self.rng.amount(pause)));
        match self.rng.below(20) {
            0..=9 => self.check(),
            10..=13 => self.settle(),
            14 => Batch::Recall(self.reference()),
            15 => self.credit(),
            16 => self.block(),
            17 => Batch::Unblock(self.keys(3).into_iter().map(UnblockRow::from).collect()),
            18 if self.rng.one_in(4) => Batch::Reset(self.keys(2)),
            _ => self.reconcile(),
        }
    }

    fn check(&mut self) -> Batch {
        let keys = self.keys(4);
        Batch::Check(CheckBatch {
            rows: keys.into_iter().map(|key| self.row(key)).collect(),
            peek: self.rng.one_in(8),
            already_denied: self.rng.one_in(20),
            new_reference: self.rng.one_in(3).then(|| Box::new(self.new_reference())),
        })
    }

    fn row(&mut self, key: Key) -> CheckRow {
        let limit = limit_of(key);
        let count_denied = matches!(limit, Limit::Window(_) | Limit::Fixed(_));
        CheckRow {
            held: self.rng.amount(3),
            penalty: self.rng.one_in(2).then(|| self.penalty()),
            shadow: self.rng.one_in(6),
            count_denied: count_denied && self.rng.one_in(3),
            lease: self.rng.below(6),
            on_full: OnFailure::Local,
            ..row(key, limit)
        }
    }

    fn new_reference(&mut self) -> NewReference {
        let ticket = vec![7; self.rng.below(40) as usize].into();
        let owner = key(MARKS + self.rng.below(3));
        NewReference { key: self.reference(), owner, ticket, span: self.span(20_000) }
    }

    fn settle(&mut self) -> Batch {
        let keys = self.keys(3);
        Batch::Settle(SettleBatch {
            marker: key(MARKS + self.rng.below(40)),
            expires: self.now.after(self.span(6_000)),
            rows: keys.into_iter().map(|key| self.settle_row(key)).collect(),
            reference: self.rng.one_in(2).then(|| self.reference_update()),
        })
    }

    fn reference_update(&mut self) -> Box<ReferenceUpdate> {
        let owner = key(MARKS + self.rng.below(3));
        Box::new(ReferenceUpdate { key: self.reference(), owner, status: Some(200) })
    }

    fn settle_row(&mut self, key: Key) -> SettleRow {
        let held = self.rng.amount(3);
        SettleRow {
            ticket_index: 0,
            key,
            family: 1,
            tier_counter: None,
            shared: None,
            limit: limit_of(key),
            held,
            at: self.now.before(self.span(500)),
            price: match self.rng.below(8) {
                0 => Price::Drain,
                _ => Price::Units(self.rng.amount(6)),
            },
            debt: self.rng.one_in(2),
            penalty: self.rng.one_in(2).then(|| self.penalty()),
            upstream: self.rng.one_in(10).then(|| self.span(2_000)),
            shadow: self.rng.one_in(6),
            lease: self.rng.below(6),
            on_full: OnFailure::Local,
            bans: (0..self.rng.below(3) as u8).map(|rule| self.ban(rule)).collect(),
            watch: self.rng.one_in(2).then(|| Box::new(self.watch())),
        }
    }

    fn ban(&mut self, rule: u8) -> BanRow {
        let after = Rate { amount: 2 + self.rng.amount(2), per: Span::from_secs(3) };
        BanRow {
            rule,
            after: (!self.rng.one_in(8)).then_some(after),
            proposal: self.block_proposal(Origin::Ban),
        }
    }

    fn watch(&mut self) -> WatchRow {
        WatchRow {
            in_part: self.rng.one_in(2),
            per: Span::from_secs(24),
            above: Percent::from_hundredths(6_000),
            min: 4,
            proposal: self.block_proposal(Origin::Ban),
        }
    }

    fn credit(&mut self) -> Batch {
        let rows = self.keys(2).into_iter().filter_map(|key| match limit_of(key) {
            Limit::Bucket(terms) => Some(CreditRow { key, terms, shared: None, amount: 2 }),
            _ => None,
        });
        let rows = rows.collect();
        let event = if self.rng.one_in(2) { "payment" } else { "return" };
        Batch::Credit(CreditBatch { reference: self.reference(), event: Arc::from(event), rows })
    }

    fn block(&mut self) -> Batch {
        let keys = self.keys(2);
        let rows = keys.into_iter().map(|key| (key, self.block_proposal(Origin::Operator)));
        Batch::Block(rows.collect())
    }

    fn reconcile(&mut self) -> Batch {
        let terms = terms();
        let row = |rng: &mut Rng, now: Time| ReconcileRow {
            key: key(6 * rng.below(KEYS / 6)),
            terms,
            shared: None,
            available: rng.amount(12) - 1,
            observed_at: now.before(Span::from_millis(rng.amount(400))),
        };
        Batch::Reconcile(vec![row(&mut self.rng, self.now)])
    }

    fn block_proposal(&mut self, origin: Origin) -> BlockProposal {
        let reason = self.rng.one_in(2).then(|| "too much".into());
        let note = BlockNote { reason, status: Some(429), message: None };
        BlockProposal::new(self.penalty(), origin, self.rng.one_in(6), note)
    }

    fn penalty(&mut self) -> Penalty {
        let first = self.span(2_000);
        if self.rng.one_in(2) {
            return Penalty::without_escalation(first);
        }
        Penalty { first, factor: 2, max: Span::from_secs(30), forget: Span::from_secs(5) }
    }

    /// One to `most` different keys.
    fn keys(&mut self, most: u64) -> Vec<Key> {
        let count = 1 + self.rng.below(most);
        let first = self.rng.below(KEYS);
        let step = 1 + 2 * self.rng.below(2);
        let numbers = (0..count).map(|n| (first + n * step) % KEYS);
        numbers.map(key).collect()
    }

    fn reference(&mut self) -> Key {
        key(REFERENCES + self.rng.below(5))
    }

    fn span(&mut self, most_millis: u64) -> Span {
        Span::from_millis(1 + self.rng.amount(most_millis))
    }
}

/// A key always has the same algorithm: a real key is a digest of the policy and its algorithm.
fn limit_of(wanted: Key) -> Limit {
    let number = (0..KEYS).find(|number| key(*number) == wanted).expect("a key of the generator");
    match number % 6 {
        0 => Limit::Bucket(terms()),
        1 => window(4, Span::from_secs(2)),
        2 => Limit::Window(smallvec![
            WindowTerms { limit: 6, span: Span::from_secs(5) },
            WindowTerms { limit: 2, span: Span::from_millis(400) },
        ]),
        3 => fixed(5, Span::from_secs(3)),
        4 => inflight(2, Span::from_secs(1)),
        _ => Limit::Unlimited,
    }
}

fn terms() -> BucketTerms {
    match bucket(10, Span::from_millis(250)) {
        Limit::Bucket(terms) => terms,
        _ => unreachable!("`bucket` returns a bucket"),
    }
}
