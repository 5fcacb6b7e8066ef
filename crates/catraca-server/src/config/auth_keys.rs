//! `[[auth.key]]`: the hashes of API keys, with their roles, namespaces and fixed attributes.
//!
//! Must not show an invalid hash in a diagnostic: it may be the API key itself, pasted by mistake.

use std::collections::{BTreeMap, BTreeSet};

use catraca::core::catalog::read::AttributeTable;
use catraca::core::located::names::NAME_PATTERN;
use catraca::core::located::{
    FieldSchema, LocatedKey, Node, Report, TableFields, TableSchema, ValueSchema, names, scalar,
    schema,
};

use super::setting_kind::{SettingContext, SettingKind};
use crate::auth::role::{ROLES, Role};
use crate::auth::{ApiKey, hash};

/// API keys of one catalog.
const KEYS_MAX: usize = 10_000;
/// Attributes that one API key fixes.
const FIXED_MAX: usize = 8;

const NAME: ValueSchema = ValueSchema::Pattern { pattern: NAME_PATTERN, words: "a name" };

/// The fields of an API key.
static KEY: TableSchema = TableSchema {
    name: "key",
    fields: &[
        FieldSchema::new("name", NAME, "its name in the audit log").require(),
        FieldSchema::new(
            "hash",
            ValueSchema::Pattern {
                pattern: "^blake3:[0-9a-fA-F]{64}$",
                words: "what `catraca keygen` prints",
            },
            "the hash of the key",
        )
        .require(),
        FieldSchema::new(
            "role",
            ValueSchema::Word(|| schema::words(&ROLES)),
            "what the key [may do](auth.md)",
        )
        .require(),
        FieldSchema::new("namespace", NAME, "the only namespace of the key"),
        FieldSchema::new(
            "fix",
            ValueSchema::Map(&ValueSchema::Text),
            "attributes whose values the key sets, instead of those that its caller sends",
        ),
    ],
};

/// The list of API keys.
pub struct ApiKeys;

impl SettingKind for ApiKeys {
    type Value = Vec<ApiKey>;
    const SCHEMA: ValueSchema = ValueSchema::List { of: &ValueSchema::Table(&KEY), most: KEYS_MAX };

    fn read(
        context: &SettingContext<'_>,
        report: &mut Report,
        node: Node<'_>,
    ) -> Option<Vec<ApiKey>> {
        let items = node.items(report, "tables such as [[auth.key]]")?;
        if let Some(extra) = items.get(KEYS_MAX) {
            let message = format!("{} keys are too many", items.len());
            let fix = format!("keep at most {KEYS_MAX}: callers of one kind may share a key");
            report.error("too-many-keys", extra.location, message, fix);
        }
        let mut seen = SeenKeys::default();
        let bounded = items.into_iter().take(KEYS_MAX);
        let keys: Vec<_> =
            bounded.map(|item| key(report, item, context.attributes, &mut seen)).collect();
        keys.into_iter().collect()
    }
}

/// The API keys that differ, by name; never a hash.
pub(super) fn key_changes(before: &[ApiKey], after: &[ApiKey]) -> Vec<String> {
    let by_name = |keys: &'_ [ApiKey]| -> BTreeMap<String, ApiKey> {
        keys.iter().map(|key| (key.name.clone(), key.clone())).collect()
    };
    let before = by_name(before);
    let after = by_name(after);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| match (before.get(name), after.get(name)) {
        (Some(_), None) => Some(format!("[auth] key {name} removed")),
        (None, Some(key)) => Some(format!("[auth] key {name} added: role {}", key.role.as_str())),
        (Some(old), Some(new)) if old != new => {
            Some(format!("[auth] key {name} changed: {}", changed_fields(old, new)))
        }
        _ => None,
    };
    names.into_iter().filter_map(change).collect()
}

