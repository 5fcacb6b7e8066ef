//! Valid catalogs are read into exactly the values that they contain.

use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::catalog::read::{CATALOG, IncludedFile, ParsedCatalog, read};
use catraca_core::catalog::{Attribute, AttributeKind, AttributeSource, Catalog, Language};
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::lists::ListTarget;
use catraca_core::located::{DefaultValue, TableSchema, ValueSchema};
use catraca_core::policy::{CreditRule, KeySpec, Mode, OnFailure, OnMissing, Policy, PolicyId};
use catraca_core::price::{Cost, Price, StatusSet};
use catraca_core::rate::{Percent, Rate};
use catraca_core::route::RouteRequest;
use catraca_core::select::normalise;
use catraca_core::time::{Span, Time};
use smallvec::smallvec;

use crate::helpers::{LogOwner, codes, fixture, must_read, read_as};

fn minutes(minutes: i64) -> Span {
    Span::from_secs(minutes * 60)
}

fn policy<'c>(catalog: &'c Catalog, name: &str) -> &'c Policy {
    catalog.find(name).unwrap_or_else(|| panic!("no policy {name}")).1
}

/// Reads `good/everything.toml`, which includes other files of its folder.
fn everything() -> ParsedCatalog {
    let load = &mut |name: &str| Ok(IncludedFile::Text(fixture(&format!("good/{name}"))));
    let read = read("everything.toml", &fixture("good/everything.toml"), load, &|_| None);
    read.unwrap_or_else(|refused| panic!("{refused}"))
}

#[test]
fn the_example_reads_as_it_says() {
    let ParsedCatalog { catalog, warnings } = must_read(&fixture("good/example.toml"));
    assert_eq!(warnings, []);
    let names: Vec<_> = catalog.policies.iter().map(|policy| &*policy.name).collect();
    let order = ["buyer_auth_login", "entries_read_user_antiscan", "submit_payment", "global"];
    assert_eq!(names[..4], order);
    assert_eq!(names[4..], ["token", "ip", "appointments"]);
    assert_eq!(catalog.default, Some(PolicyId(5)));

    let login = policy(&catalog, "buyer_auth_login");
    let terms = login.base.as_ref().unwrap();
    assert_eq!(login.group.as_deref(), Some("authentication"));
    assert_eq!(login.key_spec, KeySpec::By(vec![vec!["ip".into()]]));
    assert_eq!(terms.limit, Limit::Window(smallvec![WindowTerms { limit: 10, span: minutes(15) }]));
    assert_eq!(terms.block, Some(Penalty::without_escalation(minutes(30))));
    assert_eq!(terms.cost, Cost::Request);
    assert_eq!((login.mode, login.on_failure), (Mode::Enforce, OnFailure::Local));
    assert_eq!((login.on_missing, login.reserve), (OnMissing::Error, 1));
    assert_eq!((login.hold, login.remember), (minutes(1), minutes(24 * 60)));
}

/// covers: 001-14, 001-15, 001-18, 001-19
#[test]
fn a_tier_takes_from_the_policy_what_it_leaves_out() {
    let catalog = must_read(&fixture("good/example.toml")).catalog;
    let antiscan = policy(&catalog, "entries_read_user_antiscan");
    let base = antiscan.base.as_ref().unwrap();
    let tier = &antiscan.tiers[0];
    assert!(antiscan.debt);
    // Two per minute is one per thirty seconds, and twenty one per three.
    let bucket = |size, seconds: i64| BucketTerms { size, tokens: 1, period: seconds * 1_000_000 };
    assert_eq!(base.limit, Limit::Bucket(bucket(100, 30)));
    assert_eq!(tier.terms.limit, Limit::Bucket(bucket(1_000, 3)));
    assert_eq!(base.describe_limit(), "bucket of 100, refill 2 per 1m");
    assert_eq!(tier.terms.describe_limit(), "bucket of 1000, refill 20 per 1m");
    assert_eq!(tier.when, [("person".into(), vec!["PJ".into()])]);
    assert_eq!(tier.terms.cost, base.cost);
    let on = Some(StatusSet { exact: vec![200], classes: Vec::new() });
    let credit = |amount| vec![CreditRule { event: "payment".into(), amount, on: on.clone() }];
    assert_eq!(base.credits, credit(1));
    assert_eq!(tier.terms.credits, credit(2));
    let Cost::Table(table) = &base.cost else { panic!("{:?}", base.cost) };
    let prices = [200, 404, 500].map(|status| table.price(Some(status)));
    assert_eq!(prices, [Price::Units(1), Price::Units(20), Price::Units(0)]);
}

