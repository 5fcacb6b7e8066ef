//! List entries and facts of one namespace: they apply only there, are kept and listed apart, and
//! follow their value when its attribute becomes private.

use std::sync::Arc;

use catraca::app::{AppError, CatalogChange, FactMap, ListTargetText, NewListEntry};
use catraca::core::digest::is_pseudonym;
use catraca::core::lists::ListTarget;
use catraca::records::{AuditQuery, ListName, Records};
use catraca::{App, BlockProposal, Catalog, Check, ManualClock, Span, Subject, Time};

use super::helpers::{ANA, START, TestDatabase, app_over, block_on, builder};

const CATALOG: &str = r#"
    [policy.api]
    by     = ["customer"]
    window = "1 per 1m"
    tier   = [ { when = { plan = "silver" }, window = "2 per 1m" },
               { when = { plan = "gold" }, window = "3 per 1m" },
               { when = { plan = "free" }, window = "4 per 1m" } ]

    [facts.customer.ana]
    plan = "free"

    [attribute.tenant]
    [attribute.customer]
"#;

struct Sites {
    database: TestDatabase,
    app: App,
    records: Arc<Records>,
}

impl Sites {
    fn start() -> Self {
        Self::over(TestDatabase::new(), CATALOG)
    }

    fn over(database: TestDatabase, catalog: &str) -> Self {
        let records = Arc::new(database.open());
        let app = app_over(builder(catalog, &ManualClock::at(START)).build(), &records);
        block_on(app.resume(None)).unwrap();
        Self { database, app, records }
    }

    fn restart(self, catalog: &str) -> Self {
        let Self { database, app, records } = self;
        drop((app, records));
        Self::over(database, catalog)
    }

    fn try_add(
        &self,
        namespace: Option<&str>,
        list: ListName,
        customer: &str,
    ) -> Result<bool, AppError> {
        let entry = self.app.list_entry(&NewListEntry {
            namespace: namespace.map(str::to_owned),
            target: target(customer),
            until: None,
            reason: None,
            why: None,
        })?;
        let added = block_on(self.app.add_to_list(&ANA, list, vec![(entry, None)], false))?;
        Ok(added.durable)
    }

    fn add(&self, namespace: Option<&str>, list: ListName, customer: &str) {
        assert!(self.try_add(namespace, list, customer).unwrap());
    }

    fn removes(&self, namespace: Option<&str>, list: ListName, customer: &str) -> bool {
        let removed = block_on(self.app.remove_from_list(&ANA, list, namespace, &target(customer)));
        removed.is_ok_and(|removed| removed.durable)
    }

    fn set_plan(&self, namespace: Option<&str>, plan: &str) {
        let facts = FactMap::from([("plan".to_owned(), plan.to_owned())]);
        let set = self.app.set_facts(&ANA, namespace, "customer", "ana", facts);
        assert!(block_on(set).unwrap().durable);
    }

