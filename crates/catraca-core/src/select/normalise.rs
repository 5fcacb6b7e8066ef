//! Normal form of attribute values, so that different spellings of a value have the same key.
//!
//! Must not show a value in an error: it may be private.

use std::borrow::Cow;

use ipnet::Ipv6Net;

use crate::address::Address;
use crate::catalog::{AttributeKind, Catalog};
use crate::cpf_cnpj;
use crate::digest::is_pseudonym;
use crate::facts::is_hashed_value;
use crate::pix_key;
use crate::refusal::Refusal;
use crate::request::{VALUE_BYTES_MAX, is_storable};

const NOT_AN_ADDRESS: &str =
    "this is not an address; send one without a port, such as 198.51.100.7 or 2001:db8::7";

const NOT_STORABLE: &str = "the value contains U+0000, which cannot be stored; remove it";

const WRONG_CHECK_DIGITS: &str =
    "the check digits of this CPF or CNPJ do not fit its other characters: it was mistyped";

/// The normal form of an attribute's value; refuses one that is too long or invalid for its kind.
pub fn normalise<'s>(
    catalog: &Catalog,
    attribute: &str,
    raw: &'s str,
) -> Result<Cow<'s, str>, Refusal> {
    if raw.len() > VALUE_BYTES_MAX {
        let bytes = raw.len();
        let attribute = attribute.to_owned();
        return Err(Refusal::TooLong { attribute, bytes, max: VALUE_BYTES_MAX });
    }
    let kind = catalog.attribute_kind(attribute);
    normal_form(kind, raw, catalog.network.ipv6_prefix)
        .map_err(|why| Refusal::BadAttribute { attribute: attribute.to_owned(), why })
}

/// The normal form of a value that is stored in the normal form of an earlier catalog. Absent if it
/// is not known: no caller can send the value any more, or it is a network of IPv6 that is larger
/// than those that are counted now. A pseudonym and a hash stay as they are.
pub fn normalise_stored<'s>(
    catalog: &Catalog,
    attribute: &str,
    stored: &'s str,
) -> Option<Cow<'s, str>> {
    if is_pseudonym(stored) || is_hashed_value(stored) {
        return Some(Cow::Borrowed(stored));
    }
    let prefix = catalog.network.ipv6_prefix;
    if catalog.attribute_kind(attribute) == AttributeKind::Ip
        && let Ok(network) = stored.parse::<Ipv6Net>()
    {
        let first = Address::from_ip(network.addr().into());
        return (network.prefix_len() >= prefix).then(|| Cow::Owned(first.key(prefix)));
    }
    normalise(catalog, attribute, stored).ok()
}

/// The normal form of a value of a subject.
#[inline]
pub(crate) fn normalise_value<'s>(
    catalog: &Catalog,
    attribute: &str,
    raw: Cow<'s, str>,
) -> Result<Cow<'s, str>, Refusal> {
    match raw {
        Cow::Borrowed(raw) => normalise(catalog, attribute, raw),
        Cow::Owned(raw) => Ok(Cow::Owned(normalise(catalog, attribute, &raw)?.into_owned())),
    }
}

/// The normal form of a value of this kind; the error does not show the value.
pub fn normal_form(
    kind: AttributeKind,
    raw: &str,
    ipv6_prefix: u8,
) -> Result<Cow<'_, str>, String> {
    match kind {
        // Of the other kinds no valid value contains U+0000.
        AttributeKind::Text | AttributeKind::Caseless if !is_storable(raw) => {
            Err(NOT_STORABLE.to_owned())
        }
        AttributeKind::Text => Ok(Cow::Borrowed(raw)),
        AttributeKind::Caseless => Ok(caseless(raw)),
        AttributeKind::Ip => address(raw, ipv6_prefix),
        AttributeKind::CpfCnpj => {
            cpf_cnpj::parse(raw).map(|id| Cow::Owned(id.normal)).map_err(|why| why.to_string())
        }
        AttributeKind::CheckedCpfCnpj => {
            let id = cpf_cnpj::parse(raw).map_err(|why| why.to_string())?;
            match id.has_valid_check_digits() {
                true => Ok(Cow::Owned(id.normal)),
                false => Err(WRONG_CHECK_DIGITS.to_owned()),
            }
        }
        AttributeKind::PixKey => {
            pix_key::parse(raw).map(|key| Cow::Owned(key.normal)).map_err(|why| why.to_string())
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

/// The normal form of an address. The common case, an IPv4 address, is borrowed: it is already
/// normal, and this is called for every request.
fn address(raw: &str, ipv6_prefix: u8) -> Result<Cow<'_, str>, String> {
    if raw.parse::<std::net::Ipv4Addr>().is_ok() {
        return Ok(Cow::Borrowed(raw));
    }
    let address = Address::parse(raw).map_err(|_| NOT_AN_ADDRESS.to_owned())?;
    Ok(Cow::Owned(address.key(ipv6_prefix)))
}
