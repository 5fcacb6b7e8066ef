//! Splits a batch with keys of several groups into one batch per group, and merges the replies: in
//! a cluster, groups may be on different servers.
//!
//! Only batches whose rows do not depend on each other are split: block, unblock, reset, reconcile.
//! A check or a settle applies all of its rows or none and always has keys of one group.

use std::collections::BTreeMap;

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;

/// The group of a batch: that of its first key, which all other keys share.
pub(super) fn batch_group(batch: &Batch) -> u16 {
    let mut first = None;
    batch.each_key(|key| {
        first.get_or_insert(key);
    });
    first.map_or(0, Key::group)
}

/// The rows of one group: their indexes in the original batch, and the batch of these rows.
type GroupPart = (Vec<usize>, Batch);

/// The batches per group, or nothing if the batch has keys of one group or must not be split.
pub(super) fn split(batch: &Batch) -> Option<Vec<GroupPart>> {
    match batch {
        Batch::Block(rows) => split_rows(rows, |(key, _)| *key, Batch::Block),
        Batch::Unblock(rows) => split_rows(rows, |row| row.key, Batch::Unblock),
        Batch::Reset(keys) => split_rows(keys, |key| *key, Batch::Reset),
        Batch::Reconcile(rows) => split_rows(rows, |row| row.key, Batch::Reconcile),
        Batch::Check(_) | Batch::Settle(_) | Batch::Recall(_) | Batch::Credit(_) => None,
    }
}

fn split_rows<T: Clone>(
    rows: &[T],
    key: impl Fn(&T) -> Key,
    batch: impl Fn(Vec<T>) -> Batch,
) -> Option<Vec<GroupPart>> {
    let mut groups: BTreeMap<u16, (Vec<usize>, Vec<T>)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let (indexes, group_rows) = groups.entry(key(row).group()).or_default();
        indexes.push(index);
        group_rows.push(row.clone());
    }
    let several = groups.len() > 1;
    several.then(|| groups.into_values().map(|(indexes, rows)| (indexes, batch(rows))).collect())
}

/// The reply to the original batch; nothing if the replies are not all of one kind.
pub(super) fn merge(replies: Vec<(Vec<usize>, Reply)>) -> Option<Reply> {
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
        let parts = split(&Batch::Unblock(rows)).expect("two groups");
        let replies = parts.into_iter().map(|(indexes, part)| {
            let Batch::Unblock(rows) = part else { panic!("another kind") };
            let keys: Vec<Key> = rows.iter().map(|row| row.key).collect();
            assert!(keys.iter().all(|one| one.group() == keys[0].group()));
            let was_blocked = keys.iter().map(|one| *one == key(3, 9) || *one == key(2, 4));
            (indexes, Reply::Unblock(was_blocked.collect()))
        });
        let merged = merge(replies.collect());
        assert_eq!(merged, Some(Reply::Unblock(vec![false, true, true, false])));
        assert_eq!(split(&Batch::Reset(vec![key(1, 9), key(2, 9)])), None);
        assert_eq!(merge(vec![(vec![0], Reply::Recall(None))]), None);
    }
}