#[test]
fn only_gates_whose_checks_have_tickets_are_warned_of_large_ones() {
    let large = fixture("codes/large-tickets.toml");
    assert_eq!(codes(&large), ["large-tickets"]);
    let ban = "ban    = [ { when = \"status == 403\", for = \"10m\" } ]\n";
    let without_ban = large.replace(ban, "");
    assert_eq!(codes(&without_ban), Vec::<&str>::new());
    // The policy that replaces another one may need the ticket, and have the larger rows.
    let fallback = format!("otherwise = \"last\"\n[policy.last]\nby = [\"ip\"]\n{ban}");
    assert_eq!(codes(&large.replace(ban, &fallback)), ["large-tickets"]);
}

/// covers: 000-03, 000-12, 000-42, 000-43
#[test]
fn a_policy_may_only_ban() {
    let catalog = must_read(&fixture("good/example.toml")).catalog;
    let payment = policy(&catalog, "submit_payment");
    assert_eq!(payment.key_spec, KeySpec::Each(vec!["customer".into(), "session".into()]));
    assert_eq!(payment.base.as_ref().unwrap().limit, Limit::Unlimited);
    let ban = &payment.bans[0];
    assert_eq!(ban.when.source(), "body.reject_id == 5");
    assert_eq!(ban.penalty, Penalty::without_escalation(minutes(10)));
    assert_eq!((&*ban.reason, ban.status), ("Payment API reject_id: 5", Some(400)));
    assert!(ban.message.as_ref().is_some_and(|text| text.contains("{retry_after}")));
}

#[test]
fn gates_routes_attributes_and_facts_are_kept() {
    let catalog = must_read(&fixture("good/example.toml")).catalog;
    let id = |name| catalog.find(name).unwrap().0;
    assert_eq!(catalog.gate_names, ["appointments".into()]);
    assert_eq!(catalog.gates.len(), catalog.policies.len(), "the gate has a policy's name");
    let gate = &catalog.gates["appointments"];
    assert_eq!(gate.policies, [id("global"), id("appointments")]);
    assert_eq!(catalog.gates["token"].policies, [id("token")]);
    let token = policy(&catalog, "token");
    assert_eq!((token.otherwise, token.base.is_none()), (Some(id("ip")), true));

    let route = &catalog.routes[0];
    assert_eq!(route.method.as_deref(), Some("POST"));
    assert_eq!(route.path, ["api", "appointments", "**"]);
    assert_eq!(route.set, [("tenant".into(), AttributeSource::Header("x-tenant-id".to_owned()))]);
    assert_eq!(route.upstreams, ["http://127.0.0.1:9000"]);

    let payer = Attribute { kind: AttributeKind::CpfCnpj, private: true };
    assert_eq!(catalog.attributes["payer"], payer);
    assert!(catalog.is_private("session") && catalog.is_private("token"));
    assert_eq!(catalog.attribute_kind("ip"), AttributeKind::Ip);
    let category = catalog.facts.lookup("participant", "12345678", "category");
    assert_eq!(category.map(|value| &**value), Some("A"));
    assert_eq!(catalog.facts.source("person").map(|value| &**value), Some("payer"));
}

