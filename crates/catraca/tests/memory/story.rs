//! Random batches of every kind over a few keys, so that they meet each other often.

use std::sync::Arc;

use catraca_core::batch::{
    BanRow, Batch, BlockRow, CheckBatch, CheckRow, CreditBatch, CreditRow, NewReference,
    ReconcileRow, ReferenceUpdate, SettleBatch, SettleRow, WatchRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::price::Price;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::{Span, Time};
use smallvec::smallvec;

use crate::helpers::{Dice, START, bucket, fixed, inflight, key, row, window};

/// Keys of rows, references and markers, apart from each other.
const KEYS: u64 = 18;
const REFERENCES: u64 = 1_000;
const MARKS: u64 = 2_000;

pub struct Story {
    dice: Dice,
    pub now: Time,
}

impl Story {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice(seed << 32), now: START }
    }

    /// The next batch, some time later.
    pub fn next_batch(&mut self) -> Batch {
        let pause = if self.dice.one_in(50) { 20_000_000 } else { 300_000 };
        self.now = self.now.after(Span::from_micros(self.dice.amount(pause)));
        match self.dice.roll(20) {
            0..=9 => self.check(),
            10..=13 => self.settle(),
            14 => Batch::Recall(self.reference()),
            15 => self.credit(),
            16 => self.block(),
            17 => Batch::Unblock(self.keys(3)),
            18 if self.dice.one_in(4) => Batch::Reset(self.keys(2)),
            _ => self.reconcile(),
        }
    }

    fn check(&mut self) -> Batch {
        let keys = self.keys(4);
        Batch::Check(CheckBatch {
            rows: keys.into_iter().map(|key| self.row(key)).collect(),
            peek: self.dice.one_in(8),
            already_denied: self.dice.one_in(20),
            remember: self.dice.one_in(3).then(|| Box::new(self.remember())),
        })
    }

    fn row(&mut self, key: Key) -> CheckRow {
        let limit = limit_of(key);
        let count_denied = matches!(limit, Limit::Window(_) | Limit::Fixed(_));
        CheckRow {
            held: self.dice.amount(3),
            penalty: self.dice.one_in(2).then(|| self.penalty()),
            shadow: self.dice.one_in(6),
            count_denied: count_denied && self.dice.one_in(3),
            lease: self.dice.roll(6),
            ..row(key, limit)
        }
    }

    fn remember(&mut self) -> NewReference {
        let ticket = vec![7; self.dice.roll(40) as usize].into();
        let owner = key(MARKS + self.dice.roll(3));
        NewReference { key: self.reference(), owner, ticket, span: self.span(20_000) }
    }

    fn settle(&mut self) -> Batch {
        let keys = self.keys(3);
        Batch::Settle(SettleBatch {
            mark: key(MARKS + self.dice.roll(40)),
            expires: self.now.after(self.span(6_000)),
            rows: keys.into_iter().map(|key| self.settle_row(key)).collect(),
            reference: self.dice.one_in(2).then(|| self.told()),
        })
    }

    fn told(&mut self) -> Box<ReferenceUpdate> {
        let owner = key(MARKS + self.dice.roll(3));
        Box::new(ReferenceUpdate { key: self.reference(), owner, status: Some(200) })
    }

    fn settle_row(&mut self, key: Key) -> SettleRow {
        let held = self.dice.amount(3);
        SettleRow {
            place: 0,
            key,
            family: 1,
            limit: limit_of(key),
            held,
            at: self.now.before(self.span(500)),
            price: match self.dice.roll(8) {
                0 => Price::Drain,
                _ => Price::Units(self.dice.amount(6)),
            },
            debt: self.dice.one_in(2),
            penalty: self.dice.one_in(2).then(|| self.penalty()),
            upstream: self.dice.one_in(10).then(|| self.span(2_000)),
            shadow: self.dice.one_in(6),
            lease: self.dice.roll(6),
            bans: (0..self.dice.roll(3) as u8).map(|rule| self.ban(rule)).collect(),
            watch: self.dice.one_in(2).then(|| Box::new(self.watch())),
        }
    }

    fn ban(&mut self, rule: u8) -> BanRow {
        let after = Rate { amount: 2 + self.dice.amount(2), per: Span::from_secs(3) };
        BanRow { rule, after: (!self.dice.one_in(8)).then_some(after), act: self.act(Origin::Ban) }
    }

    fn watch(&mut self) -> WatchRow {
        WatchRow {
            in_part: self.dice.one_in(2),
            per: Span::from_secs(24),
            above: Percent::from_hundredths(6_000),
            min: 4,
            act: self.act(Origin::Ban),
        }
    }

    fn credit(&mut self) -> Batch {
        let rows = self.keys(2).into_iter().filter_map(|key| match limit_of(key) {
            Limit::Bucket(terms) => Some(CreditRow { key, terms, amount: 2 }),
            _ => None,
        });
        let rows = rows.collect();
        let event = if self.dice.one_in(2) { "payment" } else { "return" };
        Batch::Credit(CreditBatch { reference: self.reference(), event: Arc::from(event), rows })
    }

    fn block(&mut self) -> Batch {
        let keys = self.keys(2);
        let rows = keys.into_iter().map(|key| BlockRow::new(key, self.act(Origin::Operator)));
        Batch::Block(rows.collect())
    }

    fn reconcile(&mut self) -> Batch {
        let terms = terms();
        let row = |dice: &mut Dice, now: Time| ReconcileRow {
            key: key(6 * dice.roll(KEYS / 6)),
            terms,
            available: dice.amount(12) - 1,
            observed_at: now.before(Span::from_millis(dice.amount(400))),
        };
        Batch::Reconcile(vec![row(&mut self.dice, self.now)])
    }

    fn act(&mut self, origin: Origin) -> BlockProposal {
        let reason = self.dice.one_in(2).then(|| "too much".into());
        let note = BlockNote { reason, status: Some(429), message: None };
        BlockProposal { penalty: self.penalty(), origin, shadow: self.dice.one_in(6), note }
    }

    fn penalty(&mut self) -> Penalty {
        let first = self.span(2_000);
        if self.dice.one_in(2) {
            return Penalty::fixed(first);
        }
        Penalty { first, factor: 2, max: Span::from_secs(30), forget: Span::from_secs(5) }
    }

    /// Some keys, each once.
    fn keys(&mut self, most: u64) -> Vec<Key> {
        let count = 1 + self.dice.roll(most);
        let first = self.dice.roll(KEYS);
        let step = 1 + 2 * self.dice.roll(2);
        let numbers = (0..count).map(|n| (first + n * step) % KEYS);
        numbers.map(key).collect()
    }

    fn reference(&mut self) -> Key {
        key(REFERENCES + self.dice.roll(5))
    }

    fn span(&mut self, most_millis: u64) -> Span {
        Span::from_millis(1 + self.dice.amount(most_millis))
    }
}

/// A key has one algorithm for life, as a digest of policy and algorithm has.
fn limit_of(wanted: Key) -> Limit {
    let number = (0..KEYS).find(|number| key(*number) == wanted).expect("a key of the story");
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
        _ => unreachable!("a bucket is a bucket"),
    }
}
