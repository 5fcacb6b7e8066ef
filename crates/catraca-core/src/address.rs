//! IP addresses and ranges in canonical form, so that one address is always the same key.
//!
//! Addresses are compared by their bits: an IPv4-mapped IPv6 address is the IPv4 address. Must not
//! resolve host names; `forwarded` reads the headers of proxies.

pub mod forwarded;
mod range;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ipnet::Ipv6Net;

pub use range::{AddressRange, RangeError};

/// An IP address in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(IpAddr);

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// An address with a port.
    Port {
        /// What was written.
        text: String,
        /// The address without the port.
        address: Address,
    },
    /// A range of addresses.
    Range {
        /// What was written.
        text: String,
    },
    /// Neither an address, nor one with a port, nor a range.
    Malformed {
        /// What was written, cut short.
        text: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { text, address } => {
                write!(f, "`{text}` has a port: write the address alone, `{address}`")
            }
            Self::Range { text } => {
                write!(f, "`{text}` is a range: write one address, such as 198.51.100.7")
            }
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not an address: write one such as 198.51.100.7 or 2001:db8::7"
            ),
        }
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// Reads an IPv4 or IPv6 address. Spaces around it, brackets around IPv6 and an IPv6 zone are
    /// ignored.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let trimmed = text.trim();
        read(trimmed).ok_or_else(|| diagnose(trimmed))
    }

    /// The canonical form of an address.
    pub fn from_ip(ip: IpAddr) -> Self {
        Self(ip.to_canonical())
    }

    /// The address as the standard library's type.
    pub fn ip(self) -> IpAddr {
        self.0
    }

    /// The text by which a caller is counted: the whole IPv4 address, or the network of the first
    /// `v6_prefix` bits of IPv6, because one subscriber has a whole network of addresses.
    pub fn key(self, v6_prefix: u8) -> String {
        match self.0 {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => network(ip, v6_prefix).to_string(),
        }
    }

    /// The same as [`Address::key`], as an address instead of a text: an IPv4 address, or the first
    /// address of the IPv6 network. Does not allocate.
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

/// Reads an address without a port from a trimmed text.
fn read(text: &str) -> Option<Address> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match bracketed {
        Some(inner) => IpAddr::V6(without_zone(inner).parse().ok()?),
        None if text.contains(':') => IpAddr::V6(without_zone(text).parse().ok()?),
        None => IpAddr::V4(text.parse().ok()?),
    };
    Some(Address::from_ip(ip))
}

/// Reads an address that may have a port, as proxies write them; `port` tests the text after `:`.
fn read_with_port(text: &str, port: impl Fn(&str) -> bool) -> Option<Address> {
    read(text).or_else(|| {
        let (host, tail) = text.rsplit_once(':')?;
        // Without brackets a port could not be distinguished from the last group of IPv6.
        let address = read(host).filter(|_| host.starts_with('[') || !host.contains(':'))?;
        port(tail).then_some(address)
    })
}

/// Whether a text is a port number.
fn is_port(text: &str) -> bool {
    text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Removes the zone of an IPv6 address, which has a meaning only on the machine that wrote it.
fn without_zone(text: &str) -> &str {
    match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() => address,
        _ => text,
    }
}

/// The network of an IPv6 address, with the bits after the prefix set to zero.
fn network(ip: Ipv6Addr, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(ip, prefix.min(128)).trunc()
}

/// Finds the mistake in a text that is not an address.
fn diagnose(text: &str) -> AddressError {
    let text: String = text.chars().take(SHOWN).collect();
    if let Some(address) = read_with_port(&text, is_port) {
        AddressError::Port { text, address }
    } else if AddressRange::parse(&text).is_ok() {
        AddressError::Range { text }
    } else {
        AddressError::Malformed { text }
    }
}

/// The number of characters of an invalid text that errors show; valid addresses are shorter.
const SHOWN: usize = 64;
