//! `[[auth.key]]`: the hashes of API keys, with their roles, namespaces and fixed attributes.
//!
//! Must not show an invalid hash in a diagnostic: it may be the API key itself, pasted by mistake.

use std::collections::BTreeSet;

use super::attribute::AttributeTable;
use super::bounds::{FIXED_MAX, KEYS_MAX};
use super::names;
use super::node::{LocatedKey, Node, TableFields};
use super::report::Report;
use super::scalar;

const FIELDS: [&str; 5] = ["name", "hash", "role", "namespace", "fix"];
/// The roles, from the fewest permissions to the most.
const ROLES: [(&str, &str); 3] = [("read", "read"), ("check", "check"), ("admin", "admin")];
/// The prefix of a hash; it names the hash function.
const HASH_PREFIX: &str = "blake3:";
/// The prefix of an API key, to recognise one that was written instead of its hash.
const KEY_PREFIX: &str = "catraca_";

/// The names and hashes of earlier keys, to report duplicates.
#[derive(Default)]
struct SeenKeys<'t> {
    names: BTreeSet<&'t str>,
    hashes: BTreeSet<[u8; 32]>,
}

/// Reads all keys, as plain TOML for the server.
pub(super) fn read(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<toml::Value> {
    let items = node.items(report, "tables such as [[auth.key]]")?;
    if let Some(extra) = items.get(KEYS_MAX) {
        let message = format!("{} keys are too many", items.len());
        let fix = format!("keep at most {KEYS_MAX}: callers of one kind may share a key");
        report.error("too-many-keys", extra.location, message, fix);
    }
    let mut seen = SeenKeys::default();
    let bounded = items.into_iter().take(KEYS_MAX);
    let keys: Vec<_> = bounded.map(|item| key(report, item, attributes, &mut seen)).collect();
    let keys: Option<Vec<toml::Value>> = keys.into_iter().map(|key| Some(key?.into())).collect();
    keys.map(toml::Value::Array)
}

fn key<'t>(
    report: &mut Report,
    item: Node<'t>,
    attributes: &AttributeTable,
    seen: &mut SeenKeys<'t>,
) -> Option<toml::Table> {
    let fields = TableFields::read_item(report, item, "key", &FIELDS)?;
    let name = fields.require(report, "name", "\"ci\"");
    let name = name.and_then(|node| key_name(report, node, seen));
    let hash = fields.require(report, "hash", "what `catraca keygen` prints");
    let hash = hash.and_then(|node| key_hash(report, node, seen));
    let role = fields.require(report, "role", "\"read\", \"check\" or \"admin\"");
    let role = role.and_then(|node| scalar::keyword(report, node, &ROLES));
    let namespace = fields.parse("namespace", |node| scalar::name(report, node, "namespace"));
    let fix = fields.parse("fix", |node| fixed_attributes(report, node, attributes)).optional();
    let mut table = toml::Table::new();
    for (field, text) in [("name", name?), ("hash", hash?), ("role", role?)] {
        table.insert(field.to_owned(), text.into());
    }
    if let Some(namespace) = namespace.optional()? {
        table.insert("namespace".to_owned(), (&*namespace).into());
    }
    if let Some(fix) = fix? {
        table.insert("fix".to_owned(), fix.into());
    }
    Some(table)
}

fn key_name<'t>(report: &mut Report, node: Node<'t>, seen: &mut SeenKeys<'t>) -> Option<&'t str> {
    let text = node.text(report, "the name of a key")?;
    if !names::check_name(report, node.location, text, "key") {
        return None;
    }
    if !seen.names.insert(text) {
        let message = format!("another key is called `{text}` too");
        let fix = "give each key a name of its own: the audit log identifies callers by it";
        report.error("duplicate-name", node.location, message, fix);
        return None;
    }
    Some(text)
}

fn key_hash<'t>(report: &mut Report, node: Node<'t>, seen: &mut SeenKeys<'t>) -> Option<&'t str> {
    let text = node.text(report, "the hash that `catraca keygen` prints")?;
    let digits = text.strip_prefix(HASH_PREFIX);
    let Some(hash) = digits.and_then(|digits| blake3::Hash::from_hex(digits).ok()) else {
        let (message, fix) = match text.starts_with(KEY_PREFIX) {
            true => ("this is an API key, and must be its hash", "make another key: "),
            false => ("this is not the hash of a key", ""),
        };
        let fix = format!("{fix}write what `catraca keygen` prints, `{HASH_PREFIX}` and 64 digits");
        report.private_error("bad-hash", node.location, message, fix);
        return None;
    };
    if !seen.hashes.insert(*hash.as_bytes()) {
        let fix = "make a key for each caller with `catraca keygen`";
        report.error("duplicate-name", node.location, "another key has the same hash", fix);
        return None;
    }
    Some(text)
}

/// The attributes whose values the key sets, instead of those that its caller sends.
fn fixed_attributes(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<toml::Table> {
    let entries = node.entries(report, "a table such as { tenant = \"t1\" }")?;
    if let Some((extra, _)) = entries.get(FIXED_MAX) {
        let message = format!("a key may fix {FIXED_MAX} attributes");
        let fix = "fix one, and state the others as facts about it";
        report.error("too-many-parts", extra.location, message, fix);
        return None;
    }
    let fixed =
        entries.into_iter().map(|(key, node)| fixed_attribute(report, key, node, attributes));
    let fixed: Vec<_> = fixed.collect();
    fixed.into_iter().collect()
}

fn fixed_attribute(
    report: &mut Report,
    key: LocatedKey<'_>,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<(String, toml::Value)> {
    let text = node.text(report, "the value of the attribute");
    if let Some(source) = attributes.facts.source(key.text) {
        let message = format!("`{}` comes from `{source}` already", key.text);
        let fix = format!("a name has one source: fix `{source}` instead");
        report.error("two-sources", key.location, message, fix);
        return None;
    }
    let is_valid_name = names::check_key(report, key, "attribute");
    let text = text?;
    // Only checked here: `select` normalises the value again with each request.
    attributes.normalise_value(report, key.text, node.location, text).filter(|_| is_valid_name)?;
    Some((key.text.to_owned(), text.into()))
}
