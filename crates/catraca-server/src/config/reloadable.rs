//! The part of the configuration that a reload replaces: API keys and settings.
//!
//! Both come from one catalog and are swapped as one value, so that no request sees the keys of one
//! catalog and the proxies of another. Settings that take effect after a restart are in it too, and
//! are read once, at the start.

use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use catraca::core::address::Address;
use catraca::core::catalog::{Network, Route};
use catraca::http_request::Claims;
use hyper::http::HeaderMap;

use super::{LoadedCatalog, ProcessConfig};
use crate::auth::Guard;
use crate::jwt::{JwtError, JwtVerifier};

/// The keys and settings of the current catalog.
pub struct ReloadableConfig {
    /// Authenticates requests.
    pub guard: Guard,
    /// The settings of the process.
    pub process: ProcessConfig,
    /// Verifies the tokens of clients, if `[jwt]` says how.
    pub jwt: Option<JwtVerifier>,
    /// How addresses and paths of requests are read.
    pub network: Network,
}

impl ReloadableConfig {
    /// The keys and settings of a catalog. Reads the keys of `[jwt]`, whose files are relative to
    /// `folder`.
    pub fn new(loaded: &LoadedCatalog, folder: &Path) -> Result<Self> {
        let auth = &loaded.process.auth;
        Ok(Self {
            guard: Guard::new(&auth.key, auth.metrics),
            process: loaded.process.clone(),
            jwt: loaded.process.jwt.verifier(folder)?,
            network: loaded.catalog.network.clone(),
        })
    }

    /// The claims of the token in a request; `None` if the route reads none, or there is no token.
    pub fn claims_for(
        &self,
        route: &Route,
        headers: &HeaderMap,
    ) -> Result<Option<Claims>, JwtError> {
        match &self.jwt {
            Some(verifier) if route.reads_claims() => {
                verifier.claims_of(headers, SystemTime::now())
            }
            _ => Ok(None),
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
