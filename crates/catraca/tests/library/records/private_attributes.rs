//! An attribute that becomes private, or no longer is: what operators acknowledged about its values
//! stays in force, is never shown in clear while private, and can be removed.

use std::sync::Arc;

use catraca::app::{CatalogChange, FactMap, ListTargetText, NewListEntry};
use catraca::core::digest::is_pseudonym;
use catraca::core::lists::ListTarget;
use catraca::records::{AuditQuery, BlockQuery, BlockStates, ListName, Records};
use catraca::{
    App, BlockProposal, Catalog, Check, Engine, ManualClock, Secret, Span, Subject, Time,
};

use super::helpers::{ANA, SECRET, START, TestDatabase, app_over, block_on, builder};

const CLEAR: &str = r#"
    [policy.api]
    by     = ["customer"]
    window = "1 per 1m"
    tier   = [ { when = { plan = "gold" }, window = "3 per 1m" } ]

    [attribute.customer]
"#;
const FORMS: [&str; 2] = ["clear", "private"];

fn catalog(form: &str) -> String {
    if form == "private" { format!("{CLEAR}private = true") } else { CLEAR.to_owned() }
}

/// A server that is reloaded and restarted.
struct Server {
    database: TestDatabase,
    app: App,
    records: Arc<Records>,
}

impl Server {
    fn start(form: &str) -> Self {
        Self::over(TestDatabase::new(), form, SECRET)
    }

    fn over(database: TestDatabase, form: &str, secret: Secret) -> Self {
        let records = Arc::new(database.open());
        let clock = ManualClock::at(START);
        let engine: Engine = builder(&catalog(form), &clock).secret(secret).build();
        let app = app_over(engine, &records);
        block_on(app.resume(None)).unwrap();
        Self { database, app, records }
    }

    fn restart(self, form: &str) -> Self {
        let Self { database, app, records } = self;
        drop((app, records));
        Self::over(database, form, SECRET)
    }

    /// Changes the catalog while the server runs, or while it is stopped.
    fn change(self, form: &str, while_stopped: bool) -> Self {
        if while_stopped {
            return self.restart(form);
        }
        let catalog = Catalog::parse(&catalog(form)).unwrap();
        let change =
            CatalogChange { catalog, changes: &[], requires_keys: false, by: None, why: "test" };
        assert!(self.app.reload(change).durable);
        self
    }

    fn add(&self, list: ListName, customer: &str) -> Option<ListTarget> {
        let entry = NewListEntry {
            namespace: None,
            target: target_text(customer),
            until: None,
            reason: Some("case 7".to_owned()),
            why: None,
        };
        let entry = self.app.list_entry(&entry).unwrap();
        let added = block_on(self.app.add_to_list(&ANA, list, vec![(entry, None)], false)).unwrap();
        assert!(added.durable);
        added.before.into_iter().flatten().next().map(|entry| entry.target)
    }

    fn removes(&self, list: ListName, customer: &str) -> bool {
        let removed = block_on(self.app.remove_from_list(&ANA, list, None, &target_text(customer)));
        removed.is_ok_and(|removed| removed.durable)
    }

    fn set_plan(&self, customer: &str, plan: &str) {
        let facts = FactMap::from([("plan".to_owned(), plan.to_owned())]);
        assert!(
            block_on(self.app.set_facts(&ANA, None, "customer", customer, facts)).unwrap().durable
        );
    }

