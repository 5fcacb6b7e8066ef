//! Ranges of addresses in canonical form, for lists and trusted proxies.
//!
//! Must not repair what was written: a range with stray bits may be a typing mistake in either
//! part, so it is refused with both readings.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use super::{Address, read};

/// A canonical range of addresses; one address is a range of one.
///
/// IPv6 ranges never hold IPv4 addresses: a range inside the IPv4-mapped block is an IPv4 range,
/// and a wider one, such as `::/0`, is about IPv6 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range(IpNet);

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Bits set beyond the prefix.
    #[error(
        "`{text}` is not the start of its range: \
         write {network}, or {address} for that address alone"
    )]
    StrayBits {
        /// What was written.
        text: String,
        /// The range that holds the address.
        network: Range,
        /// The address.
        address: Address,
    },
    /// A prefix longer than the address.
    #[error("`{text}` has no such prefix: write /0 to /{longest}")]
    Prefix {
        /// What was written.
        text: String,
        /// The longest prefix for this kind of address.
        longest: u8,
    },
    /// Anything else.
    #[error(
        "`{text}` is not a range: write one such as 203.0.113.0/24, 2001:db8::/32 or 198.51.100.7"
    )]
    Malformed {
        /// What was written, cut short.
        text: String,
    },
}

impl Range {
    /// Reads `203.0.113.0/24`, `2001:db8::/32` or a bare address.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let text = text.trim();
        let malformed =
            || RangeError::Malformed { text: text.chars().take(super::SHOWN).collect() };
        let Some((start, prefix)) = text.split_once('/') else {
            return read(text).map(Self::from).ok_or_else(malformed);
        };
        let address = read(start).ok_or_else(malformed)?;
        if prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed());
        }
        let written = if start.contains(':') { 128 } else { 32 };
        match prefix.parse() {
            Ok(prefix) if prefix <= written => Self::of(text, start, address, prefix),
            _ => Err(RangeError::Prefix { text: text.to_owned(), longest: written }),
        }
    }

    /// The range of an address as written and a prefix that fits its notation.
    fn of(text: &str, start: &str, address: Address, prefix: u8) -> Result<Self, RangeError> {
        let net = match address.ip() {
            // Written as IPv6 within the mapped block: the first 96 bits are the block's.
            IpAddr::V4(ip) if start.contains(':') && prefix >= 96 => {
                IpNet::V4(Ipv4Net::new_assert(ip, prefix - 96))
            }
            IpAddr::V4(ip) if start.contains(':') => {
                IpNet::new_assert(IpAddr::V6(ip.to_ipv6_mapped()), prefix)
            }
            ip => IpNet::new_assert(ip, prefix),
        };
        let network = Self(net.trunc());
        if network.0 == net {
            return Ok(network);
        }
        Err(RangeError::StrayBits { text: text.to_owned(), network, address })
    }

    /// Whether an address lies in the range.
    pub fn contains(&self, address: &Address) -> bool {
        self.0.contains(&address.ip())
    }

    /// The range as a network.
    pub fn net(&self) -> IpNet {
        self.0
    }
}

impl From<Address> for Range {
    fn from(address: Address) -> Self {
        Self(IpNet::from(address.ip()))
    }
}

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        Self::parse(text)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}
