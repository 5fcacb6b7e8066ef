//! Which primary of a cluster continues which: the ids of primaries from one slot map to the next.
//!
//! A failover replaces a primary by one of its replicas, which may lack the last writes: the
//! replica gets the id of the primary. A server that joins, and receives slots with their keys, has
//! lost nothing and gets a new id. A server that has slots of a primary that is down did not
//! receive their keys: it lost them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::hash_slots::SlotRange;
use super::url::RedisAddress;
use crate::store::PrimaryId;

/// How long the id of a server that left the map is kept for it: servers of a cluster learn of a
/// failover at different moments, and maps of two of them may alternate for a while.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The most ranges of slots without a server that are remembered.
const ORPHANS_MAX: usize = 16_384;

/// The ids of the primaries in the last slot map.
#[derive(Default)]
pub(super) struct PrimaryIds {
    next: u64,
    ranges: Vec<SlotRange>,
    ids: BTreeMap<RedisAddress, PrimaryId>,
    /// Ids of servers that are not in the map any more, and when they left.
    former: BTreeMap<RedisAddress, (PrimaryId, Instant)>,
    /// Slots of primaries that were down when they left, and that no server has had since.
    orphans: Vec<SlotRange>,
}

/// What a new slot map says about primaries.
pub(super) struct PrimaryChanges {
    /// The id of each primary.
    pub ids: BTreeMap<RedisAddress, PrimaryId>,
    /// The servers that gave all of their slots to other primaries.
    pub retired: Vec<RedisAddress>,
    /// The primaries that have slots of a server that was down, without its keys.
    pub heirs: BTreeSet<RedisAddress>,
}

impl PrimaryIds {
    /// Notes a new map. `is_up` says whether a server of the last map is connected.
    pub fn update(
        &mut self,
        ranges: &[SlotRange],
        now: Instant,
        is_up: impl Fn(&RedisAddress) -> bool,
    ) -> PrimaryChanges {
        let owners: BTreeSet<&RedisAddress> = ranges.iter().map(|range| &range.server).collect();
        let mut left: BTreeMap<RedisAddress, PrimaryId> = self.ids.clone();
        left.retain(|server, _| !owners.contains(server));
        let is_down = |server: &RedisAddress| !is_up(server);
        let mut ids = BTreeMap::new();
        for server in &owners {
            if let Some(id) = self.ids.get(*server) {
                ids.insert((*server).clone(), *id);
            }
        }
        self.former.retain(|_, (_, since)| now.saturating_duration_since(*since) < REMEMBERED);
        for server in &owners {
            if !ids.contains_key(*server) {
                let id = self.id_of_new(server, ranges, &mut left, &ids, is_down);
                ids.insert((*server).clone(), id);
            }
        }
        left.keys().filter(|server| is_down(server)).for_each(|server| {
            self.orphans.extend(self.ranges.iter().filter(|old| old.server == *server).cloned());
        });
        let heirs = self.take_heirs(ranges);
        let is_retired =
            |server: &RedisAddress| !is_down(server) && self.gave_away_all(server, ranges);
        let retired: Vec<RedisAddress> =
            left.keys().filter(|server| is_retired(server)).cloned().collect();
        for (server, id) in &self.ids {
            if !ids.contains_key(server) {
                self.former.insert(server.clone(), (*id, now));
            }
        }
        self.former.retain(|server, _| !ids.contains_key(server));
        self.ranges = ranges.to_vec();
        self.ids = ids.clone();
        PrimaryChanges { ids, retired, heirs }
    }

    /// The servers that have orphaned slots now.
    fn take_heirs(&mut self, ranges: &[SlotRange]) -> BTreeSet<RedisAddress> {
        let mut heirs = BTreeSet::new();
        self.orphans.retain(|orphan| {
            let found: Vec<_> = ranges.iter().filter(|new| overlap(orphan, new)).collect();
            heirs.extend(found.iter().map(|new| new.server.clone()));
            found.is_empty()
        });
        let excess = self.orphans.len().saturating_sub(ORPHANS_MAX);
        self.orphans.drain(..excess);
        heirs
    }

    /// The id of a server that was not in the last map. The entry of the primary that it replaces
    /// is removed from `left`.
    fn id_of_new(
        &mut self,
        server: &RedisAddress,
        ranges: &[SlotRange],
        left: &mut BTreeMap<RedisAddress, PrimaryId>,
        used: &BTreeMap<RedisAddress, PrimaryId>,
        is_down: impl Fn(&RedisAddress) -> bool,
    ) -> PrimaryId {
        let is_replica_of = |primary: &RedisAddress| {
            let mut ranges = self.ranges.iter().filter(|range| range.server == *primary);
            ranges.any(|range| range.replicas.contains(server))
        };
        let replaced = left.keys().find(|primary| is_replica_of(primary)).cloned();
        if let Some(id) = replaced.and_then(|primary| left.remove(&primary)) {
            return id;
        }
        let before = self.former.get(server).map(|(id, _)| *id);
        if let Some(id) = before.filter(|id| !used.values().any(|other| other == id)) {
            // It is back: whichever server had its id since then is replaced by it.
            left.retain(|_, other| *other != id);
            return id;
        }
        // A primary that restarted at another address, perhaps without its data.
        let has_slots_of = |primary: &RedisAddress| {
            let own = || ranges.iter().filter(|new| new.server == *server);
            let mut old = self.ranges.iter().filter(|old| old.server == *primary);
            old.any(|old| own().any(|new| overlap(old, new)))
        };
        let moved = left.keys().find(|primary| is_down(primary) && has_slots_of(primary)).cloned();
        if let Some(id) = moved.and_then(|primary| left.remove(&primary)) {
            return id;
        }
        let id = PrimaryId(self.next);
        self.next += 1;
        id
    }

