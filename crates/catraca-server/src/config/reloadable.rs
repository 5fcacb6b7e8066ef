//! The part of the configuration that a reload replaces: API keys and settings.
//!
//! Both come from one catalog and are swapped as one value, so that no request sees the keys of one
//! catalog and the proxies of another. Settings that take effect after a restart are in it too, and
//! are read once, at the start.

use std::net::IpAddr;

use catraca::core::address::Address;
use catraca::core::catalog::Network;

use super::{LoadedCatalog, ProcessConfig};
use crate::auth::Guard;

/// The keys and settings of the current catalog.
pub struct ReloadableConfig {
    /// Authenticates requests.
    pub guard: Guard,
    /// The settings of the process.
    pub process: ProcessConfig,
    /// How addresses and paths of requests are read.
    pub network: Network,
}

impl ReloadableConfig {
    /// The keys and settings of a catalog.
    pub fn new(loaded: &LoadedCatalog) -> Self {
        let auth = &loaded.process.auth;
        Self {
            guard: Guard::new(&auth.key, auth.metrics),
            process: loaded.process.clone(),
            network: loaded.catalog.network.clone(),
        }
    }

    /// Whether a peer is in `trusted_proxies`.
    pub fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        let peer = Address::from_ip(peer);
        self.network.trusted_proxies.iter().any(|range| range.contains(&peer))
    }

    /// The network that a peer's connections count against; none for a trusted proxy, whose
    /// connections carry the requests of many clients.
    pub fn counted_as(&self, peer: IpAddr) -> Option<IpAddr> {
        let network = Address::from_ip(peer).network(self.network.ipv6_prefix);
        (!self.is_trusted_proxy(peer)).then_some(network)
    }
}
