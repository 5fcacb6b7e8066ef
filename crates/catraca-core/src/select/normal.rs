//! One form for one thing: addresses, taxpayer numbers and caseless texts are brought to it before
//! they are keyed.
//!
//! Must not echo a value in an error: it may be private.

use std::borrow::Cow;

use crate::address::Address;
use crate::catalog::{Catalog, Kind};
use crate::person;
use crate::refusal::Refusal;
use crate::request::{VALUE_BYTES_MAX, is_storable};

const NOT_AN_ADDRESS: &str =
    "this is not an address; send one without a port, such as 198.51.100.7 or 2001:db8::7";

const NOT_STORABLE: &str = "the value contains U+0000, which cannot be stored; remove it";

/// The normal form of an attribute's value, in bounds.
pub fn normalise<'s>(
    catalog: &Catalog,
    attribute: &str,
    raw: &'s str,
) -> Result<Cow<'s, str>, Refusal> {
    if raw.len() > VALUE_BYTES_MAX {
        let (bytes, max) = (raw.len(), VALUE_BYTES_MAX);
        return Err(Refusal::TooLong { attribute: attribute.to_owned(), bytes, max });
    }
    let kind = catalog.kind(attribute);
    form(kind, raw, catalog.network.ipv6_prefix)
        .map_err(|why| Refusal::BadAttribute { attribute: attribute.to_owned(), why })
}

/// The normal form of a value of this kind; the error says what is wrong without the value.
pub fn form(kind: Kind, raw: &str, ipv6_prefix: u8) -> Result<Cow<'_, str>, String> {
    match kind {
        // No address and no taxpayer number holds it either.
        Kind::Text | Kind::Caseless if !is_storable(raw) => Err(NOT_STORABLE.to_owned()),
        Kind::Text => Ok(Cow::Borrowed(raw)),
        Kind::Caseless => Ok(caseless(raw)),
        Kind::Ip => address(raw, ipv6_prefix),
        Kind::CpfCnpj => {
            person::parse(raw).map(|id| Cow::Owned(id.normal)).map_err(|why| why.to_string())
        }
    }
}

fn caseless(raw: &str) -> Cow<'_, str> {
    let trimmed = raw.trim();
    if trimmed.chars().any(char::is_uppercase) {
        return Cow::Owned(trimmed.to_lowercase());
    }
    Cow::Borrowed(trimmed)
}

/// A plain IPv4 address is already in its normal form: the common case must not allocate.
fn address(raw: &str, ipv6_prefix: u8) -> Result<Cow<'_, str>, String> {
    if raw.parse::<std::net::Ipv4Addr>().is_ok() {
        return Ok(Cow::Borrowed(raw));
    }
    let address = Address::parse(raw).map_err(|_| NOT_AN_ADDRESS.to_owned())?;
    Ok(Cow::Owned(address.key(ipv6_prefix)))
}
