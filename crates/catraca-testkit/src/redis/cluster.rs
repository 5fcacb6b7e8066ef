//! A Redis Cluster of three primaries and three replicas, with the settings of
//! `deploy/redis-cluster/redis.conf`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::server::{RedisServer, fresh_directory, program};
use super::wait::until;
use crate::resp::RespValue;

/// The settings that users are given.
const SETTINGS: &str = include_str!("../../../../deploy/redis-cluster/redis.conf");
/// Shorter than users' timeout, so that tests need not wait for elections.
const NODE_TIMEOUT: &str = "1000";
/// The number of hash slots of a cluster.
const SLOTS: u32 = 16_384;
const PRIMARIES: usize = 3;

/// A cluster whose servers are killed on drop.
#[derive(Debug)]
pub struct RedisCluster {
    /// The initial primaries, then a replica of each.
    pub servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the cluster and waits until it is complete; `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        let start = |_| start_server();
        let servers = (0..2 * PRIMARIES).map(start).collect::<Option<Vec<_>>>()?;
        let cluster = Self { servers };
        cluster.assign_slots();
        cluster.meet();
        cluster.assign_replicas();
        until("the cluster is complete", || cluster.is_complete());
        Some(cluster)
    }

    /// Starts six servers, of which a script makes a cluster; `None` if Redis is not installed.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn start_by(script: &Path) -> Option<Self> {
        let start = |_| start_server();
        let servers = (0..2 * PRIMARIES).map(start).collect::<Option<Vec<_>>>()?;
        let hosts = servers.iter().map(|server| format!("127.0.0.1:{}", server.port()));
        let made = Command::new("sh").arg(script).args(hosts).output();
        assert!(made.as_ref().is_ok_and(|made| made.status.success()), "{script:?}: {made:?}");
        let cluster = Self { servers };
        until("the cluster is complete", || cluster.is_complete());
        Some(cluster)
    }

    /// Starts one more server and makes it a primary without slots; returns its index.
    ///
    /// # Panics
    ///
    /// If it does not join.
    pub fn add_primary(&mut self) -> usize {
        let added = self.servers.len();
        self.servers.extend(start_server());
        let port = self.servers[added].port().to_string();
        self.servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        let all = Some(self.servers.len().to_string());
        until("the new server is known to all", || {
            let known = |one: &RedisServer| one.field(&["CLUSTER", "INFO"], "cluster_known_nodes");
            self.servers.iter().all(|one| known(one) == all)
        });
        until("the new server serves", || self.is_serving(added));
        added
    }

    /// Removes a server without slots: the others forget it.
    pub fn remove(&self, server: usize) {
        let id = self.id(server);
        for other in (0..self.servers.len()).filter(|other| *other != server) {
            self.servers[other].command(&["CLUSTER", "FORGET", &id]);
        }
    }

    /// Moves one slot with its keys, as `redis-cli --cluster reshard` does.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.begin_move(&slot, from, to);
        self.move_keys(&slot, from, to);
        self.end_move(&slot, to);
    }

    fn is_serving(&self, server: usize) -> bool {
        let state = self.servers[server].field(&["CLUSTER", "INFO"], "cluster_state");
        state.as_deref() == Some("ok")
    }

    /// The URL of the cluster, with all servers.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.servers.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The node id of a server.
    pub fn id(&self, server: usize) -> String {
        match self.servers[server].command(&["CLUSTER", "MYID"]) {
            RespValue::Bytes(id) => String::from_utf8_lossy(&id).into_owned(),
            other => panic!("not an id: {other:?}"),
        }
    }

    /// Whether a server is a primary now.
    pub fn is_primary(&self, server: usize) -> bool {
        self.servers[server].field(&["INFO", "replication"], "role").as_deref() == Some("master")
    }

    /// Begins to move a slot: from now on its keys may be on either server.
    pub fn begin_move(&self, slot: &str, from: usize, to: usize) {
        let set_slot = |server: usize, state: &str, other: usize| {
            let id = self.id(other);
            self.servers[server].command(&["CLUSTER", "SETSLOT", slot, state, &id])
        };
        assert_eq!(set_slot(to, "IMPORTING", from), RespValue::Bytes(b"OK".to_vec()));
        assert_eq!(set_slot(from, "MIGRATING", to), RespValue::Bytes(b"OK".to_vec()));
    }

    /// Moves the present keys of a slot.
    ///
    /// # Panics
    ///
    /// If a key cannot be moved.
    pub fn move_keys(&self, slot: &str, from: usize, to: usize) {
        let reply = self.servers[from].command(&["CLUSTER", "GETKEYSINSLOT", slot, "1000"]);
        let RespValue::Array(keys) = reply else { panic!("no keys: {reply:?}") };
        let port = self.servers[to].port().to_string();
        let mut client = self.servers[from].connect();
        for key in keys {
            let RespValue::Bytes(key) = key else { panic!("not a key") };
            let parts: [&[u8]; 6] =
                [b"MIGRATE", b"127.0.0.1", port.as_bytes(), &key, b"0", b"5000"];
            let moved = client.call(&parts);
            assert!(matches!(moved, Ok(RespValue::Bytes(_))), "{moved:?}");
        }
    }

    /// Ends the move: assigns the slot to its new server on every primary, the new one first.
    pub fn end_move(&self, slot: &str, to: usize) {
        let id = self.id(to);
        let others =
            (0..self.servers.len()).filter(|other| *other != to && self.is_primary(*other));
        for server in [to].into_iter().chain(others) {
            self.servers[server].command(&["CLUSTER", "SETSLOT", slot, "NODE", &id]);
        }
    }

    fn assign_slots(&self) {
        for (number, server) in self.servers[..PRIMARIES].iter().enumerate() {
            let start = |number: usize| number as u32 * SLOTS / PRIMARIES as u32;
            let first = start(number).to_string();
            let last = (start(number + 1) - 1).to_string();
            let added = server.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            assert_eq!(added, RespValue::Bytes(b"OK".to_vec()));
        }
    }

    fn meet(&self) {
        for (number, server) in self.servers.iter().enumerate() {
            // Distinct config epochs, as `redis-cli --cluster create` assigns them.
            let epoch = (number + 1).to_string();
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            let port = server.port().to_string();
            self.servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        until("all servers know each other", || {
            let all = Some((2 * PRIMARIES).to_string());
            let known = |one: &RedisServer| one.field(&["CLUSTER", "INFO"], "cluster_known_nodes");
            self.servers.iter().all(|one| known(one) == all)
        });
    }

    fn assign_replicas(&self) {
        for number in 0..PRIMARIES {
            let id = self.id(number);
            until("a replica accepts its primary", || {
                let reply =
                    self.servers[PRIMARIES + number].command(&["CLUSTER", "REPLICATE", &id]);
                reply == RespValue::Bytes(b"OK".to_vec())
            });
        }
    }

    fn is_complete(&self) -> bool {
        let has_replica = |one: &RedisServer| {
            one.field(&["INFO", "replication"], "connected_slaves").as_deref() == Some("1")
        };
        (0..self.servers.len()).all(|server| self.is_serving(server))
            && self.servers[..PRIMARIES].iter().all(has_replica)
    }
}

/// Starts a server with the settings for users, on its own port and in its own directory.
#[expect(clippy::expect_used, reason = "a test cannot run without its server")]
fn start_server() -> Option<RedisServer> {
    program()?;
    let directory = fresh_directory();
    let file = directory.join("redis.conf");
    fs::write(&file, SETTINGS).expect("the temporary directory can be written");
    let file = file.display().to_string();
    let args = [file.as_str(), "--cluster-node-timeout", NODE_TIMEOUT];
    Some(RedisServer::start_in(directory, &args, Vec::new()))
}
