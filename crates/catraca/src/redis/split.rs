//! Batches over servers: which group a batch is of, and one over several groups as one for each.
//!
//! Only what blocks, frees, forgets or corrects keys may be split: nothing in it depends on another
//! row. Must not split a check or a settle, which are all or nothing.

use std::collections::BTreeMap;

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;

/// The group of a batch's first key; all others are of the same.
pub(super) fn group(batch: &Batch) -> u16 {
    let mut first = None;
    batch.each_key(|key| {
        first.get_or_insert(key);
    });
    first.map_or(0, Key::group)
}

/// A part of a batch, and where its rows were.
type Part = (Vec<usize>, Batch);

/// The parts of a batch whose keys are of several groups.
pub(super) fn split(batch: &Batch) -> Option<Vec<Part>> {
    match batch {
        Batch::Block(rows) => by_group(rows, |row| row.key, Batch::Block),
        Batch::Unblock(keys) => by_group(keys, |key| *key, Batch::Unblock),
        Batch::Reset(keys) => by_group(keys, |key| *key, Batch::Reset),
        Batch::Reconcile(rows) => by_group(rows, |row| row.key, Batch::Reconcile),
        Batch::Check(_) | Batch::Settle(_) | Batch::Recall(_) | Batch::Credit(_) => None,
    }
}

fn by_group<T: Clone>(
    rows: &[T],
    key: impl Fn(&T) -> Key,
    batch: impl Fn(Vec<T>) -> Batch,
) -> Option<Vec<Part>> {
    let mut groups: BTreeMap<u16, (Vec<usize>, Vec<T>)> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        let (places, some) = groups.entry(key(row).group()).or_default();
        places.push(place);
        some.push(row.clone());
    }
    let several = groups.len() > 1;
    several.then(|| groups.into_values().map(|(places, rows)| (places, batch(rows))).collect())
}

/// The replies to the parts as one to the whole; nothing if they are not all of one kind.
pub(super) fn merge(replies: Vec<(Vec<usize>, Reply)>) -> Option<Reply> {
    let (mut blocks, mut freed, mut corrected, mut reset) = (vec![], vec![], vec![], None);
    for (places, reply) in replies {
        match reply {
            Reply::Block(rows) => blocks.extend(places.into_iter().zip(rows)),
            Reply::Unblock(rows) => freed.extend(places.into_iter().zip(rows)),
            Reply::Reconcile(rows) => corrected.extend(places.into_iter().zip(rows)),
            Reply::Reset(now) => reset = reset.max(Some(now)),
            _ => return None,
        }
    }
    match (blocks.is_empty(), freed.is_empty(), corrected.is_empty(), reset) {
        (false, true, true, None) => Some(Reply::Block(in_order(blocks))),
        (true, false, true, None) => Some(Reply::Unblock(in_order(freed))),
        (true, true, false, None) => Some(Reply::Reconcile(in_order(corrected))),
        (true, true, true, Some(now)) => Some(Reply::Reset(now)),
        _ => None,
    }
}

fn in_order<T>(mut rows: Vec<(usize, T)>) -> Vec<T> {
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8, group: u16) -> Key {
        Key::from_bytes([number; 16]).in_group(group)
    }

    #[test]
    fn a_batch_over_groups_is_split_and_its_reply_is_whole_again() {
        let keys = vec![key(1, 9), key(2, 4), key(3, 9), key(4, 4)];
        let parts = split(&Batch::Unblock(keys)).expect("two groups");
        let replies = parts.into_iter().map(|(places, part)| {
            let Batch::Unblock(keys) = part else { panic!("another kind") };
            assert!(keys.iter().all(|one| one.group() == keys[0].group()));
            let stood = keys.iter().map(|one| *one == key(3, 9) || *one == key(2, 4));
            (places, Reply::Unblock(stood.collect()))
        });
        let merged = merge(replies.collect());
        assert_eq!(merged, Some(Reply::Unblock(vec![false, true, true, false])));
        assert_eq!(split(&Batch::Reset(vec![key(1, 9), key(2, 9)])), None);
        assert_eq!(merge(vec![(vec![0], Reply::Recall(None))]), None);
    }
}
