//! The client's address behind proxies, read from one configured header of trusted proxies.
//!
//! Each proxy appends the address of its peer at the right end, so the hops are read from right to
//! left. Everything to the left of the first untrusted hop could be forged by the client. Must not
//! skip a hop that cannot be parsed, nor fall back to another header: a client could forge both.

mod hops;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use super::{Address, AddressRange};

/// The source of the client's address; each listener has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressSource {
    /// The peer of the connection.
    #[default]
    Peer,
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// Another header with addresses, such as `x-real-ip`, in lower case.
    Header(String),
}

/// The client's address, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address.
    pub address: Address,
    /// How it was found.
    pub why: AddressReason,
}

/// How the client's address was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressReason {
    /// The listener is configured to read no header.
    Peer,
    /// The peer is not a trusted proxy, so its headers were not read.
    UntrustedPeer,
    /// The trusted peer sent no such header.
    NoHeader,
    /// The first hop from the right that is not a trusted proxy.
    FirstUntrusted,
    /// The hop to its left cannot be parsed, so this is the last one that can be trusted.
    Unreadable,
    /// Every hop is a trusted proxy, so the request was made by the peer itself.
    AllTrusted,
}

/// Finds the client's address. `lines` are all lines of the source's header, in the order received.
pub fn find_client(
    peer: IpAddr,
    lines: &[&str],
    source: &AddressSource,
    trusted: &[AddressRange],
) -> ClientAddress {
    let peer = Address::from_ip(peer);
    let is_trusted = |address: &Address| trusted.iter().any(|range| range.contains(address));
    let why = if *source == AddressSource::Peer {
        AddressReason::Peer
    } else if !is_trusted(&peer) {
        AddressReason::UntrustedPeer
    } else if lines.iter().all(|line| line.trim().is_empty()) {
        AddressReason::NoHeader
    } else {
        return walk_hops(peer, lines, source, is_trusted);
    };
    ClientAddress { address: peer, why }
}

/// Reads the hops of a trusted peer's header from right to left.
fn walk_hops(
    peer: Address,
    lines: &[&str],
    source: &AddressSource,
    is_trusted: impl Fn(&Address) -> bool,
) -> ClientAddress {
    let mut nearest = peer;
    for hop in lines.iter().rev().flat_map(|line| hops::hops_from_right(line, source)) {
        match hop {
            Some(address) if is_trusted(&address) => nearest = address,
            Some(address) => return ClientAddress { address, why: AddressReason::FirstUntrusted },
            None => return ClientAddress { address: nearest, why: AddressReason::Unreadable },
        }
    }
    ClientAddress { address: peer, why: AddressReason::AllTrusted }
}

impl AddressSource {
    /// Reads the setting: `peer`, or the name of a header in any case.
    pub fn from_name(name: &str) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "peer" => Self::Peer,
            "x-forwarded-for" => Self::XForwardedFor,
            "forwarded" => Self::Forwarded,
            header => Self::Header(header.to_owned()),
        }
    }

    /// The header whose lines [`find_client`] needs, in lower case.
    pub fn header(&self) -> Option<&str> {
        match self {
            Self::Peer => None,
            Self::XForwardedFor => Some("x-forwarded-for"),
            Self::Forwarded => Some("forwarded"),
            Self::Header(name) => Some(name),
        }
    }
}

impl AddressReason {
    /// A description for operators.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "the address of the connection",
            Self::UntrustedPeer => "the address of the connection, which is not a trusted proxy",
            Self::NoHeader => "the address of the connection, a trusted proxy that sent no header",
            Self::FirstUntrusted => "the first hop from the right that is not a trusted proxy",
            Self::Unreadable => "the last hop before one that is not an address",
            Self::AllTrusted => "the address of the connection, since every hop is a trusted proxy",
        }
    }
}