#[test]
fn every_field_is_read() {
    let ParsedCatalog { catalog, warnings } = everything();
    // Its fallback denies everything, which causes a warning.
    assert_eq!(warnings.iter().map(|found| found.code).collect::<Vec<_>>(), ["never-admits"]);
    assert_eq!(catalog.language, Language::Portuguese);
    let antiscan = policy(&catalog, "PARTICIPANT_ANTISCAN");
    assert_eq!((antiscan.reserve, antiscan.hold), (0, Span::from_secs(30)));
    assert_eq!(antiscan.remember, minutes(7 * 24 * 60));
    assert_eq!(antiscan.low_water, Some(Percent::from_hundredths(2_000)));
    assert!(antiscan.base.is_none(), "only its tiers have limits");
    let watch = antiscan.watch.as_ref().unwrap();
    assert_eq!((watch.min, watch.per, watch.ban.first), (100, minutes(24 * 60), minutes(60)));
    assert!(watch.of.contains(Some(404)) && watch.share.contains(Some(404)));

    let reports = policy(&catalog, "reports");
    assert_eq!(
        reports.key_spec,
        KeySpec::By(vec![vec!["tenant".into()], vec!["token".into(), "ip".into()]])
    );
    assert_eq!((reports.mode, reports.on_missing), (Mode::Shadow, OnMissing::Skip));
    let terms = reports.base.as_ref().unwrap();
    assert_eq!(
        terms.limit,
        Limit::Fixed(FixedTerms { limit: 5, span: minutes(60), aligned: true })
    );
    assert_eq!((&terms.cost, reports.count_denied), (&Cost::Units(2), true));
    let day = 24 * 60;
    let max = minutes(7 * day);
    let forget = minutes(30 * day);
    assert_eq!(terms.block, Some(Penalty { first: minutes(60), factor: 3, max, forget }));

    let exports = policy(&catalog, "exports");
    let leases = |limit| Limit::Inflight(InflightTerms { limit, hold: minutes(day) });
    assert_eq!(exports.base.as_ref().unwrap().limit, leases(20));
    assert_eq!(exports.tiers[0].terms.limit, leases(100));

    let soft = policy(&catalog, "soft_ban");
    assert_eq!(soft.ban_storm, Some(Rate { amount: 50, per: minutes(1) }));
    assert_eq!(soft.bans[0].after, Some(Rate { amount: 3, per: minutes(10) }));
    assert_eq!(&*soft.bans[0].reason, "API rejection");
    assert_eq!(soft.bans[1].penalty.length(3), minutes(8));
}

#[test]
fn a_margin_scales_the_size_alone_and_leaves_one() {
    let catalog = everything().catalog;
    let sizes = policy(&catalog, "PARTICIPANT_ANTISCAN").tiers.iter().map(|tier| {
        let Limit::Bucket(terms) = tier.terms.limit else { panic!("{tier:?}") };
        (terms.size, terms.tokens, terms.period)
    });
    // 25,000 per minute is 1 per 2,400 µs, and 40 per day 1 per 36 minutes.
    assert_eq!(sizes.collect::<Vec<_>>(), [(45_000, 1, 2_400), (1, 1, 36 * 60_000_000)]);
}

/// covers: B-81
#[test]
fn a_block_of_zero_is_none_and_a_tier_may_have_its_own() {
    let catalog = everything().catalog;
    let calm = policy(&catalog, "calm");
    assert_eq!(calm.base.as_ref().unwrap().block, None);
    let tier = &calm.tiers[0].terms;
    assert_eq!(tier.block, Some(Penalty::without_escalation(Span::FOREVER)));
    assert_eq!(tier.limit, calm.base.as_ref().unwrap().limit);
}

#[test]
fn a_window_of_zero_denies_all() {
    let catalog = everything().catalog;
    let fallback = policy(&catalog, "fallback");
    assert_eq!(fallback.key_spec, KeySpec::By(Vec::new()));
    assert_eq!(fallback.base.as_ref().unwrap().limit.capacity(), Some(0));
    assert_eq!(fallback.on_failure, OnFailure::Closed);
}

