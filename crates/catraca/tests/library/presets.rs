//! The shipped presets: their contents, counted from the catalogs.

use std::collections::BTreeMap;
use std::path::Path;

use catraca::{
    BucketObservation, Check, Engine, ManualClock, Outcome, Settle, Span, Subject, Time,
};

fn preset(name: &str) -> catraca::Catalog {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets").join(name);
    catraca::load(path.join("catalog.toml")).expect("a preset").catalog
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
    assert_eq!(engine.undeclared_gates(), ["no_such_action"]);
}

/// Behind any other peer, a client could state an address of its own.
#[test]
fn only_proxies_of_this_machine_state_the_address_of_a_client() {
    for name in ["soft-ban", "dict", "window-block", "checkout", "booking"] {
        let network = preset(name).network;
        let ranges: Vec<String> =
            network.trusted_proxies.iter().map(|range| range.net().to_string()).collect();
        assert_eq!(ranges, ["127.0.0.0/8", "127.0.0.1/32"], "{name}");
    }
}

/// The upstream limits its bucket queries too, and reports no buckets of payers.
///
/// covers: B-27
#[test]
fn a_poller_stays_inside_its_budget_and_payers_balances_are_our_own() {
    let start = Time::from_micros(1_800_000_000_000_000);
    let clock = ManualClock::at(start);
    let engine = Engine::builder(preset("dict")).clock(clock.clone()).build();
    let participant = [("participant", "12345678")];
    let asks =
        |gate: &str| engine.check(&Check::new(gate, participant)).expect("a decision").allowed;
    let lookup = [("participant", "12345678"), ("payer", "11144477735")];
    let checked = engine.check(&Check::new("getEntry.EMAIL", lookup)).expect("a decision");
    let outcome = Outcome { status: Some(404), ..Outcome::default() };
    let ticket = checked.ticket.expect("a ticket");
    engine.settle(&Settle::ticket(&ticket, &outcome)).expect("settled");
    let balance = |policy: &str| {
        let subject = Subject::from(lookup);
        let states = engine.buckets("default", &subject).expect("states");
        states.iter().find(|state| &*state.policy == policy).map(|state| state.balance)
    };
    let payer = "entries_read_user_antiscan";
    assert_eq!(balance(payer), Some(79));
    // Ten minutes of polling at the allowed rate, then faster.
    for second in 0..600 {
        clock.set(start.after(Span::from_secs(second)));
        assert!(asks("policies_read"), "{second}");
        assert!(second % 10 != 0 || asks("policies_list"), "{second}");
    }
    assert!((0..40).any(|_| !asks("policies_list")), "a faster poller is denied");
    let before = balance(payer);
    let view = [BucketObservation { policy: "keys_check", available: 5, capacity: None }];
    let now = engine.now();
    engine.reconcile("default", &Subject::from(participant), now, &view).expect("a view");
    assert_eq!((balance(payer), balance("keys_check")), (before, Some(5)));
    assert!(before > Some(79), "the bucket has refilled: {before:?}");
}
