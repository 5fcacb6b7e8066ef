//! `[network]`, `language`, and the sections that are kept for the process that owns them.
//!
//! Must not interpret the last.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::lists;
use super::node::{Fields, Node};
use super::report::Report;
use super::scalar;
use super::section::{SETTINGS, Sections};
use crate::catalog::{Language, Network, Settings};

/// The prefixes by which IPv6 callers may be counted.
const IPV6_PREFIXES: std::ops::RangeInclusive<i64> = 32..=128;

/// Reads `[network]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> Network {
    let mut network = Network::default();
    let Some((key, node)) = sections.single(report, "network") else { return network };
    let known = ["ipv6_prefix", "trusted_proxies"];
    let Some(fields) = Fields::read(report, (key.place, node), "network section", &known) else {
        return network;
    };
    if let Some(prefix) = fields.get("ipv6_prefix").and_then(|node| prefix(report, node)) {
        network.ipv6_prefix = prefix;
    }
    if let Some(node) = fields.get("trusted_proxies") {
        let items = node.items(report, "a list of ranges such as [\"10.0.0.0/8\"]");
        let ranges = items.unwrap_or_default().into_iter();
        network.trusted_proxies = ranges.filter_map(|item| lists::range(report, item)).collect();
    }
    network
}

fn prefix(report: &mut Report, node: Node<'_>) -> Option<u8> {
    let prefix = node.integer(report, "a prefix from 32 to 128")?;
    if !IPV6_PREFIXES.contains(&prefix) {
        let message = format!("`{prefix}` is no prefix to count IPv6 callers by");
        let fix = "write 64, or another prefix from 32 to 128";
        report.error("bad-prefix", node.place, message, fix);
        return None;
    }
    u8::try_from(prefix).ok()
}

/// Reads `language`.
pub(super) fn language(report: &mut Report, sections: &Sections<'_>) -> Language {
    let words = [("en", Language::English), ("pt", Language::Portuguese)];
    let given = sections.single(report, "language");
    given.and_then(|(_, node)| scalar::word(report, node, &words)).unwrap_or_default()
}

/// Keeps the sections of the process as they were read.
pub(super) fn settings(report: &mut Report, sections: &Sections<'_>) -> Settings {
    let mut kept = BTreeMap::new();
    for name in SETTINGS {
        let Some((_, node)) = sections.single(report, name) else { continue };
        match plain(report, node) {
            Some(toml::Value::Table(table)) => drop(kept.insert(name.to_owned(), table)),
            Some(_) => node.refuse(report, &format!("a table, opened by [{name}]")).unwrap_or(()),
            None => {}
        }
    }
    Settings { sections: kept }
}

/// A value without its places.
fn plain(report: &mut Report, node: Node<'_>) -> Option<toml::Value> {
    Some(match node.value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Integer(_) => toml::Value::Integer(node.integer(report, "a whole number")?),
        DeValue::Float(float) => toml::Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => toml::Value::Boolean(*flag),
        DeValue::Datetime(datetime) => toml::Value::Datetime(*datetime),
        DeValue::Array(_) => {
            let items = node.items(report, "a list")?;
            toml::Value::Array(items.into_iter().filter_map(|item| plain(report, item)).collect())
        }
        DeValue::Table(_) => {
            let entries = node.entries(report, "a table")?.into_iter();
            let named = |(key, node): (super::node::Key<'_>, _)| {
                plain(report, node).map(|value| (key.text.to_owned(), value))
            };
            toml::Value::Table(entries.filter_map(named).collect())
        }
    })
}
