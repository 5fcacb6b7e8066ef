//! The sections that configure the process, such as `[server]` and `[store]`: checked here, and
//! used by the server and the engine.
//!
//! A section that this version does not implement is an error: a catalog with API keys or a shared
//! store that silently have no effect would be worse. A newly implemented section is added to
//! `SUPPORTED`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::attribute::AttributeTable;
use super::auth_keys;
use super::names;
use super::node::{LocatedKey, Node, TableFields};
use super::report::Report;
use super::scalar;
use super::section::{PROCESS_SECTIONS, Sections};
use crate::catalog::ProcessSettings;

/// The type of a field.
#[derive(Clone, Copy)]
enum SettingType {
    /// An address and a port.
    Socket,
    /// Any text.
    Text,
    /// A boolean.
    Flag,
    /// A whole number from one to this.
    Whole(i64),
    /// A duration.
    Duration,
    /// A percentage, which may be zero.
    Percent,
    /// One of these keywords.
    Word(&'static [&'static str]),
    /// A URL with one of these schemes, or a scheme alone, such as `memory`.
    Url(&'static [&'static str]),
    /// The name of an attribute.
    Attribute,
    /// A list of texts.
    Texts,
    /// The tables of API keys.
    Keys,
}

/// The implemented sections, with the types of their fields.
const SUPPORTED: [(&str, &[(&str, SettingType)]); 4] =
    [("server", &SERVER), ("auth", &AUTH), ("records", &RECORDS), ("store", &STORE)];

const SERVER: [(&str, SettingType); 18] = [
    ("listen", SettingType::Socket),
    ("hosts", SettingType::Texts),
    ("log", SettingType::Text),
    ("log_level", SettingType::Word(&["info", "debug"])),
    ("x_ratelimit", SettingType::Flag),
    ("denial", SettingType::Word(&DENIALS)),
    ("client_address", SettingType::Text),
    ("connections_max", SettingType::Whole(1_000_000)),
    ("connections_per_address", SettingType::Whole(1_000_000)),
    ("head_timeout", SettingType::Duration),
    ("body_timeout", SettingType::Duration),
    ("answer_timeout", SettingType::Duration),
    ("idle_timeout", SettingType::Duration),
    ("stop_delay", SettingType::Duration),
    ("tls_cert", SettingType::Text),
    ("tls_key", SettingType::Text),
    ("traces", SettingType::Text),
    ("trace_share", SettingType::Percent),
];

/// The formats of a denial that a gateway returns.
const DENIALS: [&str; 6] = ["problem", "problem_xml", "message", "error", "conflict", "empty"];

const AUTH: [(&str, SettingType); 3] = [
    ("key", SettingType::Keys),
    ("secret_file", SettingType::Text),
    ("metrics", SettingType::Text),
];

const RECORDS: [(&str, SettingType); 6] = [
    ("url", SettingType::Url(&["none", "sqlite", "postgres", "postgresql"])),
    ("password_file", SettingType::Text),
    ("keep_history", SettingType::Duration),
    ("keep_audit", SettingType::Duration),
    ("keep_counts", SettingType::Duration),
    ("purge_interval", SettingType::Duration),
];

const STORE: [(&str, SettingType); 14] = [
    ("url", SettingType::Url(&STORES)),
    ("nodes", SettingType::Whole(1_000)),
    ("deny_cache", SettingType::Flag),
    ("deadline", SettingType::Duration),
    ("password_file", SettingType::Text),
    ("sentinel_password_file", SettingType::Text),
    ("ca_file", SettingType::Text),
    ("shard_by", SettingType::Attribute),
    ("snapshot", SettingType::Text),
    ("snapshot_interval", SettingType::Duration),
    ("counter_mib", SettingType::Whole(MIB_MAX)),
    ("block_mib", SettingType::Whole(MIB_MAX)),
    ("reference_mib", SettingType::Whole(MIB_MAX)),
    ("mark_mib", SettingType::Whole(MIB_MAX)),
];
/// The schemes of stores. A suffix after `+` selects a variant and is checked by the store.
const STORES: [&str; 8] =
    ["memory", "redis", "rediss", "valkey", "valkeys", "unix", "postgres", "postgresql"];
/// One tebibyte: a larger number is probably a mistake.
const MIB_MAX: i64 = 1 << 20;

