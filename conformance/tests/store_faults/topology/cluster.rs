//! A Cluster of three primaries and three replicas. Each node prefers another seed.
//!
//! The server with the fault is the primary that has the locks.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::{RedisCluster, RedisServer, until};
use catraca_testkit::resp::RespValue;

use crate::load::{KEYS, check_body};
use crate::node::RecordsPlace;
use crate::run::{Api, Topology};

/// The sections of a node that users are given.
const EXAMPLE: &str = include_str!("../../../../deploy/redis-cluster/catraca.toml");
const PRIMARIES: usize = 3;
/// The node that reaches the servers at an address of its own, and that address.
const APART: usize = 1;
const APART_HOST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OK: &[u8] = b"OK";

/// A cluster, and where its keys are.
pub struct ClusterTopology {
    pub cluster: RedisCluster,
    /// The primary of each key.
    owners: Vec<usize>,
    /// The primary with the locks.
    pub struck: usize,
    /// The proxy to each primary, if nodes reach the primaries through proxies.
    wires: Vec<FaultProxy>,
    /// The proxy to each server through which one node reaches it, if that node can be cut off.
    apart: Vec<FaultProxy>,
    /// Slots whose keys were moved.
    moved: Vec<String>,
    records: Option<RecordsPlace>,
}

impl ClusterTopology {
    /// Starts the cluster; `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        let cluster = RedisCluster::start()?;
        Some(Self {
            cluster,
            owners: Vec::new(),
            struck: 0,
            wires: Vec::new(),
            apart: Vec::new(),
            moved: Vec::new(),
            records: None,
        })
    }

    /// As `start`; the records are a file of each node.
    pub fn start_alone() -> Option<Self> {
        Some(Self { records: Some(RecordsPlace::OwnFile), ..Self::start()? })
    }

    /// As `start`; one node reaches all servers at another address of loopback, where proxies have
    /// their ports. Servers name ports alone, so each node stays at the address of its URL.
    pub fn start_divisible() -> Option<Self> {
        let mut topology = Self::start()?;
        for server in &topology.cluster.servers {
            let set = ["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"];
            assert_eq!(server.command(&set), RespValue::Bytes(OK.to_vec()));
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
            let apart = SocketAddr::from((APART_HOST, server.port()));
            topology.apart.push(FaultProxy::start_at(apart, address).unwrap());
        }
        Some(topology)
    }

    /// Sets the fault of the network between one node and all servers.
    pub fn set_apart(&self, fault: Fault) {
        self.apart.iter().for_each(|wire| wire.set(fault));
    }

    /// As `start`; primaries announce the ports of proxies.
    pub fn start_behind_proxies() -> Option<Self> {
        let mut topology = Self::start()?;
        for server in &topology.cluster.servers[..PRIMARIES] {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
            let wire = FaultProxy::start(address).unwrap();
            let port = wire.address().port().to_string();
            let set = server.command(&["CONFIG", "SET", "cluster-announce-port", &port]);
            assert_eq!(set, RespValue::Bytes(OK.to_vec()));
            topology.wires.push(wire);
        }
        let cluster = &topology.cluster;
        let is_known = |server: &RedisServer| {
            let nodes = text(&server.command(&["CLUSTER", "NODES"]));
            topology.wires.iter().all(|w| nodes.contains(&format!(":{}@", w.address().port())))
        };
        until("the ports are announced", || cluster.servers.iter().all(is_known));
        let follows = |server: &RedisServer| {
            server.field(&["INFO", "replication"], "master_link_status").as_deref() == Some("up")
        };
        until("replicas follow", || cluster.servers[PRIMARIES..].iter().all(follows));
        Some(topology)
    }

    /// Sets the fault of the network between all nodes and the struck primary.
    pub fn set_wire(&self, fault: Fault) {
        self.wires[self.struck].set(fault);
    }

    pub fn struck_server(&mut self) -> &mut RedisServer {
        &mut self.cluster.servers[self.struck]
    }

    /// Waits until the replica of the struck primary is a primary.
    pub fn wait_for_failover(&self) {
        let replica = self.struck + PRIMARIES;
        until("the replica is primary", || self.cluster.is_primary(replica));
    }

    /// Orders the replica of the struck primary to take over, without a loss.
    pub fn fail_over(&self) {
        let replica = &self.cluster.servers[self.struck + PRIMARIES];
        assert_eq!(replica.command(&["CLUSTER", "FAILOVER"]), RespValue::Bytes(OK.to_vec()));
        self.wait_for_failover();
    }

    /// Moves every slot with keys from the struck primary to the next one.
    pub fn reshard(&mut self) {
        let from = self.struck;
        let to = (from + 1) % PRIMARIES;
        for slot in used_slots(&self.cluster.servers[from]) {
            let slot = slot.to_string();
            self.move_slot(&slot, from, to);
            self.moved.push(slot);
        }
        assert!(!self.moved.is_empty(), "the primary has no keys");
    }

    fn move_slot(&self, slot: &str, from: usize, to: usize) {
        self.cluster.begin_move(slot, from, to);
        let count = || self.cluster.servers[from].command(&["CLUSTER", "COUNTKEYSINSLOT", slot]);
        while count() != RespValue::Int(0) {
            self.cluster.move_keys(slot, from, to);
        }
        self.cluster.end_move(slot, to);
    }

    /// Adds a primary, and moves every slot with keys from the struck primary to it.
    pub fn add_primary(&mut self) {
        let added = self.cluster.add_primary();
        for slot in used_slots(&self.cluster.servers[self.struck]) {
            let slot = slot.to_string();
            self.move_slot(&slot, self.struck, added);
            self.moved.push(slot);
        }
        assert!(self.moved.len() > 1, "the added primary has no keys");
    }

    /// Moves the slots back from the added primary, and removes it.
    pub fn remove_primary(&mut self) {
        let added = self.cluster.servers.len() - 1;
        for slot in std::mem::take(&mut self.moved) {
            self.move_slot(&slot, added, self.struck);
        }
        let id = self.cluster.id(added);
        for server in &self.cluster.servers[..added] {
            until("the server is forgotten", || {
                let reply = server.command(&["CLUSTER", "FORGET", &id]);
                reply == RespValue::Bytes(OK.to_vec()) || text(&reply).contains("Unknown node")
            });
        }
        self.cluster.servers.pop();
    }

    /// The primary whose number of keys grows by a call.
    fn grown_by(&self, call: impl FnOnce()) -> usize {
        let sizes = || -> Vec<i64> {
            let servers = &self.cluster.servers[..PRIMARIES];
            servers.iter().map(|server| int(server.command(&["DBSIZE"]))).collect()
        };
        let before = sizes();
        call();
        let after = sizes();
        let growth = |server: &usize| after[*server] - before[*server];
        let grown = (0..PRIMARIES).max_by_key(growth).unwrap();
        assert!(growth(&grown) > 0, "no primary has a new key: {before:?}, {after:?}");
        grown
    }
}

