//! Splits a batch by the server or the group of its keys, and merges the replies.
//!
//! Only batches whose rows do not depend on each other are split: block, unblock, reset, reconcile.
//! A check or a settle applies all of its rows or none and always has keys of one group.

use std::collections::BTreeMap;

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;

/// A part of a batch: the indexes of its rows in the original batch, and the batch of these rows.
pub(crate) type BatchPart = (Vec<usize>, Batch);

/// The first key of a batch. All other keys of a batch that is not split are with it.
pub(crate) fn first_key(batch: &Batch) -> Option<Key> {
    let mut first = None;
    batch.each_key(|key| {
        first.get_or_insert(key);
    });
    first
}

/// One batch per value of `place`, or nothing if all keys have the same one or the batch must not
/// be split.
pub(crate) fn split_by<P: Ord>(batch: &Batch, place: impl Fn(Key) -> P) -> Option<Vec<BatchPart>> {
    match batch {
        Batch::Block(rows) => split_rows(rows, |(key, _)| place(*key), Batch::Block),
        Batch::Unblock(rows) => split_rows(rows, |row| place(row.key), Batch::Unblock),
        Batch::Reset(keys) => split_rows(keys, |key| place(*key), Batch::Reset),
        Batch::Reconcile(rows) => split_rows(rows, |row| place(row.key), Batch::Reconcile),
        Batch::Check(_) | Batch::Settle(_) | Batch::Recall(_) | Batch::Credit(_) => None,
    }
}

fn split_rows<T: Clone, P: Ord>(
    rows: &[T],
    place: impl Fn(&T) -> P,
    batch: impl Fn(Vec<T>) -> Batch,
) -> Option<Vec<BatchPart>> {
    let mut places: BTreeMap<P, (Vec<usize>, Vec<T>)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let (indexes, part) = places.entry(place(row)).or_default();
        indexes.push(index);
        part.push(row.clone());
    }
    let several = places.len() > 1;
    several.then(|| places.into_values().map(|(indexes, rows)| (indexes, batch(rows))).collect())
}

/// The reply to the original batch; nothing if the replies are not all of one kind.
pub(crate) fn merge(replies: Vec<(Vec<usize>, Reply)>) -> Option<Reply> {
    let mut blocked = vec![];
    let mut unblocked = vec![];
    let mut reconciled = vec![];
    let mut reset = None;
    for (indexes, reply) in replies {
        match reply {
            Reply::Block(rows) => blocked.extend(indexes.into_iter().zip(rows)),
            Reply::Unblock(rows) => unblocked.extend(indexes.into_iter().zip(rows)),
            Reply::Reconcile(rows) => reconciled.extend(indexes.into_iter().zip(rows)),
            // The latest of the servers' instants: all keys are reset by then.
            Reply::Reset(now) => reset = reset.max(Some(now)),
            _ => return None,
        }
    }
    match (blocked.is_empty(), unblocked.is_empty(), reconciled.is_empty(), reset) {
        (false, true, true, None) => Some(Reply::Block(in_order(blocked))),
        (true, false, true, None) => Some(Reply::Unblock(in_order(unblocked))),
        (true, true, false, None) => Some(Reply::Reconcile(in_order(reconciled))),
        (true, true, true, Some(now)) => Some(Reply::Reset(now)),
        _ => None,
    }
}

fn in_order<T>(mut rows: Vec<(usize, T)>) -> Vec<T> {
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use catraca_core::batch::UnblockRow;

    use super::*;

    fn key(number: u8, group: u16) -> Key {
        Key::from_bytes([number; 16]).in_group(group)
    }

    #[test]
    fn a_batch_over_groups_is_split_and_its_reply_is_whole_again() {
        let keys = vec![key(1, 9), key(2, 4), key(3, 9), key(4, 4)];
        let rows = keys.into_iter().map(UnblockRow::from).collect();
        let parts = split_by(&Batch::Unblock(rows), Key::group).expect("two groups");
        let replies = parts.into_iter().map(|(indexes, part)| {
            let Batch::Unblock(rows) = part else { panic!("another kind") };
            let keys: Vec<Key> = rows.iter().map(|row| row.key).collect();
            assert!(keys.iter().all(|one| one.group() == keys[0].group()));
            let was_blocked = keys.iter().map(|one| *one == key(3, 9) || *one == key(2, 4));
            (indexes, Reply::Unblock(was_blocked.collect()))
        });
        let merged = merge(replies.collect());
        assert_eq!(merged, Some(Reply::Unblock(vec![false, true, true, false])));
        assert_eq!(split_by(&Batch::Reset(vec![key(1, 9), key(2, 9)]), Key::group), None);
        assert_eq!(merge(vec![(vec![0], Reply::Recall(None))]), None);
    }
}
