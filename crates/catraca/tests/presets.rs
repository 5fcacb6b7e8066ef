//! What the shipped catalogs hold, counted and never typed.

use std::collections::BTreeMap;
use std::path::Path;

use catraca::{Check, Engine};

fn preset(name: &str) -> catraca::Catalog {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets").join(name);
    catraca::load(&path.join("catalog.toml")).expect("a preset").catalog
}

/// covers: B-48, 003-09
#[test]
fn the_listed_policies_ship_in_their_groups_and_any_other_name_falls_to_the_default() {
    let catalog = preset("checkout");
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for policy in &catalog.policies {
        *groups.entry(policy.group.as_deref().expect("a group")).or_default() += 1;
    }
    assert_eq!(groups.values().sum::<usize>(), 21, "{groups:?}");
    let names: Vec<_> = groups.into_keys().collect();
    assert_eq!(names, ["authentication", "others", "payments", "privacy", "webhooks"]);

    let engine = Engine::new(catalog);
    let ask =
        |gate: &str| engine.check(&Check::new(gate, [("ip", "198.51.100.7")])).expect("a decision");
    assert_eq!(ask("create_order").policy.as_deref(), Some("create_order"));
    assert_eq!(ask("no_such_action").policy.as_deref(), Some("default"));
    assert_eq!(engine.unlisted(), ["no_such_action"]);
}
