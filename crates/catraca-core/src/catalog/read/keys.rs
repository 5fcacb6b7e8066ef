//! `[[auth.key]]`: the hashes of callers' keys, and what each may do.
//!
//! A key that means something else than it says is a hole, so every mistake is found here, before
//! a server starts. Must not let anybody in, nor show what stands in the place of a hash: it may be
//! the key itself.

use std::collections::BTreeSet;

use super::attribute::Known;
use super::bounds::{FIXED_MAX, KEYS_MAX};
use super::names;
use super::node::{Fields, Key, Node};
use super::report::Report;
use super::scalar;

const FIELDS: [&str; 5] = ["name", "hash", "role", "namespace", "fix"];
/// What a key may do, from least to most.
const ROLES: [(&str, &str); 3] = [("read", "read"), ("check", "check"), ("admin", "admin")];
/// What a written hash begins with.
const FUNCTION: &str = "blake3:";
/// What a key begins with.
const KEY_PREFIX: &str = "catraca_";

/// What earlier keys already have.
#[derive(Default)]
struct Taken<'t> {
    names: BTreeSet<&'t str>,
    hashes: BTreeSet<[u8; 32]>,
}

/// Reads all keys, without their places.
pub(super) fn read(report: &mut Report, node: Node<'_>, known: &Known) -> Option<toml::Value> {
    let items = node.items(report, "tables such as [[auth.key]]")?;
    if let Some(extra) = items.get(KEYS_MAX) {
        let message = format!("{} keys are too many", items.len());
        let fix = format!("keep at most {KEYS_MAX}: callers of one kind may share a key");
        report.error("too-many-keys", extra.place, message, fix);
    }
    let mut taken = Taken::default();
    let kept = items.into_iter().take(KEYS_MAX);
    let keys: Vec<_> = kept.map(|item| key(report, item, known, &mut taken)).collect();
    let keys: Option<Vec<toml::Value>> = keys.into_iter().map(|key| Some(key?.into())).collect();
    keys.map(toml::Value::Array)
}

fn key<'t>(
    report: &mut Report,
    item: Node<'t>,
    known: &Known,
    taken: &mut Taken<'t>,
) -> Option<toml::Table> {
    let fields = Fields::item(report, item, "key", &FIELDS)?;
    let name = fields.need(report, "name", "\"ci\"");
    let name = name.and_then(|node| own_name(report, node, taken));
    let hash = fields.need(report, "hash", "what `catraca keygen` prints");
    let hash = hash.and_then(|node| hash_of(report, node, taken));
    let role = fields.need(report, "role", "\"read\", \"check\" or \"admin\"");
    let role = role.and_then(|node| scalar::word(report, node, &ROLES));
    let namespace = fields.given("namespace", |node| scalar::name(report, node, "namespace"));
    let fix = fields.given("fix", |node| fixed(report, node, known)).optional();
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

fn own_name<'t>(report: &mut Report, node: Node<'t>, taken: &mut Taken<'t>) -> Option<&'t str> {
    let text = node.text(report, "the name of a key")?;
    if !names::check_at(report, node.place, text, "key") {
        return None;
    }
    if !taken.names.insert(text) {
        let message = format!("another key is called `{text}` too");
        let fix = "give each key a name of its own: the audit tells callers apart by it";
        report.error("duplicate-name", node.place, message, fix);
        return None;
    }
    Some(text)
}

fn hash_of<'t>(report: &mut Report, node: Node<'t>, taken: &mut Taken<'t>) -> Option<&'t str> {
    let text = node.text(report, "the hash that `catraca keygen` prints")?;
    let digits = text.strip_prefix(FUNCTION);
    let Some(hash) = digits.and_then(|digits| blake3::Hash::from_hex(digits).ok()) else {
        let (message, fix) = match text.starts_with(KEY_PREFIX) {
            true => ("this is a key, and only its hash may stand here", "make another key: "),
            false => ("this is not the hash of a key", ""),
        };
        let fix = format!("{fix}write what `catraca keygen` prints, `{FUNCTION}` and 64 digits");
        report.private_error("bad-hash", node.place, message, fix);
        return None;
    };
    if !taken.hashes.insert(*hash.as_bytes()) {
        let fix = "make a key for each caller with `catraca keygen`";
        report.error("duplicate-name", node.place, "another key has the same hash", fix);
        return None;
    }
    Some(text)
}

/// The attributes that are this caller's, whatever they say.
fn fixed(report: &mut Report, node: Node<'_>, known: &Known) -> Option<toml::Table> {
    let entries = node.entries(report, "a table such as { tenant = \"t1\" }")?;
    if let Some((extra, _)) = entries.get(FIXED_MAX) {
        let message = format!("a key may fix {FIXED_MAX} attributes");
        let fix = "fix one, and state the others as facts about it";
        report.error("too-many-parts", extra.place, message, fix);
        return None;
    }
    let read = entries.into_iter().map(|entry| fixed_one(report, entry, known));
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

fn fixed_one(
    report: &mut Report,
    (key, node): (Key<'_>, Node<'_>),
    known: &Known,
) -> Option<(String, toml::Value)> {
    let text = node.text(report, "the value of the attribute");
    if let Some(source) = known.facts.source(key.text) {
        let message = format!("`{}` comes from `{source}` already", key.text);
        let fix = format!("a name has one source: fix `{source}` instead");
        report.error("two-sources", key.place, message, fix);
        return None;
    }
    let named = names::check(report, key, "attribute");
    let text = text?;
    known.normal(report, key.text, (node.place, text)).filter(|_| named)?;
    Some((key.text.to_owned(), text.into()))
}
