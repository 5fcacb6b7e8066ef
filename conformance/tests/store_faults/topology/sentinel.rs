//! A primary with replicas under three Sentinels. Each node prefers another Sentinel, and reaches
//! the Sentinels through proxies of its own.

use std::net::{Ipv4Addr, SocketAddr};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::{RedisSentinels, RedisServer, until};
use catraca_testkit::resp::RespValue;

use crate::node::{NODES, RecordsPlace};
use crate::run::Topology;

/// The sections of a node that users are given.
const EXAMPLE: &str = include_str!("../../../../deploy/redis-sentinel/catraca.toml");
/// How many Sentinels there are.
pub const SENTINELS: usize = 3;
/// The node that a split leaves with the old primary.
const MINORITY: usize = 1;

/// Servers and their Sentinels.
pub struct SentinelTopology {
    pub group: RedisSentinels,
    /// Of each node, the proxies to the Sentinels.
    wires: Vec<Vec<FaultProxy>>,
    /// A replica that was added.
    added: Option<RedisServer>,
    /// The proxy by which everything but one node reaches the first primary, if it can be split
    /// off; the proxy of that node has no faults.
    fronts: Option<[FaultProxy; 2]>,
    records: Option<RecordsPlace>,
}

impl SentinelTopology {
    /// Starts all of them; `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        let group = RedisSentinels::start()?;
        let wire = |sentinel: &RedisServer| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, sentinel.port()));
            FaultProxy::start(address).unwrap()
        };
        let wires = (0..NODES).map(|_| group.sentinels.iter().map(wire).collect()).collect();
        Some(Self { group, wires, added: None, fronts: None, records: None })
    }

    /// As `start`; the records are a file of each node.
    pub fn start_alone() -> Option<Self> {
        Some(Self { records: Some(RecordsPlace::OwnFile), ..Self::start()? })
    }

    /// As `start`; the first primary can be split off together with one node.
    ///
    /// Sentinels, replicas and nodes know the primary by the port of a proxy. The one node gets
    /// another port from the Sentinels, because its wires replace it.
    pub fn start_divisible() -> Option<Self> {
        let (group, front) = RedisSentinels::start_behind_proxy()?;
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let own = FaultProxy::start(local(group.servers[0].port())).unwrap();
        let ports = [front.address().port(), own.address().port()];
        let wire = |node: usize, sentinel: &RedisServer| {
            let address = local(sentinel.port());
            match node == MINORITY {
                true => FaultProxy::start_with_ports(address, ports).unwrap(),
                false => FaultProxy::start(address).unwrap(),
            }
        };
        let wires = |node| group.sentinels.iter().map(|one| wire(node, one)).collect();
        let wires = (0..NODES).map(wires).collect();
        Some(Self { group, wires, added: None, fronts: Some([front, own]), records: None })
    }

    /// Splits the first primary and one node off from everything else, or ends that.
    pub fn split(&self, fault: Fault) {
        self.set_wires(MINORITY, fault);
        self.fronts.iter().for_each(|[front, _]| front.set(fault));
    }

    /// Orders a failover through the second Sentinel, and waits until it has a new primary.
    pub fn fail_over(&self) {
        self.fail_over_by(1);
    }

    /// Orders a failover that a Sentinel leads, and waits until it has a new primary.
    pub fn fail_over_by(&self, sentinel: usize) {
        let before = self.group.primary_by(sentinel);
        assert_eq!(self.group.fail_over_by(sentinel), RespValue::Bytes(b"OK".to_vec()));
        until("another primary", || self.group.primary_by(sentinel) != before);
    }

    /// Waits until the Sentinels have another primary than the first server.
    pub fn wait_for_failover(&self) {
        let front = self.fronts.as_ref().map(|[front, _]| front.address().port());
        let before = Some(front.unwrap_or(self.group.servers[0].port()));
        until("another primary", || self.group.primary_by(1) != before);
    }

    /// Cuts a node off from all Sentinels, or connects it again.
    pub fn set_wires(&self, node: usize, fault: Fault) {
        self.wires[node].iter().for_each(|wire| wire.set(fault));
    }

    /// Adds a replica, and removes another.
    pub fn replace_replica(&mut self) {
        let port = self.group.servers[0].port();
        let follow = format!("127.0.0.1 {port}");
        let settings = ["--repl-diskless-sync-delay", "0", "--replicaof", &follow];
        self.added = RedisServer::start_with(&settings);
        let section = ["INFO", "replication"];
        let link = |server: &RedisServer| server.field(&section, "master_link_status");
        let is_up = || self.added.as_ref().and_then(link).as_deref() == Some("up");
        until("the new replica follows", is_up);
        if let Some(removed) = self.group.servers.last_mut() {
            removed.kill();
        }
    }

    fn name(&self) -> String {
        let url = self.group.url();
        url.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// Whether all Sentinels name one primary, and both other servers follow it.
    fn is_whole(&self) -> bool {
        let named = self.group.primary();
        let agree = (1..self.group.sentinels.len()).all(|one| self.group.primary_by(one) == named);
        let primary = self.group.servers.iter().find(|server| Some(server.port()) == named);
        let replica = |name| primary.and_then(|one| one.field(&["INFO", "replication"], name));
        let is_online = |name| replica(name).is_some_and(|state| state.contains("state=online"));
        agree && is_online("slave0") && is_online("slave1")
    }
}

impl Topology for SentinelTopology {
    fn example(&self) -> Option<&'static str> {
        Some(EXAMPLE)
    }

    fn store_url(&self, node: usize) -> String {
        let wires = &self.wires[node];
        let hosts: Vec<String> = (0..wires.len())
            .map(|index| wires[(node + index) % wires.len()].address().to_string())
            .collect();
        format!("redis+sentinel://{}/{}", hosts.join(","), self.name())
    }

    fn records(&self, _node: usize) -> Option<RecordsPlace> {
        self.records.clone()
    }

    fn primaries(&self) -> String {
        format!("{:?}", self.group.primary_by(1))
    }

    fn wait_until_whole(&self) {
        until("both other servers follow the primary", || self.is_whole());
    }
}