impl Topology for ClusterTopology {
    fn example(&self) -> Option<&'static str> {
        Some(EXAMPLE)
    }

    fn store_url(&self, node: usize) -> String {
        let servers = &self.cluster.servers;
        let ports: Vec<u16> = match self.wires.is_empty() {
            true => servers.iter().map(RedisServer::port).collect(),
            false => self.wires.iter().map(|wire| wire.address().port()).collect(),
        };
        let is_apart = node == APART && !self.apart.is_empty();
        let host = if is_apart { APART_HOST } else { Ipv4Addr::LOCALHOST };
        let hosts: Vec<String> = (0..ports.len())
            .map(|index| format!("{host}:{}", ports[(node + index) % ports.len()]))
            .collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    fn store_lines(&self) -> &'static str {
        "shard_by = \"customer\""
    }

    fn records(&self, _node: usize) -> Option<RecordsPlace> {
        self.records.clone()
    }

    /// The slots of each primary, and the epoch in which it got them.
    fn primaries(&self) -> String {
        let undisturbed = &self.cluster.servers[(self.struck + 1) % PRIMARIES];
        let nodes = text(&undisturbed.command(&["CLUSTER", "NODES"]));
        // The id, the address, flags, the primary, two times, the epoch, the link and slots.
        let parts = nodes.lines().map(|line| line.split(' ').collect::<Vec<&str>>());
        let owners = parts.filter(|parts| parts.len() > 8);
        let mut owners: Vec<String> = owners
            .map(|parts| format!("{} {} {}", parts[0], parts[6], parts[8..].join(" ")))
            .collect();
        owners.sort();
        owners.join(", ")
    }

    fn locate_keys(&mut self, api: &mut Api) {
        let lock = r#"{"kind":"resource","key":"where","ttl_ms":2000}"#;
        self.struck = self.grown_by(|| drop(api.call("POST /v1/locks/acquire", lock)));
        for key in 0..KEYS {
            // Another policy: all keys of a customer are on one primary.
            let body = check_body("guard", &format!("c-{key}"));
            let owner = self.grown_by(|| drop(api.call("POST /v1/check", &body)));
            self.owners.push(owner);
        }
        let of = |server| self.owners.iter().filter(|owner| **owner == server).count();
        println!("keys by primary: {:?}, locks on {}", [of(0), of(1), of(2)], self.struck);
    }

    fn struck_keys(&self) -> Option<BTreeSet<usize>> {
        Some((0..KEYS).filter(|key| self.owners[*key] == self.struck).collect())
    }
}

/// The slots in which a server has keys.
fn used_slots(server: &RedisServer) -> BTreeSet<u32> {
    let RespValue::Array(keys) = server.command(&["KEYS", "*"]) else { panic!("no keys") };
    let mut client = server.connect();
    let mut slot = |key: &RespValue| {
        let RespValue::Bytes(key) = key else { panic!("not a key: {key:?}") };
        int(client.call(&[b"CLUSTER", b"KEYSLOT", key]).unwrap()) as u32
    };
    keys.iter().map(&mut slot).collect()
}

fn int(value: RespValue) -> i64 {
    match value {
        RespValue::Int(number) => number,
        other => panic!("not a number: {other:?}"),
    }
}

fn text(value: &RespValue) -> String {
    match value {
        RespValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        RespValue::Error(error) => error.clone(),
        other => format!("{other:?}"),
    }
}