/// covers: B-43, B-51
#[test]
fn values_are_normalised_as_requests_are() {
    let catalog = everything().catalog;
    assert_eq!(catalog.network.ipv6_prefix, 56);
    assert_eq!(catalog.network.trusted_proxies.len(), 2);
    assert_eq!(catalog.allowlist[0].reason.as_deref(), Some("our own"));
    let listed: Vec<_> = catalog.blocklist.iter().map(|entry| &entry.target).collect();
    let sent = [
        ("email", "someone@example.com"),
        ("device_ip", "2001:db8::ffff"),
        ("payer", "52998224725"),
    ];
    for ((attribute, raw), what) in sent.into_iter().zip(listed) {
        let ListTarget::Value { attribute: named, value } = what else { panic!("{what:?}") };
        assert_eq!(named, attribute);
        assert_eq!(*value, normalise(&catalog, attribute, raw).unwrap());
    }
    let until = Time::parse_rfc3339("2027-01-01T03:00:00Z").unwrap();
    assert_eq!(catalog.blocklist[1].until, Some(until));
    assert!(catalog.blocklist[0].until.is_some_and(|end| end < until));
    assert_eq!(&*policy(&catalog, "calm").tiers[0].when[0].1[0], "198.51.100.7");
    assert_eq!(&*policy(&catalog, "payer").tiers[0].when[0].1[0], "12ABC34501DE35");
}

/// Without an owner, the sections of the process are accepted as they are.
#[test]
fn the_sections_of_the_process_are_left_to_their_owner() {
    assert_eq!(codes("server = 5\n[store]\nzzz = 1\n[rls]\n"), [""; 0]);
    let mut owner = LogOwner::default();
    let found = read_as(&mut owner, "[server]\nlog = 'x'\nzzz = 1\n[polcy.a]\n", &|_| None);
    let found: Vec<_> = found.unwrap_err().all.iter().map(ToString::to_string).collect();
    assert_eq!(owner.log.as_deref(), Some("x"));
    let expected = [
        "catalog.toml:3:1: error[unknown-field]: a server section has no field `zzz`\n  \
         fix: use one of: log",
        "catalog.toml:4:2: error[unknown-section]: a catalog has no section `polcy`\n  \
         fix: did you mean `policy`?",
    ];
    assert_eq!(found, expected);
}

