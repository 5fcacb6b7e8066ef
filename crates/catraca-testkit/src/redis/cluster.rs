//! A cluster of three primaries and three replicas.
//!
//! Must not be left before it calls itself whole.

use super::server::RedisServer;
use super::wait::until;
use crate::resp::Value;

/// How many slots a cluster has.
const SLOTS: u32 = 16_384;
const PRIMARIES: usize = 3;

/// Servers that end with this.
#[derive(Debug)]
pub struct RedisCluster {
    /// Those that begin as primaries, then a replica of each.
    pub servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts all of them; none where there is no Redis.
    pub fn start() -> Option<Self> {
        let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
        let more = ["--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"];
        // Who lost nothing goes on.
        let partial = ["--cluster-require-full-coverage", "no"];
        let settings: Vec<&str> = settings.into_iter().chain(more).chain(partial).collect();
        let start = |_| RedisServer::start_with(&settings);
        let servers = (0..2 * PRIMARIES).map(start).collect::<Option<Vec<_>>>()?;
        let cluster = Self { servers };
        cluster.share_slots();
        cluster.introduce();
        cluster.give_replicas();
        until("the cluster is whole", || cluster.is_whole());
        Some(cluster)
    }

    /// The URL of the whole.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.servers.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The id by which the cluster knows a server.
    pub fn id(&self, server: usize) -> String {
        match self.servers[server].command(&["CLUSTER", "MYID"]) {
            Value::Bytes(id) => String::from_utf8_lossy(&id).into_owned(),
            other => panic!("not an id: {other:?}"),
        }
    }

    /// Whether a server is a primary now.
    pub fn is_primary(&self, server: usize) -> bool {
        self.servers[server].field(&["INFO", "replication"], "role").as_deref() == Some("master")
    }

    /// Begins to move a slot: from now on its keys may be in either place.
    pub fn begin_move(&self, slot: &str, from: usize, to: usize) {
        let told = |server: usize, what: &str, other: usize| {
            let id = self.id(other);
            self.servers[server].command(&["CLUSTER", "SETSLOT", slot, what, &id])
        };
        assert_eq!(told(to, "IMPORTING", from), Value::Bytes(b"OK".to_vec()));
        assert_eq!(told(from, "MIGRATING", to), Value::Bytes(b"OK".to_vec()));
    }

    /// Moves the keys that a slot has now.
    ///
    /// # Panics
    ///
    /// When one of them cannot be moved.
    pub fn move_keys(&self, slot: &str, from: usize, to: usize) {
        let told = self.servers[from].command(&["CLUSTER", "GETKEYSINSLOT", slot, "1000"]);
        let Value::Array(keys) = told else { panic!("no keys: {told:?}") };
        let port = self.servers[to].port().to_string();
        let mut client = self.servers[from].connect();
        for key in keys {
            let Value::Bytes(key) = key else { panic!("not a key") };
            let parts: [&[u8]; 6] =
                [b"MIGRATE", b"127.0.0.1", port.as_bytes(), &key, b"0", b"5000"];
            let moved = client.call(&parts);
            assert!(matches!(moved, Ok(Value::Bytes(_))), "{moved:?}");
        }
    }

    /// Tells every primary where the slot is now.
    pub fn end_move(&self, slot: &str, to: usize) {
        let id = self.id(to);
        let others =
            (0..self.servers.len()).filter(|other| *other != to && self.is_primary(*other));
        for server in [to].into_iter().chain(others) {
            self.servers[server].command(&["CLUSTER", "SETSLOT", slot, "NODE", &id]);
        }
    }

    fn share_slots(&self) {
        for (number, server) in self.servers[..PRIMARIES].iter().enumerate() {
            let edge = |number: usize| number as u32 * SLOTS / PRIMARIES as u32;
            let (first, last) = (edge(number), edge(number + 1) - 1);
            let range = [first.to_string(), last.to_string()];
            let added = server.command(&["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            assert_eq!(added, Value::Bytes(b"OK".to_vec()));
        }
    }

    fn introduce(&self) {
        for (number, server) in self.servers.iter().enumerate() {
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

    fn give_replicas(&self) {
        for number in 0..PRIMARIES {
            let id = self.id(number);
            until("a replica takes its primary", || {
                let asked = ["CLUSTER", "REPLICATE", &id];
                let told = self.servers[PRIMARIES + number].command(&asked);
                told == Value::Bytes(b"OK".to_vec())
            });
        }
    }

    fn is_whole(&self) -> bool {
        let fine = |one: &RedisServer| {
            one.field(&["CLUSTER", "INFO"], "cluster_state").as_deref() == Some("ok")
        };
        let followed = |one: &RedisServer| {
            one.field(&["INFO", "replication"], "connected_slaves").as_deref() == Some("1")
        };
        self.servers.iter().all(fine) && self.servers[..PRIMARIES].iter().all(followed)
    }
}