/// Checks the sections of the process and returns them as plain TOML.
pub(super) fn read(
    report: &mut Report,
    sections: &Sections<'_>,
    attributes: &AttributeTable,
) -> ProcessSettings {
    let mut read = BTreeMap::new();
    for name in PROCESS_SECTIONS {
        let Some((key, node)) = sections.single(report, name) else { continue };
        match SUPPORTED.iter().find(|(supported, _)| *supported == name) {
            Some((_, types)) => {
                if let Some(table) = section(report, key, node, types, attributes) {
                    read.insert(name.to_owned(), table);
                }
            }
            None => report_unsupported(report, key),
        }
    }
    ProcessSettings { sections: read }
}

fn report_unsupported(report: &mut Report, key: LocatedKey<'_>) {
    let message = format!("[{}] is not implemented in this version", key.text);
    let fix = "remove it: its settings would have no effect";
    report.error("unused-section", key.location, message, fix);
}

fn section(
    report: &mut Report,
    key: LocatedKey<'_>,
    node: Node<'_>,
    types: &[(&str, SettingType)],
    attributes: &AttributeTable,
) -> Option<toml::Table> {
    let known: Vec<&str> = types.iter().map(|(field, _)| *field).collect();
    let what = format!("{} section", key.text);
    let fields = TableFields::read(report, key.location, node, &what, &known)?;
    let mut table = toml::Table::new();
    for (field, setting) in types {
        let Some(value) = fields.get(field).and_then(|node| setting.read(report, node, attributes))
        else {
            continue;
        };
        table.insert((*field).to_owned(), value);
    }
    Some(table)
}

impl SettingType {
    /// The value as plain TOML, if it has this type.
    fn read(
        self,
        report: &mut Report,
        node: Node<'_>,
        attributes: &AttributeTable,
    ) -> Option<toml::Value> {
        match self {
            Self::Socket => socket(report, node).map(toml::Value::from),
            Self::Text => node.text(report, "a text in quotes").map(toml::Value::from),
            Self::Flag => node.flag(report).map(toml::Value::from),
            Self::Whole(most) => scalar::between(report, node, 1, most).map(toml::Value::from),
            Self::Duration => {
                scalar::duration(report, node)?;
                node.value.as_str().map(toml::Value::from)
            }
            Self::Percent => {
                scalar::percent_or_zero(report, node)?;
                node.value.as_str().map(toml::Value::from)
            }
            Self::Word(words) => {
                let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
                scalar::keyword(report, node, &words).map(toml::Value::from)
            }
            Self::Url(schemes) => url(report, node, schemes),
            Self::Attribute => {
                let name = node.text(report, "an attribute's name")?;
                names::check_name(report, node.location, name, "attribute").then(|| name.into())
            }
            Self::Texts => {
                let texts = node.texts(report, "a list of texts such as [\"a.example\"]")?;
                let texts = texts.into_iter().map(|(_, text)| text.into());
                Some(toml::Value::Array(texts.collect()))
            }
            Self::Keys => auth_keys::read(report, node, attributes),
        }
    }
}

fn socket<'t>(report: &mut Report, node: Node<'t>) -> Option<&'t str> {
    let wanted = "an address and a port such as \"127.0.0.1:7878\"";
    let text = node.text(report, wanted)?;
    if text.parse::<SocketAddr>().is_err() {
        let message = format!("`{}` is not an address and a port", text.escape_debug());
        report.error("bad-address", node.location, message, format!("write {wanted}"));
        return None;
    }
    Some(text)
}

/// Reads a URL. Its errors do not show the text, because it may contain a password.
fn url(report: &mut Report, node: Node<'_>, schemes: &[&str]) -> Option<toml::Value> {
    let text = node.text(report, "an address in quotes")?;
    let scheme = text.split_once(':').map_or(text, |(scheme, _)| scheme);
    let scheme = scheme.split_once('+').map_or(scheme, |(scheme, _)| scheme);
    if !schemes.contains(&scheme) {
        let fix = format!("begin it with one of: {}", schemes.join(", "));
        report.private_error("bad-url", node.location, "unsupported URL scheme", fix);
        return None;
    }
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    if authority.matches('@').count() > 1 {
        let fix = "percent-encode the password: write an `@` as %40, and a `/` as %2F";
        report.private_error("bad-url", node.location, "more than one `@` before the host", fix);
        return None;
    }
    Some(text.into())
}
