//! The map of a cluster: its primaries, the slots of each, and the connections to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::connection::RedisConnection;
use super::handshake::ServerInfo;
use super::hash_slots::{SlotRange, slot_of_group};
use super::url::RedisAddress;
use crate::store::PrimaryId;

/// A primary of the cluster, as this node knows it.
pub(super) struct ClusterPrimary {
    pub id: PrimaryId,
    pub server: RedisAddress,
    pub connection: Arc<RedisConnection>,
    /// What the server said when it was connected last; stays while the connection is down.
    last_info: ArcSwapOption<ServerInfo>,
    marker: Mutex<LossMarker>,
}

/// A key by which a node notices that a primary was emptied, and how often keys were lost. Another
/// key is used when its slot was moved to another server: that is no loss.
#[derive(Default)]
struct LossMarker {
    /// The group of the key, and its value.
    last: Option<(u16, String)>,
    losses: u64,
}

impl ClusterPrimary {
    fn new(id: PrimaryId, server: RedisAddress, connection: Arc<RedisConnection>) -> Self {
        let last_info = ArcSwapOption::empty();
        Self { id, server, connection, last_info, marker: Mutex::default() }
    }

    /// What the server said when it was connected last.
    pub fn server_info(&self) -> Option<Arc<ServerInfo>> {
        let last = self.last_info.load_full();
        let Some(now) = self.connection.server_info() else { return last };
        if last.is_none_or(|last| !Arc::ptr_eq(&last, &now)) {
            self.last_info.store(Some(now.clone()));
        }
        Some(now)
    }

    /// The group of the marker that was read last.
    pub fn marker_group(&self) -> Option<u16> {
        self.marker.lock().last.as_ref().map(|(group, _)| *group)
    }

    /// Notes the value of a marker. If the marker of the same group had another value before, the
    /// server was emptied.
    pub fn note_marker(&self, group: u16, value: &str) {
        let mut marker = self.marker.lock();
        let is_lost = marker.last.as_ref().is_some_and(|(old, was)| *old == group && was != value);
        marker.losses += u64::from(is_lost);
        marker.last = Some((group, value.to_owned()));
    }

    /// Notes that the server has slots without their keys.
    pub fn count_loss(&self) {
        self.marker.lock().losses += 1;
    }

    /// How often the server was emptied, or got slots without their keys, as far as it is known.
    pub fn losses(&self) -> u64 {
        self.marker.lock().losses
    }
}

/// The primaries of a cluster, with their slots and the connections to them.
#[derive(Default)]
pub(super) struct SlotMap {
    /// Sorted.
    ranges: Vec<SlotRange>,
    primaries: BTreeMap<RedisAddress, Arc<ClusterPrimary>>,
    /// Also those of servers that a call was redirected to and that have no slots in this map.
    connections: BTreeMap<RedisAddress, Arc<RedisConnection>>,
}

impl SlotMap {
    /// The primary of a slot.
    pub fn primary(&self, slot: u16) -> Option<&Arc<ClusterPrimary>> {
        let after = self.ranges.partition_point(|range| range.first <= slot);
        let range = self.ranges.get(after.checked_sub(1)?).filter(|range| slot <= range.last)?;
        self.primaries.get(&range.server)
    }

    pub fn primaries(&self) -> impl Iterator<Item = &Arc<ClusterPrimary>> {
        self.primaries.values()
    }

    pub fn connection_to(&self, server: &RedisAddress) -> Option<Arc<RedisConnection>> {
        self.connections.get(server).cloned()
    }

    pub fn connections(&self) -> impl Iterator<Item = &Arc<RedisConnection>> {
        self.connections.values()
    }

    /// Groups whose keys a primary has, beginning with the one whose marker was read last.
    pub fn groups_of(&self, primary: &ClusterPrimary) -> impl Iterator<Item = u16> {
        let has = move |group: &u16| {
            let owner = self.primary(slot_of_group(*group));
            owner.is_some_and(|owner| owner.id == primary.id)
        };
        primary.marker_group().into_iter().chain(0..=u16::MAX).filter(has)
    }

    /// A copy with one more connection.
    pub fn with_connection(&self, server: RedisAddress, connection: Arc<RedisConnection>) -> Self {
        let mut connections = self.connections.clone();
        connections.entry(server).or_insert(connection);
        let ranges = self.ranges.clone();
        Self { ranges, primaries: self.primaries.clone(), connections }
    }

    /// A map of new ranges, whose primaries have these ids. Primaries that are still in it, and
    /// connections, are reused; dropping the old map closes the others.
    pub fn with_ranges(
        &self,
        mut ranges: Vec<SlotRange>,
        ids: &BTreeMap<RedisAddress, PrimaryId>,
        connect: impl Fn(&RedisAddress) -> Arc<RedisConnection>,
    ) -> Self {
        ranges.sort_by_key(|range| range.first);
        let mut primaries = BTreeMap::new();
        let mut connections = BTreeMap::new();
        for (server, id) in ids {
            let known = self.primaries.get(server).filter(|primary| primary.id == *id);
            let primary = known.cloned().unwrap_or_else(|| {
                let connection = self.connection_to(server).unwrap_or_else(|| connect(server));
                Arc::new(ClusterPrimary::new(*id, server.clone(), connection))
            });
            connections.insert(server.clone(), primary.connection.clone());
            primaries.insert(server.clone(), primary);
        }
        Self { ranges, primaries, connections }
    }
}