    /// Whether all slots of a server went to servers that were primaries already: by a move of the
    /// slots, and not by a failover.
    fn gave_away_all(&self, server: &RedisAddress, ranges: &[SlotRange]) -> bool {
        let own = self.ranges.iter().filter(|range| range.server == *server);
        own.into_iter().all(|old| {
            let mut heirs = ranges.iter().filter(|new| overlap(old, new)).peekable();
            heirs.peek().is_some() && heirs.all(|new| self.ids.contains_key(&new.server))
        })
    }
}

fn overlap(a: &SlotRange, b: &SlotRange) -> bool {
    a.first <= b.last && b.first <= a.last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> RedisAddress {
        RedisAddress::Tcp("h".to_owned(), port)
    }

    /// Ranges as `(first, last, primary, replica)`.
    fn ranges(list: &[(u16, u16, u16, u16)]) -> Vec<SlotRange> {
        let range = |(first, last, primary, replica): &(u16, u16, u16, u16)| SlotRange {
            first: *first,
            last: *last,
            server: server(*primary),
            replicas: vec![server(*replica)],
        };
        list.iter().map(range).collect()
    }

    /// The ids by port, and the ports of the servers that gave their slots to others.
    fn update(
        ids: &mut PrimaryIds,
        list: &[(u16, u16, u16, u16)],
        now: Instant,
    ) -> (Vec<u64>, Vec<RedisAddress>) {
        let changes = ids.update(&ranges(list), now, |_| true);
        assert!(changes.heirs.is_empty(), "all servers are up");
        (changes.ids.values().map(|PrimaryId(id)| *id).collect(), changes.retired)
    }

    #[test]
    fn a_replica_continues_its_primary_and_a_server_that_joins_continues_none() {
        let now = Instant::now();
        let mut ids = PrimaryIds::default();
        let start = [(0, 9, 1, 11), (10, 19, 2, 12)];
        assert_eq!(update(&mut ids, &start, now), (vec![0, 1], vec![]));
        // A failover of the first.
        let failed = [(0, 9, 11, 99), (10, 19, 2, 12)];
        assert_eq!(update(&mut ids, &failed, now), (vec![1, 0], vec![]));
        // The map of a server that does not know it yet, and the new one again.
        assert_eq!(update(&mut ids, &start, now), (vec![0, 1], vec![]));
        assert_eq!(update(&mut ids, &failed, now), (vec![1, 0], vec![]));
        // A server joins, and receives slots of both.
        let joined = [(0, 4, 11, 1), (5, 14, 3, 13), (15, 19, 2, 12)];
        assert_eq!(update(&mut ids, &joined, now), (vec![1, 2, 0], vec![]));
        // The second gives the rest to the third and leaves.
        let removed = [(0, 4, 11, 1), (5, 19, 3, 13)];
        assert_eq!(update(&mut ids, &removed, now), (vec![2, 0], vec![server(2)]));
        // It joins again long afterwards, as a new one.
        let later = now + REMEMBERED;
        assert_eq!(update(&mut ids, &joined, later), (vec![3, 2, 0], vec![]));
    }

    #[test]
    fn a_server_whose_slots_went_to_a_stranger_has_not_given_them_away() {
        let now = Instant::now();
        let mut ids = PrimaryIds::default();
        update(&mut ids, &[(0, 9, 1, 11), (10, 19, 2, 12)], now);
        let taken = [(0, 4, 5, 15), (5, 9, 2, 12), (10, 19, 2, 12)];
        assert_eq!(update(&mut ids, &taken, now), (vec![1, 2], vec![]));
    }

    /// Regression: a primary that restarted empty at another address counted as one that joined,
    /// and no block was written to it.
    #[test]
    fn a_primary_that_is_back_at_another_address_keeps_its_id() {
        let now = Instant::now();
        let mut ids = PrimaryIds::default();
        update(&mut ids, &[(0, 9, 1, 11), (10, 19, 2, 12)], now);
        let back = ranges(&[(0, 9, 5, 11), (10, 19, 2, 12)]);
        let changes = ids.update(&back, now, |address| *address != server(1));
        assert_eq!(changes.ids[&server(5)], PrimaryId(0));
        assert!(changes.retired.is_empty());
    }

    /// Regression: slots of a lost primary that were given to another one looked like moved slots.
    #[test]
    fn a_primary_that_gets_slots_of_a_lost_one_has_lost_their_keys() {
        let now = Instant::now();
        let is_up = |address: &RedisAddress| *address != server(1);
        let start = [(0, 9, 1, 11), (10, 19, 2, 12), (20, 29, 3, 13)];
        let mut ids = PrimaryIds::default();
        update(&mut ids, &start, now);
        let fixed = ranges(&[(0, 19, 2, 12), (20, 29, 3, 13)]);
        let changes = ids.update(&fixed, now, is_up);
        assert_eq!(changes.heirs, BTreeSet::from([server(2)]));
        assert!(changes.retired.is_empty(), "its keys are not complete anywhere");
        let changes = ids.update(&fixed, now, is_up);
        assert!(changes.heirs.is_empty(), "it is counted once");
        // The same if no server has had the slots for a while.
        let mut ids = PrimaryIds::default();
        update(&mut ids, &start, now);
        let changes = ids.update(&ranges(&start[1..]), now, is_up);
        assert!(changes.heirs.is_empty() && changes.retired.is_empty());
        let changes = ids.update(&fixed, now, is_up);
        assert_eq!(changes.heirs, BTreeSet::from([server(2)]));
    }
}