    /// The reason and the limit of a peek in two namespaces.
    fn peek(&self, customer: &str) -> [(&'static str, Option<i64>); 2] {
        ["shop", "blog"].map(|namespace| {
            let subject = Subject::from([("customer", customer)]);
            let check = Check::new("api", subject).namespace(namespace);
            let decision = block_on(self.app.peek(&check)).unwrap();
            (decision.reason.as_str(), decision.limit)
        })
    }

    fn limits(&self) -> [Option<i64>; 2] {
        self.peek("ana").map(|(_, limit)| limit)
    }

    fn listed(&self, namespace: Option<&str>) -> Vec<(Option<String>, String)> {
        let page = self.app.list_entries(ListName::Block, namespace, None, 99);
        let rows = block_on(page).unwrap().rows;
        let shown = rows.into_iter().map(|row| match row.what {
            ListTarget::Value { value, .. } => (row.namespace, value),
            ListTarget::Range(range) => (row.namespace, range.to_string()),
        });
        shown.collect()
    }

    fn audit_targets(&self) -> Vec<String> {
        let query = AuditQuery { limit: 100, ..AuditQuery::default() };
        let rows = block_on(self.app.audit(query)).unwrap().rows;
        rows.into_iter().rev().map(|row| row.target).collect()
    }
}

fn target(customer: &str) -> ListTargetText {
    let attribute = "customer".to_owned();
    ListTargetText::Value { attribute, value: customer.to_owned() }
}

#[test]
fn an_entry_of_a_namespace_applies_there_also_after_a_restart() {
    let mut sites = Sites::start();
    sites.add(Some("shop"), ListName::Block, "bob");
    sites.add(None, ListName::Block, "eve");
    sites.add(Some("blog"), ListName::Allow, "eve");
    for _ in 0..2 {
        assert_eq!(sites.peek("bob").map(|(reason, _)| reason), ["blocklisted", "ok"]);
        let eve = sites.peek("eve").map(|(reason, _)| reason);
        assert_eq!(eve, ["blocklisted", "allowlisted"], "the allowlist goes first, in either form");
        let own = [(Some("shop".to_owned()), "bob".to_owned())];
        assert_eq!(sites.listed(Some("shop")), own);
        assert_eq!(sites.listed(Some("blog")), []);
        assert_eq!(sites.listed(None).len(), 2);
        assert!(!sites.removes(None, ListName::Block, "bob"), "that is another entry");
        assert!(!sites.removes(Some("blog"), ListName::Block, "bob"));
        assert!(!sites.removes(Some("shop"), ListName::Block, "eve"));
        sites = sites.restart(CATALOG);
    }
    assert!(sites.removes(Some("shop"), ListName::Block, "bob"));
    assert_eq!(sites.peek("bob").map(|(reason, _)| reason), ["ok", "ok"]);
    let targets = sites.audit_targets();
    assert!(targets.contains(&"blocklist/shop customer=bob".to_owned()), "{targets:?}");
    assert!(targets.contains(&"blocklist customer=eve".to_owned()), "{targets:?}");
    let namespaces = block_on(sites.app.namespaces(Vec::new())).unwrap();
    assert!(namespaces.contains("blog"), "an entry that exists can be named: {namespaces:?}");
    let sites = sites.restart(CATALOG);
    assert_eq!(sites.peek("bob").map(|(reason, _)| reason), ["ok", "ok"]);
}

#[test]
fn a_fact_of_the_namespace_goes_first_then_of_operators_then_of_the_catalog() {
    let mut sites = Sites::start();
    assert_eq!(sites.limits(), [Some(4), Some(4)]);
    sites.set_plan(Some("shop"), "gold");
    assert_eq!(sites.limits(), [Some(3), Some(4)]);
    sites.set_plan(None, "silver");
    for _ in 0..2 {
        assert_eq!(sites.limits(), [Some(3), Some(2)]);
        sites = sites.restart(CATALOG);
    }
    let own = sites.app.facts_about(Some("shop"), "customer", "ana").unwrap();
    assert_eq!(own, FactMap::from([("plan".to_owned(), "gold".to_owned())]));
    let subject = Subject::from([("customer", "ana")]);
    let inspected = block_on(sites.app.inspect("shop", &subject)).unwrap();
    assert_eq!(inspected.facts["plan"], "gold");
    let page = block_on(sites.app.stated_facts(Some("shop"), None, 9)).unwrap();
    assert_eq!((page.rows.len(), page.rows[0].namespace.as_deref()), (1, Some("shop")));
    assert_eq!(block_on(sites.app.stated_facts(None, None, 9)).unwrap().rows.len(), 2);
    let forget = |namespace| block_on(sites.app.forget_facts(&ANA, namespace, "customer", "ana"));
    assert!(forget(Some("blog")).is_err());
    assert!(forget(Some("shop")).unwrap().durable);
    assert_eq!(sites.limits(), [Some(2), Some(2)]);
    let targets = sites.audit_targets();
    assert!(targets.contains(&"facts/shop customer=ana".to_owned()), "{targets:?}");
    let sites = sites.restart(CATALOG);
    assert_eq!(sites.limits(), [Some(2), Some(2)]);
}

/// Callers may not send the name of a fact; a tenant must not reserve names for others.
#[test]
fn the_name_of_a_fact_is_reserved_in_its_namespace_only() {
    let sites = Sites::start();
    let facts = FactMap::from([("region".to_owned(), "eu".to_owned())]);
    let set = |namespace, attribute| {
        block_on(sites.app.set_facts(&ANA, namespace, attribute, "x", facts.clone()))
    };
    assert!(set(Some("shop"), "customer").is_ok());
    let send = |namespace| {
        let subject = Subject::from([("customer", "bob"), ("region", "us")]);
        block_on(sites.app.check(&Check::new("api", subject).namespace(namespace))).is_ok()
    };
    assert_eq!(["shop", "blog"].map(send), [false, true]);
    assert!(set(Some("blog"), "tenant").is_ok(), "the name is free elsewhere");
    assert!(set(None, "tenant").is_ok(), "also for an operator of all namespaces");
    assert_eq!(sites.app.engine().ignored_facts(), 1, "the fact of the shop");
}

#[test]
fn entries_and_facts_of_a_namespace_stay_when_their_attribute_becomes_private() {
    let private = format!("{CATALOG}private = true");
    for while_stopped in [true, false] {
        let mut sites = Sites::start();
        sites.add(Some("shop"), ListName::Block, "ana");
        sites.add(Some("blog"), ListName::Block, "bob");
        sites.add(None, ListName::Block, "bob");
        sites.set_plan(Some("blog"), "gold");
        sites.set_plan(None, "silver");
        if while_stopped {
            sites = sites.restart(&private);
        } else {
            let catalog = Catalog::parse(&private).unwrap();
            let change = CatalogChange {
                catalog,
                changes: &[],
                requires_keys: false,
                by: None,
                why: "test",
            };
            assert!(sites.app.reload(change).durable);
        }
        for _ in 0..2 {
            assert_eq!(sites.peek("ana")[0].0, "blocklisted");
            assert_eq!(sites.peek("ana")[1], ("ok", Some(3)));
            assert!(sites.listed(None).iter().all(|(_, value)| is_pseudonym(value)));
            assert_eq!(sites.listed(None).len(), 3, "no two of them became one");
            let shown = sites.audit_targets();
            assert!(shown.iter().all(|target| !target.contains("=ana")), "{shown:?}");
            sites = sites.restart(&private);
        }
        assert!(sites.removes(Some("blog"), ListName::Block, "bob"));
        assert_eq!(sites.peek("bob").map(|(reason, _)| reason), ["blocklisted", "blocklisted"]);
    }
}

#[test]
fn an_export_shows_namespaces_and_an_erasure_reaches_all_of_them() {
    let sites = Sites::start();
    sites.set_plan(Some("shop"), "gold");
    sites.set_plan(None, "silver");
    sites.add(Some("shop"), ListName::Allow, "ana");
    sites.add(Some("blog"), ListName::Block, "ana");
    let exported = block_on(sites.app.export(&ANA, None, "customer", "ana")).unwrap().rows;
    let of = |namespace: Option<&String>| namespace.map_or("all", |name| name.as_str()).to_owned();
    let facts: Vec<_> = exported.facts.iter().map(|fact| of(fact.namespace.as_ref())).collect();
    assert_eq!(facts, ["all", "shop"]);
    let lists: Vec<_> = exported.lists.iter().map(|entry| of(entry.namespace.as_ref())).collect();
    assert_eq!(lists, ["shop", "blog"]);
    assert!(sites.removes(Some("blog"), ListName::Block, "ana"));
    let erased = block_on(sites.app.erase(&ANA, None, "customer", "ana")).unwrap().counts;
    assert_eq!((erased.facts, erased.retained_lists), (2, 1));
    let targets = sites.audit_targets();
    let about_ana: Vec<_> = targets.iter().filter(|target| target.contains("=ana")).collect();
    assert_eq!(about_ana, ["allowlist/shop customer=ana"], "that of the entry in force");
    assert!(targets.contains(&"blocklist/blog (erased)".to_owned()), "{targets:?}");
    assert_eq!(sites.app.facts_about(Some("shop"), "customer", "ana").unwrap(), FactMap::new());
    let sites = sites.restart(CATALOG);
    assert_eq!(sites.app.facts_about(Some("shop"), "customer", "ana").unwrap(), FactMap::new());
}

/// Regression: operators of one namespace were refused the audit, reports, export and erasure.
#[test]
fn reports_exports_and_erasures_can_be_of_one_namespace() {
    let sites = Sites::start();
    for namespace in ["shop", "blog"] {
        let subject = Subject::from([("customer", "ana")]);
        let proposal = BlockProposal::by_operator(Span::from_secs(60), None);
        let made = sites.app.block(&ANA, namespace, "api", &subject, proposal);
        assert!(block_on(made).unwrap().durable);
        sites.add(Some(namespace), ListName::Block, "ana");
        sites.set_plan(Some(namespace), "gold");
        let export = sites.app.export(&ANA, Some(namespace), "customer", "ana");
        let exported = block_on(export).unwrap().rows;
        assert_eq!((exported.blocks.len(), exported.lists.len()), (1, 1), "{exported:?}");
        assert_eq!((exported.facts.len(), exported.audit.len()), (1, 3), "{exported:?}");
    }
    sites.add(None, ListName::Block, "ana");
    block_on(sites.app.export(&ANA, None, "customer", "ana")).unwrap();
    let acts = |namespace: Option<&str>| {
        let namespace = namespace.map(str::to_owned);
        let query = AuditQuery { namespace, limit: 99, ..AuditQuery::default() };
        let rows = block_on(sites.app.audit(query)).unwrap().rows;
        let mut acts: Vec<String> = rows.into_iter().map(|row| row.target).collect();
        acts.reverse();
        acts
    };
    let of_shop = [
        "api customer=ana",
        "blocklist/shop customer=ana",
        "facts/shop customer=ana",
        "records/shop one value of customer",
    ];
    assert_eq!(acts(Some("shop")), of_shop);
    // `hop` is the end of another name, and `shop` is in the middle of none.
    assert_eq!(acts(Some("hop")), Vec::<String>::new());
    assert_eq!(acts(None).len(), 10);
    let top = |namespace| block_on(sites.app.top_blocked(namespace, Time::ZERO, 9)).unwrap().len();
    assert_eq!((top(Some("shop")), top(Some("hop")), top(None)), (1, 0, 2));
    sites.peek("ana");
    let check = Check::new("api", Subject::from([("customer", "bob")])).namespace("shop");
    assert!(block_on(sites.app.check(&check)).unwrap().allowed);
    let total = |namespace| {
        let totals = sites.app.totals(namespace, Time::ZERO, START.after(Span::from_secs(99)));
        let rows = block_on(totals).unwrap();
        (rows.actions.iter().map(|row| row.total).sum::<u64>(), rows.policies.len())
    };
    assert_eq!((total(Some("shop")), total(Some("blog"))), ((1, 1), (0, 0)));

    assert!(sites.removes(Some("shop"), ListName::Block, "ana"));
    let erased = block_on(sites.app.erase(&ANA, Some("shop"), "customer", "ana")).unwrap().counts;
    assert_eq!((erased.facts, erased.retained_blocks, erased.retained_lists), (1, 1, 0));
    let plan = |sites: &Sites, namespace| {
        sites.app.facts_about(Some(namespace), "customer", "ana").unwrap().remove("plan")
    };
    let assert_erased = |sites: &Sites| {
        assert_eq!(plan(sites, "shop"), None);
        assert_eq!(plan(sites, "blog").as_deref(), Some("gold"));
        let targets = sites.audit_targets();
        assert!(targets.contains(&"blocklist/blog customer=ana".to_owned()), "{targets:?}");
        assert!(!targets.contains(&"blocklist/shop customer=ana".to_owned()), "{targets:?}");
    };
    assert_erased(&sites);
    assert_erased(&sites.restart(CATALOG));
}

#[test]
fn a_namespace_that_no_key_can_have_is_refused() {
    let sites = Sites::start();
    for namespace in ["", "a b", "a/b", &"x".repeat(65)] {
        assert!(sites.try_add(Some(namespace), ListName::Block, "bob").is_err(), "{namespace:?}");
        let facts = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
        let set = sites.app.set_facts(&ANA, Some(namespace), "customer", "bob", facts);
        assert!(block_on(set).is_err(), "{namespace:?}");
    }
}

/// The operators of a namespace must not be able to use up the memory of the server.
#[test]
fn the_entries_and_facts_of_a_namespace_are_bounded() {
    let sites = Sites::start();
    let add = |namespace: Option<&str>, numbers: std::ops::Range<usize>| {
        let entries = numbers.map(|number| {
            let entry = sites.app.list_entry(&NewListEntry {
                namespace: namespace.map(str::to_owned),
                target: target(&format!("c{number}")),
                until: None,
                reason: None,
                why: None,
            });
            (entry.unwrap(), None)
        });
        let entries = entries.collect();
        block_on(sites.app.add_to_list(&ANA, ListName::Block, entries, false)).map(drop)
    };
    for thousand in 0..10 {
        add(Some("shop"), thousand * 1_000..(thousand + 1) * 1_000).unwrap();
    }
    let Err(AppError::Invalid { code, .. }) = add(Some("shop"), 10_000..10_001) else {
        panic!("there is room for more")
    };
    assert_eq!(code, "too-many-entries");
    add(Some("shop"), 9_990..10_000).expect("entries that replace others need no room");
    add(Some("blog"), 0..1).unwrap();
    add(None, 0..1).unwrap();
    assert!(sites.removes(Some("shop"), ListName::Block, "c0"));
    add(Some("shop"), 10_000..10_001).unwrap();
}

#[test]
fn a_namespace_without_room_for_facts_can_change_those_that_it_has() {
    let sites = Sites::start();
    let set = |customer: usize, names: std::ops::Range<usize>, plan: &str| {
        let facts = names.map(|name| (format!("f{name}"), plan.to_owned())).collect();
        let customer = format!("c{customer}");
        let set = sites.app.set_facts(&ANA, Some("shop"), "customer", &customer, facts);
        block_on(set).map(|changed| changed.after)
    };
    for customer in 0..312 {
        set(customer, 0..32, "free").unwrap();
    }
    set(312, 0..16, "free").unwrap();
    let Err(AppError::Invalid { code, .. }) = set(312, 16..17, "free") else {
        panic!("there is room for more")
    };
    assert_eq!(code, "too-many-facts");
    assert_eq!(set(312, 0..1, "gold").unwrap()["f0"], "gold");
}
