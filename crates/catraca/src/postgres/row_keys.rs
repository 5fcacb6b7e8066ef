//! The keys whose rows a transaction locks: those that the batches may write, whose rows are
//! created if they are missing, and those that are only written if they exist.
//!
//! Every key that the rules may write must be in one of the two lists: rows that are not locked
//! cannot be written.

use catraca_core::batch::{Batch, CheckBatch, SettleBatch, SettleRow};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;

/// The keys of some batches, each list in ascending order, in which rows are locked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowKeys {
    /// May be written: missing rows are created.
    pub create: Vec<Key>,
    /// Read, or written if the row exists.
    pub existing: Vec<Key>,
}

impl RowKeys {
    /// The keys of these batches; a key that is in both lists is created.
    pub(super) fn of<'b>(batches: impl Iterator<Item = &'b Batch>) -> Self {
        let mut keys = Self::default();
        batches.for_each(|batch| keys.add(batch));
        let Self { create, existing } = &mut keys;
        create.sort_unstable();
        create.dedup();
        existing.sort_unstable();
        existing.dedup();
        existing.retain(|key| create.binary_search(key).is_err());
        keys
    }

    fn add(&mut self, batch: &Batch) {
        match batch {
            Batch::Check(check) => self.add_check(check),
            Batch::Settle(settle) => self.add_settle(settle),
            Batch::Block(rows) => self.create.extend(rows.iter().map(|(key, _)| *key)),
            Batch::Reconcile(rows) => self.create.extend(rows.iter().map(|row| row.key)),
            // Without a row there is nothing to recall, credit, unblock or reset.
            Batch::Recall(_) | Batch::Credit(_) | Batch::Unblock(_) | Batch::Reset(_) => {
                batch.each_key(|key| self.existing.push(key));
            }
        }
    }

    /// A peek charges nothing, and a row without a limit has no counter.
    fn add_check(&mut self, check: &CheckBatch) {
        for row in &check.rows {
            let only_reads = check.peek || matches!(row.limit, Limit::Unlimited);
            let counter = row.counter().key;
            self.push(counter, !only_reads);
            // A row with a counter elsewhere writes its key only to start a block.
            let may_block = !only_reads && row.penalty.is_some();
            self.push(row.key, may_block || (counter == row.key && !only_reads));
        }
        let remember = check.new_reference.iter().map(|remember| remember.key);
        if check.peek { self.existing.extend(remember) } else { self.create.extend(remember) }
    }

    fn push(&mut self, key: Key, creates: bool) {
        if creates { self.create.push(key) } else { self.existing.push(key) }
    }

    fn add_settle(&mut self, settle: &SettleBatch) {
        self.create.push(settle.marker);
        // A ban that one key triggers blocks all keys of its policy.
        for policy_rows in settle.rows.chunk_by(|one, next| one.family == next.family) {
            let creates = policy_rows.iter().any(may_create);
            for row in policy_rows {
                self.push(row.key, creates);
                self.push(row.counter().key, creates);
            }
        }
        self.existing.extend(settle.reference.iter().map(|update| update.key));
    }
}

/// Whether settling a row may create a cell.
fn may_create(row: &SettleRow) -> bool {
    !matches!(row.limit, Limit::Unlimited)
        || !row.bans.is_empty()
        || row.watch.is_some()
        || row.upstream.is_some()
}

#[cfg(test)]
mod tests {
    use catraca_core::batch::{CheckRow, NewReference};
    use catraca_core::limit::BucketTerms;
    use catraca_core::time::{Span, Time};

    use super::*;

    fn key(number: u8) -> Key {
        Key::from_bytes([number; 16])
    }

    fn row(number: u8, limit: Limit) -> CheckRow {
        CheckRow::new(key(number), limit)
    }

    #[test]
    fn keys_are_sorted_and_unique_and_created_where_anything_may_be_written() {
        let bucket = Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: 1 });
        let remember = NewReference {
            key: key(7),
            owner: key(8),
            ticket: Box::new([]),
            span: Span::from_secs(1),
        };
        let check = Batch::Check(CheckBatch {
            rows: vec![row(3, bucket.clone()), row(1, bucket.clone()), row(9, Limit::Unlimited)]
                .into(),
            new_reference: Some(Box::new(remember)),
            ..CheckBatch::default()
        });
        let rows = [row(1, bucket.clone()), row(4, bucket)].into_iter().collect();
        let peek = Batch::Check(CheckBatch { rows, peek: true, ..CheckBatch::default() });
        let reset = Batch::Reset(vec![key(9), key(2)]);
        let keys = RowKeys::of([&check, &peek, &reset].into_iter());
        assert_eq!(keys.create, [1, 3, 7].map(key));
        assert_eq!(keys.existing, [2, 4, 9].map(key));
    }

    fn settled(number: u8, family: u64, limit: Limit) -> SettleRow {
        SettleRow {
            ticket_index: number,
            family,
            held: 1,
            ..SettleRow::new(key(number), limit, Time::ZERO)
        }
    }

    #[test]
    fn a_settle_creates_all_keys_of_a_policy_that_may_write_one_of_them() {
        let bucket = Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: 1 });
        let settle = Batch::Settle(SettleBatch {
            marker: key(9),
            expires: Time::ZERO,
            rows: vec![
                settled(1, 1, Limit::Unlimited),
                settled(2, 1, bucket),
                settled(3, 2, Limit::Unlimited),
            ],
            reference: None,
        });
        let keys = RowKeys::of([&settle].into_iter());
        assert_eq!(keys.create, [1, 2, 9].map(key));
        assert_eq!(keys.existing, [3].map(key));
    }
}
