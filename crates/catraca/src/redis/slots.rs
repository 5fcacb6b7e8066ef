//! Which server of a cluster has which slots, and in which slot the keys of a group are.
//!
//! Must not ask anybody but the cluster: what it says is taken as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::{AsyncConnectionConfig, ProtocolVersion, RedisResult, Value};

use super::error::ConnectError;
use super::greet::{Manners, refusal};
use super::link::Link;
use super::url::Server;

const SLOTS: u16 = 16_384;

/// What the keys of a group have in braces.
pub(super) fn tag(group: u16) -> String {
    format!("{{{group:04x}}}")
}

/// The slot of a group's keys.
pub(super) fn slot(group: u16) -> u16 {
    let tag = tag(group);
    let bytes = tag.as_bytes();
    crc16(&bytes[1..bytes.len() - 1]) % SLOTS
}

/// The CRC that Redis Cluster uses: XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

/// Slots of one server: the first and the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub first: u16,
    pub last: u16,
    pub server: Server,
}

/// Who has what.
#[derive(Default)]
pub(super) struct Map {
    ranges: Vec<Range>,
    links: BTreeMap<Server, Arc<Link>>,
}

impl Map {
    pub fn link(&self, slot: u16) -> Option<Arc<Link>> {
        self.links.get(self.owner(slot)?).cloned()
    }

    pub fn link_to(&self, server: &Server) -> Option<Arc<Link>> {
        self.links.get(server).cloned()
    }

    pub fn links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.values()
    }

    /// Each primary with a group whose keys it has.
    pub fn homes(&self) -> Vec<(Arc<Link>, u16)> {
        let home = |link: &Arc<Link>, server: &Server| {
            let has = |group: &u16| self.owner(slot(*group)) == Some(server);
            Some((link.clone(), (0..=u16::MAX).find(has)?))
        };
        self.links.iter().filter_map(|(server, link)| home(link, server)).collect()
    }

    fn owner(&self, slot: u16) -> Option<&Server> {
        let has = |range: &&Range| (range.first..=range.last).contains(&slot);
        self.ranges.iter().find(has).map(|range| &range.server)
    }

    /// The same with one line more.
    pub fn with(&self, server: Server, link: Arc<Link>) -> Self {
        let mut links = self.links.clone();
        links.entry(server).or_insert(link);
        Self { ranges: self.ranges.clone(), links }
    }

    /// What the cluster says now. Lines that are still of use are kept, others end.
    pub fn renewed(&self, ranges: Vec<Range>, make: impl Fn(&Server) -> Arc<Link>) -> Self {
        let mut links = BTreeMap::new();
        for Range { server, .. } in &ranges {
            let link = || self.link_to(server).unwrap_or_else(|| make(server));
            links.entry(server.clone()).or_insert_with(link);
        }
        Self { ranges, links }
    }
}

/// Asks a server of a cluster who has what.
pub(super) async fn ask_slots(
    manners: &Manners,
    server: &Server,
) -> Result<Vec<Range>, ConnectError> {
    let refused = |error| refusal(server, &error);
    let config = AsyncConnectionConfig::new();
    let opened = manners.open(server, config, ProtocolVersion::RESP2).await;
    let mut connection = opened.map_err(refused)?;
    let ask = redis::cmd("CLUSTER").arg("SLOTS").to_owned();
    let told: RedisResult<Vec<Vec<Value>>> = ask.query_async(&mut connection).await;
    let ranges: Vec<Range> =
        told.map_err(refused)?.iter().filter_map(|entry| range(entry, server)).collect();
    if ranges.is_empty() {
        let reason = "its cluster has no slots yet".to_owned();
        return Err(ConnectError::Refused { server: server.to_string(), reason });
    }
    Ok(ranges)
}

/// An entry is the first slot, the last one, the primary, its replicas; a server is its host, its
/// port and more.
fn range(entry: &[Value], asked: &Server) -> Option<Range> {
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = entry else {
        return None;
    };
    let [host, Value::Int(port), ..] = &primary[..] else { return None };
    let host = match (host, asked) {
        (Value::BulkString(host), _) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        (_, Server::Tcp(host, _)) => host.clone(),
        _ => return None,
    };
    let server = Server::Tcp(host, u16::try_from(*port).ok()?);
    Some(Range { first: u16::try_from(*first).ok()?, last: u16::try_from(*last).ok()?, server })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // As `CLUSTER KEYSLOT` gives them.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
        assert_eq!(slot(0), crc16(b"0000") % SLOTS);
        assert_eq!(tag(0xab), "{00ab}");
    }

    #[test]
    fn groups_spread_over_all_slots() {
        let mut thirds = [0; 3];
        (0..=u16::MAX).for_each(|group| thirds[usize::from(slot(group) / 5462)] += 1);
        assert!(thirds.iter().all(|count| *count > 21_000), "{thirds:?}");
    }
}