    fn reason(&self, customer: &str) -> &'static str {
        let subject = Subject::from([("customer", customer)]);
        block_on(self.app.peek(&Check::new("api", subject))).unwrap().reason.as_str()
    }

    fn plan(&self, customer: &str) -> Option<String> {
        self.app.facts_about(None, "customer", customer).unwrap().remove("plan")
    }

    fn limit(&self, customer: &str) -> Option<i64> {
        let subject = Subject::from([("customer", customer)]);
        block_on(self.app.peek(&Check::new("api", subject))).unwrap().limit
    }

    /// The values that the lists show.
    fn listed(&self, list: ListName) -> Vec<String> {
        let rows = block_on(self.app.list_entries(list, None, None, 99)).unwrap().rows;
        let value = |target| match target {
            ListTarget::Value { value, .. } => value,
            ListTarget::Range(range) => panic!("{range}"),
        };
        rows.into_iter().map(|row| value(row.what)).collect()
    }

    fn block(&self, customer: &str) {
        let subject = Subject::from([("customer", customer)]);
        let proposal = BlockProposal::by_operator(Span::from_secs(3600), Some("case 8"));
        let made = self.app.block(&ANA, "default", "api", &subject, proposal);
        assert!(block_on(made).unwrap().durable);
    }

    /// The blocks as lists, histories, `inspect`, reports, exports and the orphans of a reload show
    /// them.
    fn shown_blocks(&self, customer: &str) -> String {
        let query = BlockQuery { states: BlockStates::All, ..BlockQuery::default() };
        let listed = block_on(self.app.blocks(query)).unwrap();
        let shown = listed
            .rows
            .iter()
            .map(|listed| block_on(self.app.block_with_history(listed.row.id, None)).unwrap());
        let shown: Vec<_> = shown.collect();
        let subject = Subject::from([("customer", customer)]);
        let inspected = block_on(self.app.inspect("default", &subject)).unwrap().blocks;
        let top = block_on(self.app.top_blocked(None, Time::ZERO, 9)).unwrap();
        let exported = block_on(self.app.export(&ANA, None, "customer", customer)).unwrap().rows;
        let other = Catalog::parse("[policy.other]\nby = ['ip']\nwindow = '1 per 1m'").unwrap();
        let orphaned = self.app.orphaned_by(&other).unwrap();
        assert_eq!(orphaned.count, 1);
        format!("{listed:?} {shown:?} {inspected:?} {top:?} {exported:?} {orphaned:?}")
    }

    /// Everything that operators are shown: lists, facts and the audit.
    fn shown(&self) -> String {
        let lists = [ListName::Allow, ListName::Block].map(|list| self.listed(list));
        let facts = block_on(self.app.stated_facts(None, None, 99)).unwrap();
        let audit = self.app.audit(AuditQuery { limit: 99, ..Default::default() });
        let audit = block_on(audit).unwrap();
        format!("{lists:?} {facts:?} {audit:?}")
    }

    /// What the records store, which the application may show differently.
    fn stored(&self) -> String {
        self.records.flush().unwrap();
        let sql = [
            "SELECT value FROM lists",
            "SELECT value FROM facts",
            "SELECT target FROM audit",
            "SELECT about FROM audit WHERE about IS NOT NULL",
        ];
        format!("{:?}", sql.map(|sql| self.database.rows(sql)))
    }
}

fn target_text(customer: &str) -> ListTargetText {
    ListTargetText::Value { attribute: "customer".to_owned(), value: customer.to_owned() }
}

/// All ways from one form to the other.
fn toggles() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let ways = [("clear", "private"), ("private", "clear")];
    ways.into_iter().flat_map(|(from, to)| [(from, to, false), (from, to, true)])
}

#[test]
fn entries_and_facts_stay_in_force_when_their_attribute_changes() {
    for (from, to, while_stopped) in toggles() {
        let what = format!("{from} -> {to}, while stopped: {while_stopped}");
        let server = Server::start(from);
        server.add(ListName::Block, "mallory");
        server.add(ListName::Allow, "alice");
        server.set_plan("bob", "gold");
        let mut server = server.change(to, while_stopped);
        for round in ["changed", "restarted"] {
            assert_eq!(server.reason("mallory"), "blocklisted", "{what}, {round}");
            assert_eq!(server.reason("alice"), "allowlisted", "{what}, {round}");
            assert_eq!(server.limit("bob"), Some(3), "{what}, {round}");
            assert_eq!(server.reason("carol"), "ok", "{what}, {round}");
            server = server.restart(to);
        }
    }
}

#[test]
fn a_private_value_is_shown_and_stored_as_a_pseudonym_only() {
    for while_stopped in [false, true] {
        let server = Server::start("clear");
        server.add(ListName::Block, "mallory");
        server.add(ListName::Allow, "gone-entry");
        assert!(server.removes(ListName::Allow, "gone-entry"));
        server.set_plan("bob-4711", "gold");
        let before = server.shown();
        let server = server.change("private", while_stopped);
        let shown = server.shown();
        let stored = server.stored();
        for value in ["mallory", "gone-entry", "bob-4711"] {
            assert!(before.contains(value), "{before}");
            assert!(!shown.contains(value), "{shown}");
            assert!(!stored.contains(value), "{stored}");
        }
        assert!(server.listed(ListName::Block).iter().all(|value| is_pseudonym(value)), "{shown}");
        let shown = server.shown();
        assert!(
            shown.contains("act: \"hide\", namespace: None, target: \"values of customer\""),
            "{shown}"
        );
        // The second start has nothing to hide.
        let again = server.restart("private").shown();
        assert_eq!(again.matches("act: \"hide\"").count(), 1, "{again}");
    }
}

