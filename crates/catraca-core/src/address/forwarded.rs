//! Who the client is when proxies stand in between: one named source, believed only from proxies
//! that the operator trusts.
//!
//! A proxy adds the address it heard from at the right end, so the list is read from there, and
//! whatever lies left of the first untrusted hop is a claim. Must not skip a hop it cannot read,
//! nor fall back to another header.

mod hops;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use super::{Address, Range};

/// Where the client's address is read from; one per listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The connection itself.
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
pub struct Client {
    /// The address.
    pub address: Address,
    /// Why this one.
    pub why: Why,
}

/// Why an address was taken for the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The listener reads the connection alone.
    Peer,
    /// The peer is no trusted proxy, so its headers were not read.
    UntrustedPeer,
    /// The trusted peer sent no such header.
    NoHeader,
    /// The first hop from the right that is no trusted proxy.
    FirstUntrusted,
    /// The hop before it in the list cannot be read, so nothing left of this one is believed.
    Unreadable,
    /// Every hop is a trusted proxy, so the request began at the peer.
    AllTrusted,
}

/// Finds the client: `lines` are all lines of the source's header, in the order received.
pub fn client(peer: IpAddr, lines: &[&str], source: &Source, trusted: &[Range]) -> Client {
    let peer = Address::from_ip(peer);
    let is_trusted = |address: &Address| trusted.iter().any(|range| range.contains(address));
    let why = if *source == Source::Peer {
        Why::Peer
    } else if !is_trusted(&peer) {
        Why::UntrustedPeer
    } else if lines.iter().all(|line| line.trim().is_empty()) {
        Why::NoHeader
    } else {
        return walk(peer, lines, source, is_trusted);
    };
    Client { address: peer, why }
}

/// Walks the hops from right to left, from a trusted peer that sent some.
fn walk(
    peer: Address,
    lines: &[&str],
    source: &Source,
    is_trusted: impl Fn(&Address) -> bool,
) -> Client {
    let mut nearest = peer;
    for hop in lines.iter().rev().flat_map(|line| hops::from_right(line, source)) {
        match hop {
            Some(address) if is_trusted(&address) => nearest = address,
            Some(address) => return Client { address, why: Why::FirstUntrusted },
            None => return Client { address: nearest, why: Why::Unreadable },
        }
    }
    Client { address: peer, why: Why::AllTrusted }
}

impl Source {
    /// The source that a setting names: `peer`, or a header in any case.
    pub fn named(name: &str) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "peer" => Self::Peer,
            "x-forwarded-for" => Self::XForwardedFor,
            "forwarded" => Self::Forwarded,
            header => Self::Header(header.to_owned()),
        }
    }

    /// The header whose lines are to be handed to [`client`].
    pub fn header(&self) -> Option<&str> {
        match self {
            Self::Peer => None,
            Self::XForwardedFor => Some("x-forwarded-for"),
            Self::Forwarded => Some("forwarded"),
            Self::Header(name) => Some(name),
        }
    }
}

impl Why {
    /// A sentence for the people who ask which address was seen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "the address of the connection",
            Self::UntrustedPeer => "the address of the connection, which is no trusted proxy",
            Self::NoHeader => "the address of the connection, a trusted proxy that sent no header",
            Self::FirstUntrusted => "the first hop from the right that is no trusted proxy",
            Self::Unreadable => "the last hop before one that cannot be read",
            Self::AllTrusted => "the address of the connection, since every hop is a trusted proxy",
        }
    }
}