/// The fields that differ. Fixed attributes may be personal data, so only their names are shown.
fn changed_fields(before: &ApiKey, after: &ApiKey) -> String {
    let ApiKey { name: _, hash, role, namespace, fix } = before;
    let mut fields = Vec::new();
    if *hash != after.hash {
        fields.push("hash".to_owned());
    }
    if *role != after.role {
        fields.push(format!("role {} -> {}", role.as_str(), after.role.as_str()));
    }
    if *namespace != after.namespace {
        let text = |namespace: &Option<String>| namespace.clone().unwrap_or("none".to_owned());
        fields.push(format!("namespace {} -> {}", text(namespace), text(&after.namespace)));
    }
    if *fix != after.fix {
        let all = fix.iter().chain(&after.fix);
        let differs = |pair: &&(String, String)| !(fix.contains(pair) && after.fix.contains(pair));
        let names: BTreeSet<&str> = all.filter(differs).map(|(name, _)| &**name).collect();
        fields.extend(names.into_iter().map(|name| format!("fix {name}")));
    }
    fields.join(", ")
}

/// The names and hashes of earlier keys, to report duplicates.
#[derive(Default)]
struct SeenKeys<'t> {
    names: BTreeSet<&'t str>,
    hashes: BTreeSet<[u8; 32]>,
}

fn key<'t>(
    report: &mut Report,
    item: Node<'t>,
    attributes: &AttributeTable,
    seen: &mut SeenKeys<'t>,
) -> Option<ApiKey> {
    let fields = TableFields::read_item(report, item, &KEY)?;
    let name = fields.require(report, "name", "\"ci\"");
    let name = name.and_then(|node| key_name(report, node, seen));
    let hash = fields.require(report, "hash", "what `catraca keygen` prints");
    let hash = hash.and_then(|node| key_hash(report, node, seen));
    let role = fields.require(report, "role", "\"read\", \"check\", \"support\" or \"admin\"");
    let role: Option<Role> = role.and_then(|node| scalar::keyword(report, node, &ROLES));
    let namespace = fields.parse("namespace", |node| scalar::name(report, node, "namespace"));
    let fix = fields.parse("fix", |node| fixed_attributes(report, node, attributes));
    Some(ApiKey {
        name: name?.to_owned(),
        hash: hash?,
        role: role?,
        namespace: namespace.optional()?.map(|name| name.to_string()),
        fix: fix.or(Vec::new())?,
    })
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

fn key_hash(report: &mut Report, node: Node<'_>, seen: &mut SeenKeys<'_>) -> Option<blake3::Hash> {
    let text = node.text(report, "the hash that `catraca keygen` prints")?;
    let Some(hash) = hash::read(text) else {
        let (message, fix) = match text.starts_with(hash::KEY_PREFIX) {
            true => ("this is an API key, and must be its hash", "make another key: "),
            false => ("this is not the hash of a key", ""),
        };
        let prefix = hash::HASH_PREFIX;
        let fix = format!("{fix}write what `catraca keygen` prints, `{prefix}` and 64 digits");
        report.private_error("bad-hash", node.location, message, fix);
        return None;
    };
    if !seen.hashes.insert(*hash.as_bytes()) {
        let fix = "make a key for each caller with `catraca keygen`";
        report.error("duplicate-name", node.location, "another key has the same hash", fix);
        return None;
    }
    Some(hash)
}

/// The attributes whose values the key sets, instead of those that its caller sends.
fn fixed_attributes(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<Vec<(String, String)>> {
    let entries = node.entries(report, "a table such as { tenant = \"t1\" }")?;
    if let Some((extra, _)) = entries.get(FIXED_MAX) {
        let message = format!("a key may fix {FIXED_MAX} attributes");
        let fix = "fix one, and state the others as facts about it";
        report.error("too-many-parts", extra.location, message, fix);
        return None;
    }
    let fixed =
        entries.into_iter().map(|(key, node)| fixed_attribute(report, key, node, attributes));
    let mut fixed = fixed.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()?;
    fixed.sort();
    Some(fixed)
}

fn fixed_attribute(
    report: &mut Report,
    key: LocatedKey<'_>,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<(String, String)> {
    let text = node.text(report, "the value of the attribute");
    if let Some(source) = attributes.source(key.text) {
        let message = format!("`{}` comes from `{source}` already", key.text);
        let fix = format!("a name has one source: fix `{source}` instead");
        report.error("two-sources", key.location, message, fix);
        return None;
    }
    let is_valid_name = names::check_key(report, key, "attribute");
    let text = text?;
    // Only checked here: `select` normalises the value again with each request.
    attributes.normalise_value(report, key.text, node.location, text).filter(|_| is_valid_name)?;
    Some((key.text.to_owned(), text.to_owned()))
}
