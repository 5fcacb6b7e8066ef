//! Catalogs that are built in code are equal to those of the guide, and have the same errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use catraca_core::catalog::Catalog;
use catraca_core::catalog::build::{CatalogBuilder, RouteBuilder};
use catraca_core::catalog::read::CATALOG;
use catraca_core::located::{TableSchema, ValueSchema};
use toml::de::{DeTable, DeValue};

use super::built_examples::{MINUTE, built_examples, other_fields, policy};

/// The examples of the guide's page that configure decisions, by the name of their file.
fn guide_examples() -> BTreeMap<String, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/catalog.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml,file=").skip(1);
    let examples = blocks.map(|block| {
        let (name, text) = block.split_once('\n').unwrap();
        (name.to_owned(), text.split("```").next().unwrap().to_owned())
    });
    let of_process = ["server.toml", "kept.toml", "early.toml", "tokens.toml"];
    examples.filter(|(name, _)| !of_process.contains(&&**name)).collect()
}

/// Everything of a catalog except the revision, which is a hash of the text.
fn content(catalog: &Catalog) -> String {
    let policies = catalog.policies.iter().map(|policy| &policy.name);
    let names = catalog.gate_names.iter().chain(policies);
    let gates: BTreeMap<_, _> = names.map(|name| (name, &catalog.gates[name])).collect();
    let Catalog { policies, gate_names, default, denies_unlisted, attributes, facts, .. } = catalog;
    let Catalog { allowlist, blocklist, routes, network, language, locks, settle, .. } = catalog;
    let decisions = format!("{policies:#?}{gates:#?}{gate_names:?}{default:?}{denies_unlisted}");
    let callers = format!("{attributes:#?}{facts:#?}{allowlist:#?}{blocklist:#?}");
    let rest = format!("{routes:#?}{network:#?}{language:?}{locks:#?}{settle:?}");
    format!("{decisions}{callers}{rest}{:?}{:?}", catalog.rule_cost, catalog.shard_by)
}

fn assert_equal(name: &str, written: &str, built: &CatalogBuilder) {
    let written = Catalog::parse(written).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = built.to_toml();
    let built = built.build().unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    assert_eq!(content(&built), content(&written), "{name}: {text}");
    assert_eq!(built.revision, Catalog::parse(&text).unwrap().revision, "{name}");
}

#[test]
fn every_example_of_the_guide_can_be_built() {
    let mut written = guide_examples();
    let built = built_examples();
    let shared = written.remove("shared.toml").unwrap();
    let shop = written.get_mut("shop.toml").unwrap();
    // A program has one catalog, so the included file is joined to the other.
    *shop = format!("{}{shared}", shop.replace("include  = [\"shared.toml\"]\n", ""));
    assert_eq!(written.keys().map(String::as_str).collect::<Vec<_>>(), {
        built.keys().copied().collect::<Vec<_>>()
    });
    for (name, text) in &written {
        assert_equal(name, text, &built[&**name]);
    }
}

/// The fields that no example of the guide has.
const OTHER_FIELDS: &str = r#"
        default  = "a"
        unlisted = "deny"

        [store]
        shard_by = "tenant"

        [locks]
        durability = "fsync"
        replicas   = 1
        slot_max   = "48h"
        wait_max   = "10s"

        [locks.kind.payment]
        ttl            = "40s"
        ttl_max        = "10m"
        hold_max       = "2h"
        version_policy = "monotonic"
        failover_grace = false

        [policy.a]
        by         = ["tenant"]
        fixed      = "5 per 1500ms"
        block      = "forever"
        cost       = 2
        on_failure = "closed"
        on_missing = "deny"
        message    = "\"x\" \\ \t {retry_after}"
        tier       = [{ when = { tenant = "t" }, fixed = "9 per 1h", cost = { default = 0 } }]

        [policy.uploads]
        by       = ["tenant"]
        inflight = 1
        tier     = [{ when = { tenant = "t" }, inflight = 3 }]

        [policy.paid]
        by     = ["tenant"]
        bucket = { size = 100, refill = "1 per 1m" }
        cost   = { "200" = 2, default = 0 }
        [[policy.paid.tier]]
        when   = { tenant = "t" }
        bucket = { size = 1000, refill = "1 per 1m" }
        cost   = { "200" = 1, default = 0 }
        credit = { payment = { amount = 1, on = ["200"] } }

        [policy.tokens]
        by     = ["tenant"]
        bucket = { size = 100, refill = "1 per 1m" }
        [policy.tokens.cost]
        from      = ["body.a|body.b", "body.c"]
        weight_by = "kind"
        weights   = { x = 2, default = 1 }
        [policy.answers]
        by = ["tenant"]
        [[policy.answers.ban]]
        when           = "status == 403"
        for            = "1h"
        answer_status  = 422
        answer_message = "Rejected."

        [[allowlist]]
        attribute = "tenant"
        value     = "t"
        namespace = "shop"
        until     = "2027-01-01T00:00:00Z"

        [[blocklist]]
        range     = "192.0.2.0/24"
        namespace = "shop"
        reason    = "$${X} is no variable"

        [[route]]
        match    = "/"
        gate     = "a"
        upstream = ["http://127.0.0.1:9000", "http://127.0.0.1:9001"]
        ref      = "cookie:id"
        cost     = "body:max_tokens"

        [[route]]
        match    = "/entries/*"
        gate     = { by = "key_type", map = { CPF = "a", EVP = "a" }, absent = "a", default = "a" }
        set      = { key = "path:2" }
        upstream = "http://127.0.0.1:9000"
        cost     = { bytes_per_unit = 4 }

        [[route]]
        match = "/list"
        gate  = "a"
        cost  = [10]
        lists = false

        [[route]]
        match    = "/chat"
        gate     = "a"
        cost     = [{ from = "body:a|body:b", default = 9, largest = true, times = "body:n" }]
        require  = { "body:stream" = "body:stream_options.include_usage" }
        upstream = "http://127.0.0.1:9000"

        [attribute.key]
        kind = "pix_key"