/// Regression: blocks, their histories and the audit of acts on them showed values in clear of an
/// attribute that had become private.
#[test]
fn a_block_shows_no_value_that_has_become_private() {
    for while_stopped in [false, true] {
        let server = Server::start("clear");
        server.block("mallory");
        let before = format!("{} {}", server.shown(), server.shown_blocks("mallory"));
        assert!(before.contains("api customer=mallory"), "{before}");
        let server = server.change("private", while_stopped);
        assert_eq!(server.reason("mallory"), "blocked");
        let shown = format!("{} {}", server.shown(), server.shown_blocks("mallory"));
        assert!(!shown.contains("mallory"), "{shown}");
        assert!(shown.contains("api customer=~"), "{shown}");
        let query = BlockQuery::default();
        let id = block_on(server.app.blocks(query)).unwrap().rows[0].row.id;
        let released = block_on(server.app.release(&ANA, id, None, false)).unwrap();
        assert!(!format!("{released:?}").contains("mallory"), "{released:?}");
        assert_eq!(server.reason("mallory"), "ok");
        // The audit of the release has the pseudonym, and the older rows are shown with it.
        let shown = server.shown();
        assert!(!shown.contains("mallory"), "{shown}");
        assert!(
            shown.contains(
                "act: \"release\", namespace: Some(\"default\"), target: \"api customer=~"
            ),
            "{shown}"
        );
        // An attribute that is not private any more shows its value.
        let server = server.change("clear", while_stopped);
        assert!(server.shown().contains("api customer=mallory"));
    }
}

#[test]
fn entries_and_facts_can_be_removed_after_their_attribute_changed() {
    for (from, to, while_stopped) in toggles() {
        let what = format!("{from} -> {to}, while stopped: {while_stopped}");
        let server = Server::start(from);
        server.add(ListName::Block, "mallory");
        server.set_plan("bob", "gold");
        let server = server.change(to, while_stopped);
        assert!(server.removes(ListName::Block, "mallory"), "{what}");
        assert!(!server.removes(ListName::Block, "mallory"), "{what}");
        assert!(block_on(server.app.forget_facts(&ANA, None, "customer", "bob")).unwrap().durable);
        assert_eq!(server.listed(ListName::Block), Vec::<String>::new(), "{what}");
        let server = server.restart(to);
        assert_eq!((server.reason("mallory"), server.limit("bob")), ("ok", Some(1)), "{what}");
    }
}

#[test]
fn the_pseudonym_that_a_list_shows_removes_its_entry() {
    for form in FORMS {
        let server = Server::start("private");
        server.add(ListName::Block, "mallory");
        let server = server.change(form, false);
        let [shown] = &server.listed(ListName::Block)[..] else { panic!("one entry") };
        assert!(is_pseudonym(shown), "{shown}");
        assert!(server.removes(ListName::Block, shown), "{form}");
        assert_eq!(server.restart(form).reason("mallory"), "ok");
    }
}

#[test]
fn an_entry_replaces_the_one_in_the_other_form() {
    for (from, to, while_stopped) in toggles() {
        let server = Server::start(from);
        server.add(ListName::Block, "mallory");
        server.set_plan("bob", "gold");
        let server = server.change(to, while_stopped);
        assert!(server.add(ListName::Block, "mallory").is_some());
        server.set_plan("bob", "silver");
        let server = server.restart(to);
        let listed = server.listed(ListName::Block);
        assert_eq!(listed.len(), 1, "{listed:?}");
        // Only now the value is known.
        assert_eq!(is_pseudonym(&listed[0]), to == "private", "{listed:?}");
        assert_eq!((server.plan("bob"), server.limit("bob")), (Some("silver".to_owned()), Some(1)));
        let facts = block_on(server.app.stated_facts(None, None, 99)).unwrap().rows;
        assert_eq!(facts.len(), 1, "{facts:?}");
    }
}

#[test]
fn entries_from_before_a_new_secret_can_be_replaced_and_removed() {
    let server = Server::start("private");
    server.add(ListName::Block, "mallory");
    server.add(ListName::Block, "trudy");
    let Server { database, app, records } = server;
    drop((app, records));
    let rotated = Secret::from_bytes([8; 32]).with_older(SECRET);
    let server = Server::over(database, "private", rotated);
    assert!(server.add(ListName::Block, "trudy").is_some());
    assert_eq!(server.listed(ListName::Block).len(), 2);
    assert!(server.removes(ListName::Block, "mallory") && server.removes(ListName::Block, "trudy"));
    assert_eq!(server.listed(ListName::Block), Vec::<String>::new());
}

/// Pseudonyms are shown to operators and written to logs; they must open nothing.
#[test]
fn a_caller_who_sends_a_pseudonym_is_not_the_one_behind_it() {
    for form in FORMS {
        let server = Server::start("private");
        server.add(ListName::Allow, "alice");
        server.set_plan("bob", "gold");
        let server = server.restart(form);
        let pseudonym = |value| server.app.engine().pseudonym("customer", value).unwrap();
        assert_eq!(server.reason(&pseudonym("alice")), "ok", "{form}");
        assert_eq!(server.limit(&pseudonym("bob")), Some(1), "{form}");
        // Such a value can be listed like any other.
        server.add(ListName::Block, &pseudonym("eve"));
        assert_eq!(server.reason(&pseudonym("eve")), "blocklisted", "{form}");
        assert_eq!(server.reason("eve"), "ok", "{form}");
    }
}
