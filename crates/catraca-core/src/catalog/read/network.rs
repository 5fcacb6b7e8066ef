//! `[network]` and `language`: how addresses and paths of requests are read, and the language of
//! durations in messages.

use ipnet::IpNet;

use super::lists;
use super::scalar;
use super::section::Sections;
use crate::address::AddressRange;
use crate::catalog::{EncodedSlash, Language, Network, PathCase};
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema,
    schema::words,
};

/// The prefix lengths by which IPv6 callers may be counted.
const IPV6_PREFIXES: std::ops::RangeInclusive<i64> = 32..=128;

pub(in crate::catalog) const PATH_CASES: [(&str, PathCase); 2] =
    [("sensitive", PathCase::Sensitive), ("insensitive", PathCase::Insensitive)];
pub(in crate::catalog) const ENCODED_SLASHES: [(&str, EncodedSlash); 3] = [
    ("reject", EncodedSlash::Reject),
    ("separator", EncodedSlash::Separator),
    ("literal", EncodedSlash::Literal),
];

/// The fields of `[network]`.
pub(super) static NETWORK: TableSchema = TableSchema {
    name: "network section",
    fields: &[
        FieldSchema::new(
            "ipv6_prefix",
            ValueSchema::Integer { least: *IPV6_PREFIXES.start(), most: *IPV6_PREFIXES.end() },
            "the prefix by which IPv6 callers are counted",
        )
        .or(DefaultValue::Integer(64)),
        FieldSchema::new(
            "trusted_proxies",
            ValueSchema::List { of: &ValueSchema::Text, most: usize::MAX },
            "the addresses and ranges whose forwarding headers are trusted",
        )
        .or(DefaultValue::Absent("none: the peer address of the connection counts")),
        FieldSchema::new(
            "path_case",
            ValueSchema::Word(|| words(&PATH_CASES)),
            "`\"insensitive\"`: `/login` and `/LOGIN` are the same path to routes; set it if the \
             upstream does the same",
        )
        .or(DefaultValue::Text("sensitive")),
        FieldSchema::new(
            "encoded_slash",
            ValueSchema::Word(|| words(&ENCODED_SLASHES)),
            "what `%2f` in a path means to the upstream: `\"separator\"`, the same as `/`, or \
             `\"literal\"`, a character of its segment; `\"reject\"` answers 400 `ambiguous-path`",
        )
        .or(DefaultValue::Text("reject")),
    ],
};

const EVERYONE: &str =
    "every client is a trusted proxy, and can write any address into X-Forwarded-For";
const PROXIES_FIX: &str = "write the addresses of your proxies, such as \"10.0.0.0/8\"";

/// Reads `[network]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> Network {
    let mut network = Network::default();
    let Some((key, node)) = sections.single(report, "network") else { return network };
    let Some(fields) = TableFields::read(report, key.location, node, &NETWORK) else {
        return network;
    };
    if let Some(prefix) = fields.get("ipv6_prefix").and_then(|node| prefix(report, node)) {
        network.ipv6_prefix = prefix;
    }
    if let Some(node) = fields.get("trusted_proxies") {
        let items = node.items(report, "a list of ranges such as [\"10.0.0.0/8\"]");
        let ranges = items.unwrap_or_default().into_iter();
        network.trusted_proxies = ranges.filter_map(|item| proxies(report, item)).collect();
        warn_of_everyone(report, node.location, &network.trusted_proxies);
    }
    let path_case = fields.get("path_case");
    if let Some(case) = path_case.and_then(|node| scalar::keyword(report, node, &PATH_CASES)) {
        network.path_case = case;
    }
    let encoded_slash = fields.get("encoded_slash");
    if let Some(slash) =
        encoded_slash.and_then(|node| scalar::keyword(report, node, &ENCODED_SLASHES))
    {
        network.encoded_slash = slash;
    }
    network
}

/// Warns of ranges that contain every address of a family together, such as both halves of it.
fn warn_of_everyone(report: &mut Report, location: SourceLocation, ranges: &[AddressRange]) {
    let nets: Vec<IpNet> = ranges.iter().map(AddressRange::net).collect();
    let is_everyone = |net: &IpNet| net.prefix_len() == 0;
    // A single range of this kind has a warning of its own.
    if !nets.iter().any(is_everyone) && IpNet::aggregate(&nets).iter().any(is_everyone) {
        report.warn("trusts-everyone", location, format!("together, {EVERYONE}"), PROXIES_FIX);
    }
}

/// A range of trusted proxies. One that contains every address lets any client choose the address
/// that it is counted by.
fn proxies(report: &mut Report, item: Node<'_>) -> Option<AddressRange> {
    let range = lists::range(report, item)?;
    if item.text(report, "a range").is_some_and(|text| text.trim().ends_with("/0")) {
        report.warn("trusts-everyone", item.location, EVERYONE, PROXIES_FIX);
    }
    Some(range)
}

fn prefix(report: &mut Report, node: Node<'_>) -> Option<u8> {
    let prefix = node.integer(report, "a prefix from 32 to 128")?;
    if !IPV6_PREFIXES.contains(&prefix) {
        let message = format!("`{prefix}` is not a valid prefix to count IPv6 callers by");
        let fix = "write 64, or another prefix from 32 to 128";
        report.error("bad-prefix", node.location, message, fix);
        return None;
    }
    u8::try_from(prefix).ok()
}

/// The languages by their names in the catalog.
pub(in crate::catalog) const LANGUAGES: [(&str, Language); 2] =
    [("en", Language::English), ("pt", Language::Portuguese)];

/// Reads `language`.
pub(super) fn language(report: &mut Report, sections: &Sections<'_>) -> Language {
    let field = sections.single(report, "language");
    field.and_then(|(_, node)| scalar::keyword(report, node, &LANGUAGES)).unwrap_or_default()
}
