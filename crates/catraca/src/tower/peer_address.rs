//! The client's address: that of the connection, or the one that trusted proxies report.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_core::address::forwarded::{AddressReason, AddressSource, find_client};
use catraca_core::address::{AddressRange, RangeError};
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

/// Why the client's address cannot be read behind proxies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardedAddressError {
    /// No proxy is trusted, so the header would never be read.
    #[error(
        "no proxy is trusted, so its header would never be read and all clients would share one \
         counter: name the addresses of the proxies, or use `by_peer_address`"
    )]
    NoTrustedProxies,
    /// The source is the peer, which no header reports.
    #[error("`AddressSource::Peer` reads no header: name one, or use `by_peer_address`")]
    NoHeader,
    /// A range is invalid.
    #[error("a range of trusted proxies is invalid: {0}")]
    Range(#[from] RangeError),
}

impl From<Infallible> for ForwardedAddressError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl ForwardedAddress {
    /// Reads one header of the proxies in these ranges, such as `X-Forwarded-For`. A range is a
    /// text such as `10.0.0.0/8`, or one address.
    ///
    /// ```
    /// use catraca::tower::{AddressSource, ForwardedAddress, ForwardedAddressError};
    ///
    /// ForwardedAddress::new(AddressSource::XForwardedFor, ["10.0.0.0/8", "2001:db8::1"])?;
    /// let none: [&str; 0] = [];
    /// let error = ForwardedAddress::new(AddressSource::XForwardedFor, none).unwrap_err();
    /// assert_eq!(error, ForwardedAddressError::NoTrustedProxies);
    /// # Ok::<(), ForwardedAddressError>(())
    /// ```
    pub fn new<R>(
        source: AddressSource,
        trusted: impl IntoIterator<Item = R>,
    ) -> Result<Self, ForwardedAddressError>
    where
        R: TryInto<AddressRange, Error: Into<ForwardedAddressError>>,
    {
        if source == AddressSource::Peer {
            return Err(ForwardedAddressError::NoHeader);
        }
        let ranges = trusted.into_iter().map(|range| range.try_into().map_err(Into::into));
        let trusted = ranges.collect::<Result<Vec<_>, ForwardedAddressError>>()?;
        if trusted.is_empty() {
            return Err(ForwardedAddressError::NoTrustedProxies);
        }
        Ok(Self { source, trusted, has_warned: AtomicBool::new(false) })
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
