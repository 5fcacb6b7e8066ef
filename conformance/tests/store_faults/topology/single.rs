//! One Redis; each node reaches it through a proxy of its own.

use std::net::{Ipv4Addr, SocketAddr};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::RedisServer;

use crate::node::{NODES, RecordsPlace};
use crate::run::Topology;

/// One Redis without replicas.
pub struct SingleRedis {
    pub server: RedisServer,
    proxies: Vec<FaultProxy>,
    records: Option<RecordsPlace>,
}

impl SingleRedis {
    /// Starts the server with these settings; `None` if Redis is not installed.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let server = RedisServer::start_with(settings)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
        let proxies = (0..NODES).map(|_| FaultProxy::start(address).unwrap()).collect();
        Some(Self { server, proxies, records: None })
    }

    /// As `start`; the records are a file of each node, and Redis is all that nodes share.
    pub fn start_alone(settings: &[&str]) -> Option<Self> {
        let redis = Self::start(settings)?;
        Some(Self { records: Some(RecordsPlace::OwnFile), ..redis })
    }

    /// Sets the fault of the network between a node and the server.
    pub fn set_wire(&self, node: usize, fault: Fault) {
        self.proxies[node].set(fault);
    }
}

impl Topology for SingleRedis {
    fn store_url(&self, node: usize) -> String {
        format!("redis://{}", self.proxies[node].address())
    }

    fn records(&self, _node: usize) -> Option<RecordsPlace> {
        self.records.clone()
    }
}
