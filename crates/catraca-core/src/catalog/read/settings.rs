//! The sections that belong to the process: checked here, obeyed by whoever owns them.
//!
//! A section that nothing obeys is refused, because a catalog that names keys or a shared store and
//! gets neither is worse than none. Whoever starts to obey one adds its fields to `OBEYED`.
//! Must not act on what it reads.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::attribute::Known;
use super::keys;
use super::names;
use super::node::{Fields, Key, Node};
use super::report::Report;
use super::scalar;
use super::section::{SETTINGS, Sections};
use crate::catalog::Settings;

/// What a field holds.
#[derive(Clone, Copy)]
enum Holds {
    /// An address and a port.
    Socket,
    /// Any text.
    Text,
    /// True or false.
    Flag,
    /// A whole number from one to this.
    Whole(i64),
    /// A duration.
    Duration,
    /// A share, which may be none.
    Percent,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An address that begins with one of these schemes, or is one of these words.
    Url(&'static [&'static str]),
    /// The name of an attribute.
    Attribute,
    /// A list of texts.
    Texts,
    /// Tables of callers' keys.
    Keys,
}

/// The sections that something obeys, with their fields.
const OBEYED: [(&str, &[(&str, Holds)]); 4] =
    [("server", &SERVER), ("auth", &AUTH), ("records", &RECORDS), ("store", &STORE)];

const SERVER: [(&str, Holds); 18] = [
    ("listen", Holds::Socket),
    ("hosts", Holds::Texts),
    ("log", Holds::Text),
    ("log_level", Holds::Word(&["info", "debug"])),
    ("x_ratelimit", Holds::Flag),
    ("denial", Holds::Word(&DENIALS)),
    ("client_address", Holds::Text),
    ("connections_max", Holds::Whole(1_000_000)),
    ("connections_per_address", Holds::Whole(1_000_000)),
    ("head_timeout", Holds::Duration),
    ("body_timeout", Holds::Duration),
    ("answer_timeout", Holds::Duration),
    ("idle_timeout", Holds::Duration),
    ("stop_delay", Holds::Duration),
    ("tls_cert", Holds::Text),
    ("tls_key", Holds::Text),
    ("traces", Holds::Text),
    ("trace_share", Holds::Percent),
];

/// What a gateway's denial may look like.
const DENIALS: [&str; 6] = ["problem", "problem_xml", "message", "error", "conflict", "empty"];

const AUTH: [(&str, Holds); 3] =
    [("key", Holds::Keys), ("secret_file", Holds::Text), ("metrics", Holds::Text)];

const RECORDS: [(&str, Holds); 6] = [
    ("url", Holds::Url(&["none", "sqlite", "postgres", "postgresql"])),
    ("password_file", Holds::Text),
    ("keep_history", Holds::Duration),
    ("keep_audit", Holds::Duration),
    ("keep_counts", Holds::Duration),
    ("purge_interval", Holds::Duration),
];

const STORE: [(&str, Holds); 14] = [
    ("url", Holds::Url(&STORES)),
    ("nodes", Holds::Whole(1_000)),
    ("deny_cache", Holds::Flag),
    ("deadline", Holds::Duration),
    ("password_file", Holds::Text),
    ("sentinel_password_file", Holds::Text),
    ("ca_file", Holds::Text),
    ("shard_by", Holds::Attribute),
    ("snapshot", Holds::Text),
    ("snapshot_interval", Holds::Duration),
    ("counter_mib", Holds::Whole(MIB_MAX)),
    ("block_mib", Holds::Whole(MIB_MAX)),
    ("reference_mib", Holds::Whole(MIB_MAX)),
    ("mark_mib", Holds::Whole(MIB_MAX)),
];
/// What the address of a store begins with; what comes after a `+` is its owner's to read.
const STORES: [&str; 8] =
    ["memory", "redis", "rediss", "valkey", "valkeys", "unix", "postgres", "postgresql"];
/// One tebibyte: more is a slip of the hand.
const MIB_MAX: i64 = 1 << 20;

