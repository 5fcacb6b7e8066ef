//! The arguments of a script call for one batch: the name of every key that the script may touch
//! (`KEYS`), and the encoded batch (`ARGV[1]`).
//!
//! The order of the keys is the order in which the Lua files call `next_key`.

use catraca_core::algorithm::TermsWriter;
use catraca_core::batch::{Batch, CheckBatch, CreditBatch, ReconcileRow, SettleBatch, SettleRow};
use catraca_core::cell::CellKind;
use catraca_core::digest::Key;
use catraca_core::run::RULES_MAX;

use super::encode::BatchEncoder;
use super::keys::RedisKeys;

/// The arguments of one call of the script.
#[derive(Clone, Debug)]
pub struct ScriptArgs<'a> {
    keys: RedisKeys<'a>,
    batch: BatchEncoder,
}

impl<'a> ScriptArgs<'a> {
    /// The arguments for a batch; all keys begin with `prefix`.
    pub fn new(prefix: &'a [u8], batch: &Batch) -> Self {
        let mut args =
            Self { keys: RedisKeys::new(prefix), batch: BatchEncoder::new(operation(batch)) };
        match batch {
            Batch::Check(check) => args.check(check),
            Batch::Settle(settle) => args.settle(settle),
            Batch::Recall(key) => args.keys.push(CellKind::Reference, *key),
            Batch::Credit(credit) => args.credit(credit),
            Batch::Block(rows) => rows.iter().for_each(|(key, proposal)| {
                args.keys.push(CellKind::Block, *key);
                args.batch.act(proposal);
                args.batch.past(proposal.prior_offences);
            }),
            Batch::Unblock(rows) => rows.iter().for_each(|row| {
                args.keys.push(CellKind::Block, row.key);
                args.batch.only_until(row.only_until);
            }),
            Batch::Reset(keys) => keys.iter().for_each(|key| args.reset(*key)),
            Batch::Reconcile(rows) => rows.iter().for_each(|row| args.reconcile(row)),
        }
        args
    }

    /// `KEYS`, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.keys.iter()
    }

    /// `ARGV[1]`.
    pub fn batch(&self) -> &[u8] {
        self.batch.bytes()
    }

    fn check(&mut self, check: &CheckBatch) {
        self.batch.check(check);
        if let Some(remember) = &check.new_reference {
            self.keys.push(CellKind::Reference, remember.key);
        }
        for row in &check.rows {
            self.batch.check_row(row);
            self.push_counter_and_block(row.counter().key, row.key, row.limit.kind());
        }
    }

    fn settle(&mut self, settle: &SettleBatch) {
        self.batch.settle(settle);
        self.keys.push(CellKind::SettledMarker, settle.marker);
        if let Some(update) = &settle.reference {
            self.keys.push(CellKind::Reference, update.key);
        }
        // Adjacent rows of one family belong to one policy.
        for policy in settle.rows.chunk_by(|one, next| one.family == next.family) {
            for (index, row) in policy.iter().enumerate() {
                self.batch.settle_row(row, index, &policy[0]);
                self.settle_keys(row, &policy[0]);
            }
        }
    }

    /// The keys of a row, in the order of `read_row` in `settle.lua`. The bans are cut as in
    /// `BatchEncoder::settle_row`.
    fn settle_keys(&mut self, row: &SettleRow, first: &SettleRow) {
        self.push_counter_and_block(row.counter().key, row.key, row.limit.kind());
        for ban in row.bans.iter().take(first.bans.len()).filter(|ban| ban.after.is_some()) {
            // The same key as `strikes_key` of core.
            self.keys.push(CellKind::SlidingWindow, row.key.with_kind(ban.rule + 1));
        }
        if first.watch.is_some() {
            self.keys.push(CellKind::RatioWatch, row.key);
        }
    }

    /// `kind` is that of the counter; a row without a limit has only the block.
    fn push_counter_and_block(&mut self, counter: Key, key: Key, kind: Option<CellKind>) {
        kind.into_iter().for_each(|kind| self.keys.push(kind, counter));
        self.keys.push(CellKind::Block, key);
    }

    fn credit(&mut self, credit: &CreditBatch) {
        self.keys.push(CellKind::Reference, credit.reference);
        self.batch.event(&credit.event);
        for row in &credit.rows {
            self.keys.push(CellKind::Bucket, row.key);
            self.batch.bucket(&row.terms, row.shared.as_deref());
            self.batch.numbers(&[row.amount]);
        }
    }

    /// All cells of a key, except marks and references, which have keys of their own.
    fn reset(&mut self, key: Key) {
        let kinds = CellKind::ALL.iter().filter(|kind| kind.is_reset());
        kinds.for_each(|kind| self.keys.push(*kind, key));
        // The strikes of every ban rule.
        (1..=RULES_MAX)
            .for_each(|kind| self.keys.push(CellKind::SlidingWindow, key.with_kind(kind)));
    }

    fn reconcile(&mut self, row: &ReconcileRow) {
        self.keys.push(CellKind::Bucket, row.key);
        self.batch.bucket(&row.terms, row.shared.as_deref());
        self.batch.numbers(&[row.available, row.observed_at.micros()]);
    }
}

