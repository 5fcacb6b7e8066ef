//! The client's address: that of the connection, or the one that trusted proxies report.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_core::address::AddressRange;
use catraca_core::address::forwarded::{AddressReason, AddressSource, find_client};
use http::HeaderMap;
use http::request::Parts;

use super::extract::{AttributeExtractor, ExtractError};
use crate::http_request::header_lines;

/// The headers in which proxies report the client's address.
const FORWARDING_HEADERS: [&str; 2] = ["x-forwarded-for", "forwarded"];

/// The address of the connection, as an extension of the request. With the feature `axum`, its
/// `ConnectInfo<SocketAddr>` is read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// The address of the connection. Behind a proxy, that is the proxy's: use [`ForwardedAddress`].
#[derive(Debug, Default)]
pub struct PeerAddress {
    has_warned: AtomicBool,
}

/// The client's address behind trusted proxies, read from one header of theirs from right to left.
/// The first address that is not a trusted proxy's is the client's; everything to its left could be
/// forged. A peer that is not a trusted proxy is the client itself.
#[derive(Debug)]
pub struct ForwardedAddress {
    source: AddressSource,
    trusted: Vec<AddressRange>,
    has_warned: AtomicBool,
}

impl ForwardedAddress {
    /// Reads one header of the proxies in these ranges, such as `X-Forwarded-For`.
    pub fn new(source: AddressSource, trusted: impl IntoIterator<Item = AddressRange>) -> Self {
        let trusted = trusted.into_iter().collect();
        Self { source, trusted, has_warned: AtomicBool::new(false) }
    }
}

impl AttributeExtractor for PeerAddress {
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        let peer = peer_address(request)?;
        let is_forwarded =
            |headers: &HeaderMap| FORWARDING_HEADERS.iter().any(|name| headers.contains_key(*name));
        if !self.has_warned.load(Ordering::Relaxed) && is_forwarded(&request.headers) {
            warn_once(&self.has_warned, peer);
        }
        Ok(Some(peer.ip().to_string()))
    }
}

impl AttributeExtractor for ForwardedAddress {
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        let peer = peer_address(request)?;
        let lines = self.source.header().map(|name| header_lines(&request.headers, name));
        let lines = lines.unwrap_or_default();
        let client = find_client(peer.ip(), &lines, &self.source, &self.trusted);
        if client.why == AddressReason::UntrustedPeer && !lines.is_empty() {
            warn_once(&self.has_warned, peer);
        }
        Ok(Some(client.address.to_string()))
    }
}

fn peer_address(request: &Parts) -> Result<SocketAddr, ExtractError> {
    let own = request.extensions.get::<PeerAddr>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let own = own.or_else(|| {
        type ConnectInfo = axum::extract::ConnectInfo<SocketAddr>;
        request.extensions.get::<ConnectInfo>().map(|peer| peer.0)
    });
    own.ok_or(ExtractError::NoPeerAddress)
}

/// Reports a forwarding header that is not read. Once, because clients can send it themselves.
fn warn_once(has_warned: &AtomicBool, peer: SocketAddr) {
    if !has_warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            peer = %peer.ip(),
            "a forwarding header from an untrusted peer is ignored, and the peer's own address is \
             counted; if the peer is your proxy, all clients share one counter: use \
             `by_forwarded_address` with its address"
        );
    }
}
