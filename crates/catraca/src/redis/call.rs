//! A batch as the script takes it: the names of every cell it may touch, and its bytes.
//!
//! Must not decide anything, nor leave out a key that the script might read.

use catraca_core::batch::{Batch, Check, Credit, ReconcileRow, Settle, SettleRow};
use catraca_core::digest::Key;
use catraca_core::run::RULES_MAX;

use super::keys::{Keys, Kind};
use super::pack::Pack;

/// The arguments of one run of the script.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    keys: Keys<'a>,
    pack: Pack,
}

impl<'a> Call<'a> {
    /// The arguments for a batch, with every key beginning like this.
    pub fn new(prefix: &'a [u8], batch: &Batch) -> Self {
        let mut call = Self { keys: Keys::new(prefix), pack: Pack::new(number(batch)) };
        match batch {
            Batch::Check(check) => call.check(check),
            Batch::Settle(settle) => call.settle(settle),
            Batch::Recall(key) => call.keys.push(Kind::Reference, *key),
            Batch::Credit(credit) => call.credit(credit),
            Batch::Block(rows) => rows.iter().for_each(|row| {
                call.keys.push(Kind::Block, row.key);
                call.pack.act(&row.act);
                call.pack.past(row.past);
            }),
            Batch::Unblock(keys) => keys.iter().for_each(|key| call.keys.push(Kind::Block, *key)),
            Batch::Reset(keys) => keys.iter().for_each(|key| call.reset(*key)),
            Batch::Reconcile(rows) => rows.iter().for_each(|row| call.reconcile(row)),
        }
        call
    }

    /// `KEYS`, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter()
    }

    /// `ARGV[1]`.
    pub fn batch(&self) -> &[u8] {
        self.pack.bytes()
    }

    fn check(&mut self, check: &Check) {
        self.pack.check(check);
        if let Some(remember) = &check.remember {
            self.keys.push(Kind::Reference, remember.key);
        }
        for row in &check.rows {
            self.pack.check_row(row);
            self.counter(row.key, Kind::of(&row.limit));
        }
    }

    fn settle(&mut self, settle: &Settle) {
        self.pack.settle(settle);
        self.keys.push(Kind::Mark, settle.mark);
        if let Some(told) = &settle.reference {
            self.keys.push(Kind::Reference, told.key);
        }
        for policy in settle.rows.chunk_by(|one, next| one.family == next.family) {
            for (place, row) in policy.iter().enumerate() {
                self.pack.settle_row(row, place, &policy[0]);
                self.settle_keys(row, &policy[0]);
            }
        }
    }

    fn settle_keys(&mut self, row: &SettleRow, first: &SettleRow) {
        self.counter(row.key, Kind::of(&row.limit));
        for ban in row.bans.iter().take(first.bans.len()).filter(|ban| ban.after.is_some()) {
            self.keys.push(Kind::Log, row.key.with_kind(ban.rule + 1));
        }
        if first.watch.is_some() {
            self.keys.push(Kind::Watch, row.key);
        }
    }

    fn counter(&mut self, key: Key, kind: Option<Kind>) {
        kind.into_iter().for_each(|kind| self.keys.push(kind, key));
        self.keys.push(Kind::Block, key);
    }

    fn credit(&mut self, credit: &Credit) {
        self.keys.push(Kind::Reference, credit.reference);
        self.pack.event(&credit.event);
        for row in &credit.rows {
            self.keys.push(Kind::Bucket, row.key);
            self.pack.bucket(&row.terms);
            self.pack.numbers(&[row.amount]);
        }
    }

    fn reset(&mut self, key: Key) {
        let kinds = [Kind::Bucket, Kind::Log, Kind::Fixed, Kind::Leases, Kind::Block, Kind::Watch];
        kinds.into_iter().for_each(|kind| self.keys.push(kind, key));
        (1..=RULES_MAX).for_each(|kind| self.keys.push(Kind::Log, key.with_kind(kind)));
    }

    fn reconcile(&mut self, row: &ReconcileRow) {
        self.keys.push(Kind::Bucket, row.key);
        self.pack.bucket(&row.terms);
        self.pack.numbers(&[row.available, row.observed_at.micros()]);
    }
}

/// The script's numbers of the operations: they may be added to, never changed.
const fn number(batch: &Batch) -> u8 {
    match batch {
        Batch::Check(_) => 1,
        Batch::Settle(_) => 2,
        Batch::Recall(_) => 3,
        Batch::Credit(_) => 4,
        Batch::Block(_) => 5,
        Batch::Unblock(_) => 6,
        Batch::Reset(_) => 7,
        Batch::Reconcile(_) => 8,
    }
}
