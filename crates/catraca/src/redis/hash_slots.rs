//! The slots of a Redis Cluster: which primary has which slots, and the slot of a group of keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::{AsyncConnectionConfig, ProtocolVersion, RedisResult, Value};

use super::connect_error::ConnectError;
use super::connection::RedisConnection;
use super::handshake::{ConnectSettings, to_connect_error};
use super::url::RedisAddress;

const SLOTS: u16 = 16_384;

/// The hash tag in the keys of a group: Redis computes the slot from the text between the braces.
pub(super) fn hash_tag(group: u16) -> String {
    format!("{{{group:04x}}}")
}

/// The slot of a group's keys.
pub(super) fn slot_of_group(group: u16) -> u16 {
    let tag = hash_tag(group);
    let bytes = tag.as_bytes();
    // Without the braces.
    crc16(&bytes[1..bytes.len() - 1]) % SLOTS
}

/// CRC-16/XMODEM, which Redis Cluster uses for slots.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

/// A range of slots of one primary; `last` is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub first: u16,
    pub last: u16,
    pub server: RedisAddress,
}

/// The primaries of a cluster, with their slots and the connections to them.
#[derive(Default)]
pub(super) struct SlotMap {
    ranges: Vec<SlotRange>,
    connections: BTreeMap<RedisAddress, Arc<RedisConnection>>,
}

impl SlotMap {
    pub fn connection(&self, slot: u16) -> Option<Arc<RedisConnection>> {
        self.connections.get(self.owner(slot)?).cloned()
    }

    pub fn connection_to(&self, server: &RedisAddress) -> Option<Arc<RedisConnection>> {
        self.connections.get(server).cloned()
    }

    pub fn connections(&self) -> impl Iterator<Item = &Arc<RedisConnection>> {
        self.connections.values()
    }

    /// The connection to each primary, and a group whose keys that primary has.
    pub fn primaries(&self) -> Vec<(Arc<RedisConnection>, u16)> {
        let with_group = |connection: &Arc<RedisConnection>, server: &RedisAddress| {
            let has = |group: &u16| self.owner(slot_of_group(*group)) == Some(server);
            Some((connection.clone(), (0..=u16::MAX).find(has)?))
        };
        self.connections
            .iter()
            .filter_map(|(server, connection)| with_group(connection, server))
            .collect()
    }

    fn owner(&self, slot: u16) -> Option<&RedisAddress> {
        let has = |range: &&SlotRange| (range.first..=range.last).contains(&slot);
        self.ranges.iter().find(has).map(|range| &range.server)
    }

    /// A copy with one more connection.
    pub fn with_connection(&self, server: RedisAddress, connection: Arc<RedisConnection>) -> Self {
        let mut connections = self.connections.clone();
        connections.entry(server).or_insert(connection);
        Self { ranges: self.ranges.clone(), connections }
    }

    /// A map of new ranges. Connections to servers that are still in it are reused; dropping the
    /// old map closes the others.
    pub fn with_ranges(
        &self,
        ranges: Vec<SlotRange>,
        connect: impl Fn(&RedisAddress) -> Arc<RedisConnection>,
    ) -> Self {
        let mut connections = BTreeMap::new();
        for SlotRange { server, .. } in &ranges {
            let connection = || self.connection_to(server).unwrap_or_else(|| connect(server));
            connections.entry(server.clone()).or_insert_with(connection);
        }
        Self { ranges, connections }
    }
}

/// Asks a server of a cluster for the slot map.
pub(super) async fn query_slots(
    settings: &ConnectSettings,
    server: &RedisAddress,
) -> Result<Vec<SlotRange>, ConnectError> {
    let refused = |error| to_connect_error(server, &error);
    let config = AsyncConnectionConfig::new();
    let opened = settings.open(server, config, ProtocolVersion::RESP2).await;
    let mut connection = opened.map_err(refused)?;
    let ask = redis::cmd("CLUSTER").arg("SLOTS").to_owned();
    let answer: RedisResult<Vec<Vec<Value>>> = ask.query_async(&mut connection).await;
    let ranges: Vec<SlotRange> =
        answer.map_err(refused)?.iter().filter_map(|entry| parse_range(entry, server)).collect();
    if ranges.is_empty() {
        let reason = "its cluster has no slots yet".to_owned();
        return Err(ConnectError::Refused { server: server.to_string(), reason });
    }
    Ok(ranges)
}

/// Reads an entry of `CLUSTER SLOTS`: first slot, last slot, the primary, its replicas. A server is
/// its host, its port and more. An empty host means the host of the server that was asked.
fn parse_range(entry: &[Value], asked: &RedisAddress) -> Option<SlotRange> {
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = entry else {
        return None;
    };
    let [host, Value::Int(port), ..] = &primary[..] else { return None };
    let host = match (host, asked) {
        (Value::BulkString(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        (_, RedisAddress::Tcp(host, _)) => host.clone(),
        _ => return None,
    };
    let server = RedisAddress::Tcp(host, u16::try_from(*port).ok()?);
    Some(SlotRange { first: u16::try_from(*first).ok()?, last: u16::try_from(*last).ok()?, server })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // The expected slots are those of `CLUSTER KEYSLOT`.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
        assert_eq!(slot_of_group(0), crc16(b"0000") % SLOTS);
        assert_eq!(hash_tag(0xab), "{00ab}");
    }

    #[test]
    fn groups_spread_over_all_slots() {
        let mut thirds = [0; 3];
        (0..=u16::MAX).for_each(|group| thirds[usize::from(slot_of_group(group) / 5462)] += 1);
        assert!(thirds.iter().all(|count| *count > 21_000), "{thirds:?}");
    }
}
