//! Which rows a batch needs: those that it may write, made if they are missing, and those that it
//! only finds or does not.
//!
//! Must not leave out a key that the rules may write.

use catraca_core::batch::{Batch, Check, Settle, SettleRow};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;

/// The keys of some batches, in the order in which they are locked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    /// May be written: a row is made where there is none.
    pub make: Vec<Key>,
    /// Written only if they exist.
    pub look: Vec<Key>,
}

impl Keys {
    /// All that these batches need.
    pub(super) fn of<'b>(batches: impl Iterator<Item = &'b Batch>) -> Self {
        let mut keys = Self::default();
        batches.for_each(|batch| keys.add(batch));
        let Self { make, look } = &mut keys;
        make.sort_unstable();
        make.dedup();
        look.sort_unstable();
        look.dedup();
        look.retain(|key| make.binary_search(key).is_err());
        keys
    }

    fn add(&mut self, batch: &Batch) {
        match batch {
            Batch::Check(check) => self.add_check(check),
            Batch::Settle(settle) => self.add_settle(settle),
            Batch::Block(rows) => self.make.extend(rows.iter().map(|row| row.key)),
            Batch::Reconcile(rows) => self.make.extend(rows.iter().map(|row| row.key)),
            // What is not there is not credited, not released and not forgotten.
            Batch::Recall(_) | Batch::Credit(_) | Batch::Unblock(_) | Batch::Reset(_) => {
                batch.each_key(|key| self.look.push(key));
            }
        }
    }

    /// A peek charges nothing, and a row without a limit has nothing to charge nor to exceed.
    fn add_check(&mut self, check: &Check) {
        for row in &check.rows {
            let only_looks = check.peek || matches!(row.limit, Limit::Unlimited);
            if only_looks { self.look.push(row.key) } else { self.make.push(row.key) }
        }
        let remember = check.remember.iter().map(|remember| remember.key);
        if check.peek { self.look.extend(remember) } else { self.make.extend(remember) }
    }

    fn add_settle(&mut self, settle: &Settle) {
        self.make.push(settle.mark);
        for row in &settle.rows {
            if may_start(row) { self.make.push(row.key) } else { self.look.push(row.key) }
        }
        self.look.extend(settle.reference.iter().map(|told| told.key));
    }
}

/// Whether settling a row may leave something where nothing was.
fn may_start(row: &SettleRow) -> bool {
    !matches!(row.limit, Limit::Unlimited)
        || !row.bans.is_empty()
        || row.watch.is_some()
        || row.upstream.is_some()
}

#[cfg(test)]
mod tests {
    use catraca_core::batch::{CheckRow, Remember};
    use catraca_core::limit::BucketTerms;
    use catraca_core::time::Span;

    use super::*;

    fn key(number: u8) -> Key {
        Key::from_bytes([number; 16])
    }

    fn row(number: u8, limit: Limit) -> CheckRow {
        CheckRow {
            key: key(number),
            family: 0,
            limit,
            held: 1,
            penalty: None,
            shadow: false,
            count_denied: false,
            lease: 0,
        }
    }

    #[test]
    fn keys_are_in_order_once_and_made_where_anything_may_be_written() {
        let bucket = Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: 1 });
        let remember =
            Remember { key: key(7), owner: key(8), ticket: Box::new([]), span: Span::from_secs(1) };
        let check = Batch::Check(Check {
            rows: vec![row(3, bucket.clone()), row(1, bucket.clone()), row(9, Limit::Unlimited)]
                .into(),
            remember: Some(Box::new(remember)),
            ..Check::default()
        });
        let rows = [row(1, bucket.clone()), row(4, bucket)].into_iter().collect();
        let peek = Batch::Check(Check { rows, peek: true, ..Check::default() });
        let reset = Batch::Reset(vec![key(9), key(2)]);
        let keys = Keys::of([&check, &peek, &reset].into_iter());
        assert_eq!(keys.make, [1, 3, 7].map(key));
        assert_eq!(keys.look, [2, 4, 9].map(key));
    }
}