/// The number of an operation in `prelude.lua`. Nodes of several versions may share a store, so
/// numbers may be added, but not changed.
const fn operation(batch: &Batch) -> u8 {
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

#[cfg(test)]
mod tests {
    use catraca_core::algorithm::{FixedTerms, InflightTerms};
    use catraca_core::batch::CheckRow;
    use catraca_core::limit::{BucketTerms, Limit, WindowTerms};
    use catraca_core::time::Span;

    use super::*;

    const KEY: [u8; 16] = [b'k'; 16];

    fn names(args: &ScriptArgs<'_>) -> String {
        let letters = args.keys().map(|name| char::from(name[0]));
        letters.collect()
    }

    fn check_of(limit: Limit) -> (String, String) {
        let row = CheckRow {
            family: 1,
            held: 2,
            count_denied: true,
            lease: 0x0123_4567_89AB_CDEF,
            ..CheckRow::new(Key::from_bytes(KEY), limit)
        };
        let batch = Batch::Check(CheckBatch {
            rows: [row].into_iter().collect(),
            peek: false,
            already_denied: false,
            new_reference: None,
        });
        let args = ScriptArgs::new(b"", &batch);
        (names(&args), args.batch().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Nodes of several versions may share a store: names of keys and numbers of algorithms stay.
    #[test]
    fn every_algorithm_keeps_its_key_and_its_encoding() {
        let span = Span::from_micros(3);
        let terms = |limit| WindowTerms { limit, span };
        let limits = [
            Limit::Unlimited,
            Limit::Bucket(BucketTerms { size: 1, tokens: 2, period: 3 }),
            Limit::Window(vec![terms(1), terms(2)].into()),
            Limit::Fixed(FixedTerms { limit: 1, span, aligned: true }),
            Limit::Inflight(InflightTerms { limit: 1, hold: span }),
        ];
        let head = |algorithm: u8| format!("0100{algorithm:02x}020000000000000040");
        let one = "000000000000f03f";
        let two = "0000000000000040";
        let three = "0000000000000840";
        let expected = [
            ("x", head(0)),
            ("bx", format!("{}{one}{two}{three}02c09cfd", head(1))),
            ("lx", format!("{}02{one}{three}{two}{three}", head(2))),
            ("fx", format!("{}{one}{three}01", head(3))),
            ("ix", format!("{}{one}{three}0123456789abcdef", head(4))),
        ];
        let checks = limits.map(check_of);
        assert_eq!(checks, expected.map(|(names, batch)| (names.to_owned(), batch)));
    }

    #[test]
    fn a_reset_deletes_every_kind_of_a_key_and_all_strikes() {
        let args = ScriptArgs::new(b"", &Batch::Reset(vec![Key::from_bytes(KEY)]));
        assert_eq!(names(&args), format!("blfixw{}", "l".repeat(16)));
    }
}