"#;

#[test]
fn fields_without_an_example_can_be_built_too() {
    assert_equal("others", OTHER_FIELDS, &other_fields());
}

/// Fields as the name of their table and their own name.
type Fields = BTreeSet<(&'static str, &'static str)>;

/// The fields of a table, and of the tables in it.
fn declared_fields(schema: &TableSchema, fields: &mut Fields) {
    for field in schema.fields {
        fields.insert((schema.name, field.name));
        declared_in_value(&field.value, fields);
    }
}

fn declared_in_value(value: &ValueSchema, fields: &mut Fields) {
    match value {
        ValueSchema::Table(table) => declared_fields(table, fields),
        ValueSchema::Map(of) | ValueSchema::List { of, .. } => declared_in_value(of, fields),
        ValueSchema::AnyOf(values) => values.iter().for_each(|of| declared_in_value(of, fields)),
        _ => {}
    }
}

/// The fields that a table has, and the tables in it.
fn written_fields(schema: &TableSchema, table: &DeTable<'_>, fields: &mut Fields) {
    for (name, value) in table {
        // Of the kinds of tables that a field accepts, this one is another.
        let Some(field) = schema.field(name.get_ref()) else { continue };
        fields.insert((schema.name, field.name));
        written_in_value(&field.value, value.get_ref(), fields);
    }
}

fn written_in_value(schema: &ValueSchema, value: &DeValue<'_>, fields: &mut Fields) {
    match (schema, value) {
        (ValueSchema::Table(schema), DeValue::Table(table)) => {
            written_fields(schema, table, fields);
        }
        (ValueSchema::Map(of), DeValue::Table(table)) => {
            table.values().for_each(|value| written_in_value(of, value.get_ref(), fields));
        }
        (ValueSchema::List { of, .. }, DeValue::Array(items)) => {
            items.iter().for_each(|item| written_in_value(of, item.get_ref(), fields));
        }
        (ValueSchema::AnyOf(schemas), value) => {
            schemas.iter().for_each(|schema| written_in_value(schema, value, fields));
        }
        _ => {}
    }
}

#[test]
fn the_builder_has_every_field_of_each_table_of_the_schema() {
    let mut declared = Fields::new();
    declared_fields(&CATALOG, &mut declared);
    assert!(declared.len() > 80, "{declared:?}");
    // A built catalog has no other files.
    declared.remove(&(CATALOG.name, "include"));
    let mut written = Fields::new();
    for catalog in built_examples().values().chain([&other_fields()]) {
        let text = catalog.to_toml();
        written_fields(&CATALOG, DeTable::parse(&text).unwrap().get_ref(), &mut written);
    }
    let missing: Vec<_> = declared.difference(&written).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_mistake_names_the_policy_and_the_field() {
    let built = Catalog::builder()
        .policy(policy("api").by(["tenant"]).window(20_000, MINUTE))
        .policy(policy("login").by(["ip"]).window(5, MINUTE).otherwise("apii"))
        .policy(policy("bad name").by(["ip"]).window(5, MINUTE))
        .route(RouteBuilder::new("/x", "logn"));
    let error = built.build().unwrap_err();
    let places: Vec<_> = error
        .mistakes
        .iter()
        .map(|mistake| (&*mistake.section, mistake.field.as_deref(), mistake.code))
        .collect();
    assert_eq!(
        places,
        [
            ("policy `api`", Some("window"), "window-too-large"),
            ("policy `login`", Some("otherwise"), "unknown-policy"),
            ("policy `bad name`", None, "bad-name"),
            ("route 1", Some("gate"), "unknown-gate"),
        ]
    );
    let shown = error.to_string();
    assert!(shown.contains("policy `login`, `otherwise`: "), "{shown}");
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains("`api`")), "{shown}");
}