/// A field that is set to its declared default changes nothing.
#[test]
fn the_declared_defaults_are_those_of_the_readers() {
    let policy = "[policy.p]\nby = []\nfixed = '1 per 1s'\n";
    let mut compared = 0;
    for (text, table) in [
        ("", &CATALOG),
        (policy, table(&CATALOG, "policy")),
        ("[network]\n", table(&CATALOG, "network")),
        ("[settle]\n", table(&CATALOG, "settle")),
        ("[locks]\n", table(&CATALOG, "locks")),
        ("[locks.kind.other]\n", table(table(&CATALOG, "locks"), "kind")),
        ("[attribute.a]\n", table(&CATALOG, "attribute")),
    ] {
        let plain = shown(text);
        for field in table.fields {
            let value = match field.default {
                DefaultValue::Text(text) => format!("'{text}'"),
                DefaultValue::Integer(number) => number.to_string(),
                DefaultValue::Flag(flag) => flag.to_string(),
                _ => continue,
            };
            assert_eq!(
                shown(&format!("{text}{} = {value}\n", field.name)),
                plain,
                "{}",
                field.name
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

/// A catalog as text, without its revision.
fn shown(text: &str) -> String {
    let mut catalog = must_read(text).catalog;
    catalog.revision = "".into();
    format!("{catalog:?}")
}

/// The table of a section, or of the tables in it.
fn table(of: &TableSchema, name: &str) -> &'static TableSchema {
    match of.field(name).unwrap().value {
        ValueSchema::Table(table) | ValueSchema::Map(&ValueSchema::Table(table)) => table,
        other => panic!("{name}: {other:?}"),
    }
}

/// Only this field of `[store]` decides about keys.
#[test]
fn the_attribute_of_sharding_is_part_of_the_catalog() {
    let store = "[store]\nurl = 'any'\nshard_by = 'bank'\n";
    assert_eq!(must_read(store).catalog.shard_by.as_deref(), Some("bank"));
    assert_eq!(codes("[store]\nshard_by = 5\n"), ["wrong-type"]);
    assert_eq!(codes("[store]\nshard_by = 'a b'\n"), ["bad-name"]);
    assert_eq!(codes("store = 5\n"), [""; 0]);
}

/// Regression: `{name}` was read literally, so that no request matched it.
#[test]
fn a_named_segment_is_any_segment() {
    let text = "[policy.a]\nby = [\"ip\"]\nwindow = \"1 per 1s\"\n[[route]]\n\
                match = \"GET /users/{user_id}/files/{file.name}/**\"\ngate = \"a\"\n";
    let catalog = must_read(text).catalog;
    assert_eq!(catalog.routes[0].path, ["users", "*", "files", "*", "**"]);
    let request = |target| catalog.route(&RouteRequest { method: "GET", target }).unwrap();
    assert!(request("/users/7/files/x.pdf/pages/1").is_some());
    assert!(request("/users/7/8/files/x.pdf").is_none());
}

#[test]
fn routes_keep_their_picks_and_any_method() {
    let catalog = everything().catalog;
    let [first, second] = &catalog.routes[..] else { panic!("{:?}", catalog.routes) };
    assert_eq!(first.path, ["reports", "*", "files", "**"]);
    let picks: Vec<_> = first.set.iter().map(|(_, pick)| pick.clone()).collect();
    let text = |text: &str| text.to_owned();
    let wanted = [
        AttributeSource::Segment(2),
        AttributeSource::Query(text("customer")),
        AttributeSource::Literal(text("web")),
    ];
    assert_eq!(picks, wanted);
    assert_eq!((second.method.as_deref(), second.path.len()), (None, 0));
}

#[test]
fn an_empty_catalog_is_a_catalog() {
    let catalog = must_read("").catalog;
    assert!(
        catalog.policies.is_empty() && catalog.gates.is_empty() && catalog.lists.is_empty_in("")
    );
}

/// covers: 003-01
#[test]
fn the_revision_follows_every_name_and_text() {
    let revision = |text: &str| must_read(text).catalog.revision;
    let one = revision("include = [\"a\"]\n#--- a\n\n");
    assert_eq!(one, revision("include = [\"a\"]\n#--- a\n\n"));
    assert!(one.len() == 16 && one.chars().all(|c| c.is_ascii_hexdigit()), "{one}");
    for other in ["", "include = [\"a\"]\n\n#--- a\n\n", "include = [\"b\"]\n#--- b\n\n"] {
        assert_ne!(one, revision(other), "{other}");
    }
    assert_ne!(one, revision("include = [\"a\"]\n#--- a\n# more\n"));
}

#[test]
fn a_file_that_two_include_is_read_once_and_roots_come_first() {
    let policy = |name: &str| format!("[policy.{name}]\nby = []\nwindow = \"1 per 1s\"\n");
    let text = [
        "include = [\"a\", \"b\"]\n".to_owned() + &policy("root"),
        "a\ninclude = [\"shared\"]\n".to_owned() + &policy("a"),
        "b\ninclude = [\"shared\"]\n".to_owned() + &policy("b"),
        "shared\n".to_owned() + &policy("shared"),
    ];
    let catalog = must_read(&text.join("#--- ")).catalog;
    let names: Vec<_> = catalog.policies.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["root", "a", "shared", "b"]);
}

#[test]
fn the_most_units_that_a_key_stores_are_accepted() {
    let text = fixture("codes/window-too-large.toml").replace("10_001", "10_000");
    let catalog = must_read(&text).catalog;
    let limits: Vec<_> = catalog.policies.iter().map(|policy| policy.base.as_ref()).collect();
    let capacities: Vec<_> = limits.iter().map(|terms| terms.unwrap().limit.describe()).collect();
    assert_eq!(capacities, ["window 10000 per 1m", "10000 in flight", "none: it only bans"]);
}

#[test]
fn a_policy_without_a_limit_can_be_settled_for_ten_minutes() {
    let ban = "[[policy.p.ban]]\nwhen = 'status == 500'\nfor = '1m'\nreason = 'r'\n";
    let hold = |fields: &str| {
        let text = format!("[policy.p]\nby = ['ip']\n{fields}\n{ban}");
        policy(&must_read(&text).catalog, "p").hold
    };
    assert_eq!(hold(""), minutes(10));
    assert_eq!(hold("hold = '2m'"), minutes(2));
    assert_eq!(hold("window = '5 per 1m'"), minutes(1));
    assert_eq!(hold("[[policy.p.tier]]\nwhen = { ip = '::1' }\nwindow = '5 per 1m'"), minutes(1));
}
