//! A PostgreSQL with a streaming replica, for the store and the records. Nodes name both servers,
//! or a PgBouncer in front of the primary.

use std::net::{Ipv4Addr, SocketAddr};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::postgres::{PASSWORD, PgBouncer, PostgresServer};

use crate::node::{NODES, RecordsPlace};
use crate::run::Topology;

/// Whether a commit waits for the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    Asynchronous,
    Synchronous,
}

/// A primary and its replica.
pub struct PostgresPair {
    pub primary: PostgresServer,
    pub replica: PostgresServer,
    /// Of each node, the proxy to the primary.
    wires: Vec<FaultProxy>,
    pub pooler: Option<PgBouncer>,
}

impl PostgresPair {
    pub fn start(replication: Replication) -> Self {
        let primary = PostgresServer::start();
        let replica = primary.start_replica();
        if replication == Replication::Synchronous {
            primary.commit_synchronously();
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, primary.port));
        let wires = (0..NODES).map(|_| FaultProxy::start(address).unwrap()).collect();
        Self { primary, replica, wires, pooler: None }
    }

    /// As `start`; nodes name a PgBouncer. `None` if it is not installed.
    pub fn start_behind_pooler(replication: Replication) -> Option<Self> {
        let mut pair = Self::start(replication);
        pair.pooler = Some(PgBouncer::start(&pair.primary, 20)?);
        Some(pair)
    }

    /// Sets the fault of the network between a node and the primary.
    pub fn set_wire(&self, node: usize, fault: Fault) {
        self.wires[node].set(fault);
    }

    /// Makes a primary of the replica, and reconfigures the pooler.
    pub fn promote(&self) {
        self.replica.promote();
        if let Some(pooler) = &self.pooler {
            pooler.point_to(&self.replica);
        }
    }

    /// The URL of both servers, without proxies.
    pub fn direct_url(&self) -> String {
        let [first, second] = [&self.primary, &self.replica].map(|server| server.port);
        self.url(&format!("127.0.0.1:{first},127.0.0.1:{second}"))
    }

    fn url(&self, hosts: &str) -> String {
        format!("postgres://catraca:{PASSWORD}@{hosts}/postgres")
    }
}

impl Topology for PostgresPair {
    fn store_url(&self, node: usize) -> String {
        if let Some(pooler) = &self.pooler {
            return self.url(&format!("127.0.0.1:{}", pooler.port));
        }
        let primary = self.wires[node].address();
        let replica = format!("127.0.0.1:{}", self.replica.port);
        match node % 2 {
            0 => self.url(&format!("{primary},{replica}")),
            _ => self.url(&format!("{replica},{primary}")),
        }
    }

    fn records(&self, _node: usize) -> Option<RecordsPlace> {
        Some(RecordsPlace::Shared(match &self.pooler {
            Some(pooler) => self.url(&format!("127.0.0.1:{}", pooler.port)),
            None => self.direct_url(),
        }))
    }

    fn primaries(&self) -> String {
        let is_primary = self.replica.psql("postgres", "SELECT NOT pg_is_in_recovery()");
        format!("{is_primary:?}")
    }
}

impl Drop for PostgresPair {
    /// A server that is suspended cannot be stopped.
    fn drop(&mut self) {
        self.primary.signal_all("CONT");
        self.replica.signal_all("CONT");
    }
}
