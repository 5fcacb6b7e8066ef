//! Address ranges in canonical form, for lists and trusted proxies.
//!
//! A range with bits set after its prefix is an error: the mistake may be in the address or in the
//! prefix, so the error suggests both corrections.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use super::{Address, read};

/// An address range in canonical form; a single address is a range of one.
///
/// IPv6 ranges never contain IPv4 addresses: a range within the IPv4-mapped block is an IPv4 range,
/// and a wider one, such as `::/0`, matches IPv6 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange(IpNet);

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// Bits set beyond the prefix.
    StrayBits {
        /// What was written.
        text: String,
        /// The range that contains the address.
        network: AddressRange,
        /// The address.
        address: Address,
    },
    /// A prefix longer than the address.
    Prefix {
        /// What was written.
        text: String,
        /// The longest prefix for this kind of address.
        longest: u8,
    },
    /// Not an address and a prefix length.
    Malformed {
        /// What was written, cut short.
        text: String,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StrayBits { text, network, address } => write!(
                f,
                "`{text}` is not the start of its range: write {network}, or {address} for that \
                 address alone"
            ),
            Self::Prefix { text, longest } => {
                write!(f, "`{text}` has no such prefix: write /0 to /{longest}")
            }
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not a range: write one such as 203.0.113.0/24, 2001:db8::/32 or \
                 198.51.100.7"
            ),
        }
    }
}

impl std::error::Error for RangeError {}

impl AddressRange {
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
        let longest = if start.contains(':') { 128 } else { 32 };
        match prefix.parse() {
            Ok(prefix) if prefix <= longest => Self::of(text, start, address, prefix),
            _ => Err(RangeError::Prefix { text: text.to_owned(), longest }),
        }
    }

    /// The range of an address and a prefix length that is valid for the notation of `start`.
    fn of(text: &str, start: &str, address: Address, prefix: u8) -> Result<Self, RangeError> {
        let net = match address.ip() {
            // An IPv4-mapped range such as `::ffff:203.0.113.0/120`: the first 96 bits are fixed.
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

    /// Whether the range contains an address.
    pub fn contains(&self, address: &Address) -> bool {
        self.0.contains(&address.ip())
    }

    /// The range as a type of the `ipnet` crate.
    pub fn net(&self) -> IpNet {
        self.0
    }
}

impl From<Address> for AddressRange {
    fn from(address: Address) -> Self {
        Self(IpNet::from(address.ip()))
    }
}

impl TryFrom<&str> for AddressRange {
    type Error = RangeError;

    fn try_from(text: &str) -> Result<Self, RangeError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for AddressRange {
    type Error = RangeError;

    fn try_from(text: String) -> Result<Self, RangeError> {
        Self::parse(&text)
    }
}

impl From<IpAddr> for AddressRange {
    fn from(address: IpAddr) -> Self {
        Address::from(address).into()
    }
}

impl FromStr for AddressRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        Self::parse(text)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}
