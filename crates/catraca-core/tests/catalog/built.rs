//! Catalogs that are built in code are equal to those of the guide, and have the same errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use catraca_core::catalog::Catalog;
use catraca_core::catalog::build::{CatalogBuilder, RouteBuilder};
use catraca_core::catalog::read::CATALOG;
use catraca_core::located::{TableSchema, ValueSchema};

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

        [[route]]
        match    = "/chat"
        gate     = "a"
        cost     = [{ from = "body:max_tokens", default = 1024 }, { bytes_per_unit = 4 }, 1]
        upstream = "http://127.0.0.1:9000"

        [attribute.key]
        kind = "pix_key"
"#;

#[test]
fn fields_without_an_example_can_be_built_too() {
    assert_equal("others", OTHER_FIELDS, &other_fields());
}

/// The names of all fields of a table, and of the tables in it.
fn field_names(schema: &TableSchema, names: &mut BTreeSet<&'static str>) {
    for field in schema.fields {
        names.insert(field.name);
        fields_of_value(&field.value, names);
    }
}

fn fields_of_value(value: &ValueSchema, names: &mut BTreeSet<&'static str>) {
    match value {
        ValueSchema::Table(table) => field_names(table, names),
        ValueSchema::Map(of) | ValueSchema::List { of, .. } => fields_of_value(of, names),
        ValueSchema::AnyOf(values) => values.iter().for_each(|of| fields_of_value(of, names)),
        _ => {}
    }
}

#[test]
fn the_builder_has_every_field_of_the_schema() {
    let mut names = BTreeSet::new();
    field_names(&CATALOG, &mut names);
    assert!(names.len() > 60, "{names:?}");
    // A built catalog has no other files.
    names.remove("include");
    let mut texts: String = built_examples().values().map(CatalogBuilder::to_toml).collect();
    texts.push_str(&other_fields().to_toml());
    let is_written = |name: &str| {
        let forms =
            [format!("{name} = "), format!("[{name}."), format!("[{name}]"), format!(".{name}.")];
        forms.iter().any(|form| texts.contains(form))
    };
    let missing: Vec<_> = names.into_iter().filter(|name| !is_written(name)).collect();
    assert_eq!(missing, [""; 0]);
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