/// Keeps the sections of the process as they were read.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>, known: &Known) -> Settings {
    let mut kept = BTreeMap::new();
    for name in SETTINGS {
        let Some(entry) = sections.single(report, name) else { continue };
        match OBEYED.iter().find(|(obeyed, _)| *obeyed == name) {
            Some((_, fields)) => {
                if let Some(table) = section(report, entry, known, (name, fields)) {
                    kept.insert(name.to_owned(), table);
                }
            }
            None => unused(report, entry.0),
        }
    }
    Settings { sections: kept }
}

fn unused(report: &mut Report, key: Key<'_>) {
    let message = format!("nothing obeys [{}] in this version", key.text);
    let fix = "remove it: what it asks for would silently not happen";
    report.error("unused-section", key.place, message, fix);
}

fn section(
    report: &mut Report,
    (key, node): (Key<'_>, Node<'_>),
    known: &Known,
    (name, holds): (&str, &[(&str, Holds)]),
) -> Option<toml::Table> {
    let fields: Vec<&str> = holds.iter().map(|(field, _)| *field).collect();
    let what = format!("{name} section");
    let read = Fields::read(report, (key.place, node), &what, &fields)?;
    let mut table = toml::Table::new();
    for (field, holds) in holds {
        let Some(value) = read.get(field).and_then(|node| holds.read(report, node, known)) else {
            continue;
        };
        table.insert((*field).to_owned(), value);
    }
    Some(table)
}

impl Holds {
    /// The value without its place, if it is of this kind.
    fn read(self, report: &mut Report, node: Node<'_>, known: &Known) -> Option<toml::Value> {
        match self {
            Self::Socket => socket(report, node).map(toml::Value::from),
            Self::Text => node.text(report, "a text in quotes").map(toml::Value::from),
            Self::Flag => node.flag(report).map(toml::Value::from),
            Self::Whole(most) => scalar::between(report, node, (1, most)).map(toml::Value::from),
            Self::Duration => {
                scalar::duration(report, node)?;
                node.value.as_str().map(toml::Value::from)
            }
            Self::Percent => {
                scalar::share(report, node)?;
                node.value.as_str().map(toml::Value::from)
            }
            Self::Word(words) => {
                let words: Vec<(&str, &str)> = words.iter().map(|word| (*word, *word)).collect();
                scalar::word(report, node, &words).map(toml::Value::from)
            }
            Self::Url(schemes) => url(report, node, schemes),
            Self::Attribute => {
                let name = node.text(report, "an attribute's name")?;
                names::check_at(report, node.place, name, "attribute").then(|| name.into())
            }
            Self::Texts => {
                let texts = node.texts(report, "a list of texts such as [\"a.example\"]")?;
                let texts = texts.into_iter().map(|(_, text)| text.into());
                Some(toml::Value::Array(texts.collect()))
            }
            Self::Keys => keys::read(report, node, known),
        }
    }
}

fn socket<'t>(report: &mut Report, node: Node<'t>) -> Option<&'t str> {
    let wanted = "an address and a port such as \"127.0.0.1:7878\"";
    let text = node.text(report, wanted)?;
    if text.parse::<SocketAddr>().is_err() {
        let message = format!("`{}` is not an address and a port", text.escape_debug());
        report.error("bad-address", node.place, message, format!("write {wanted}"));
        return None;
    }
    Some(text)
}

/// It may hold a password, and is not shown.
fn url(report: &mut Report, node: Node<'_>, schemes: &[&str]) -> Option<toml::Value> {
    let text = node.text(report, "an address in quotes")?;
    let scheme = text.split_once(':').map_or(text, |(scheme, _)| scheme);
    let scheme = scheme.split_once('+').map_or(scheme, |(scheme, _)| scheme);
    if !schemes.contains(&scheme) {
        let fix = format!("begin it with one of: {}", schemes.join(", "));
        report.private_error("bad-url", node.place, "nothing here is reached by this", fix);
        return None;
    }
    let authority = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    if authority.matches('@').count() > 1 {
        let fix = "write an `@` of a password as %40, and a `/` as %2F";
        report.private_error("bad-url", node.place, "where does its host begin?", fix);
        return None;
    }
    Some(text.into())
}
