//! Network addresses and ranges in one canonical form, so that one caller has one spelling.
//!
//! Equality is by bits: an IPv4 address inside IPv6 is IPv4, however it was written. Must not
//! resolve names or guess ports; `forwarded` reads what proxies write.

pub mod forwarded;
mod range;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ipnet::Ipv6Net;

pub use range::{Range, RangeError};

/// One canonical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(IpAddr);

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// An address with a port.
    #[error("`{text}` has a port: write the address alone, `{address}`")]
    Port {
        /// What was written.
        text: String,
        /// The address in it.
        address: Address,
    },
    /// A range of addresses.
    #[error("`{text}` is a range: write one address, such as 198.51.100.7")]
    Range {
        /// What was written.
        text: String,
    },
    /// Anything else.
    #[error("`{text}` is not an address: write one such as 198.51.100.7 or 2001:db8::7")]
    Malformed {
        /// What was written, cut short.
        text: String,
    },
}

impl Address {
    /// Reads an IPv4 or IPv6 address. Spaces around it, brackets around IPv6 and a zone are left
    /// out.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let trimmed = text.trim();
        read(trimmed).ok_or_else(|| diagnose(trimmed))
    }

    /// The canonical form of an address.
    pub fn from_ip(ip: IpAddr) -> Self {
        Self(ip.to_canonical())
    }

    /// The address itself.
    pub fn ip(self) -> IpAddr {
        self.0
    }

    /// The text by which callers are counted: IPv4 whole, IPv6 by its first `v6_prefix` bits,
    /// because one subscriber holds a whole network of those.
    pub fn key(self, v6_prefix: u8) -> String {
        match self.0 {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => network(ip, v6_prefix).to_string(),
        }
    }

    /// The same as a value: an IPv4 address, or the first address of an IPv6 network. Cheaper than
    /// `key` where nothing is stored.
    pub fn network(self, v6_prefix: u8) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(ip) => IpAddr::V6(network(ip, v6_prefix).addr()),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self::from_ip(ip)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a trimmed text as an address, without a port.
fn read(text: &str) -> Option<Address> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match bracketed {
        Some(inner) => IpAddr::V6(without_zone(inner).parse().ok()?),
        None if text.contains(':') => IpAddr::V6(without_zone(text).parse().ok()?),
        None => IpAddr::V4(text.parse().ok()?),
    };
    Some(Address::from_ip(ip))
}

/// Reads an address that may carry a port, as proxies write them; `port` judges what follows `:`.
fn read_with_port(text: &str, port: impl Fn(&str) -> bool) -> Option<Address> {
    read(text).or_else(|| {
        let (host, tail) = text.rsplit_once(':')?;
        // Without brackets the last group of IPv6 could not be told from a port.
        let address = read(host).filter(|_| host.starts_with('[') || !host.contains(':'))?;
        port(tail).then_some(address)
    })
}

/// A port number.
fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// IPv6 without its zone, which only means something on the machine that wrote it.
fn without_zone(text: &str) -> &str {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => address,
        _ => text,
    }
}

/// The network of an IPv6 address.
fn network(ip: Ipv6Addr, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(ip, prefix.min(128)).trunc()
}

/// Names the mistake in a text that is not an address.
fn diagnose(text: &str) -> AddressError {
    let text: String = text.chars().take(SHOWN).collect();
    if let Some(address) = read_with_port(&text, is_port) {
        AddressError::Port { text, address }
    } else if Range::parse(&text).is_ok() {
        AddressError::Range { text }
    } else {
        AddressError::Malformed { text }
    }
}

/// How many characters of a refused text are shown; addresses are shorter.
const SHOWN: usize = 64;
