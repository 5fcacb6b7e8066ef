//! The slots of a Redis Cluster: the slot of a group of keys, and the ranges that a server reports.

use redis::{AsyncConnectionConfig, ProtocolVersion, RedisResult, Value};

use super::connect_error::ConnectError;
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
    /// The primary's replicas, of which one takes over if it fails.
    pub replicas: Vec<RedisAddress>,
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

/// Reads an entry of `CLUSTER SLOTS`: first slot, last slot, the primary, its replicas.
fn parse_range(entry: &[Value], asked: &RedisAddress) -> Option<SlotRange> {
    let [Value::Int(first), Value::Int(last), primary, replicas @ ..] = entry else {
        return None;
    };
    Some(SlotRange {
        first: u16::try_from(*first).ok()?,
        last: u16::try_from(*last).ok()?,
        server: parse_server(primary, asked)?,
        replicas: replicas.iter().filter_map(|replica| parse_server(replica, asked)).collect(),
    })
}

/// Reads a server: its host, its port and more. An empty host means the host of the server that was
/// asked.
fn parse_server(server: &Value, asked: &RedisAddress) -> Option<RedisAddress> {
    let Value::Array(server) = server else { return None };
    let [host, Value::Int(port), ..] = &server[..] else { return None };
    let host = match (host, asked) {
        (Value::BulkString(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        (_, RedisAddress::Tcp(host, _)) => host.clone(),
        _ => return None,
    };
    Some(RedisAddress::Tcp(host, u16::try_from(*port).ok()?))
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
