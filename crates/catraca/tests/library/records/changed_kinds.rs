//! A catalog that normalises an attribute differently: what operators acknowledged about its values
//! stays in force where the value is known, is counted where it is not, and can be removed.

use std::sync::Arc;

use catraca::app::{CatalogChange, FactMap, ListTargetText, NewListEntry};
use catraca::core::lists::ListTarget;
use catraca::records::{ListName, Records};
use catraca::{App, Catalog, Check, ManualClock, Subject};

use super::helpers::{ANA, START, TestDatabase, app_over, block_on, builder};

/// A catalog with this kind of `email`, and this prefix of IPv6.
fn catalog(email: &str, prefix: u32) -> String {
    format!(
        r#"
        [policy.api]
        by     = ["email"]
        window = "1 per 1m"
        tier   = [ {{ when = {{ plan = "gold" }}, window = "3 per 1m" }} ]

        [policy.site]
        by     = ["ip"]
        window = "1 per 1m"
        tier   = [ {{ when = {{ network = "office" }}, window = "3 per 1m" }} ]

        [attribute.email]
        {email}

        [network]
        ipv6_prefix = {prefix}
        "#
    )
}

const TEXT: &str = "kind = 'text'";
const CASELESS: &str = "kind = 'caseless'";

struct Server {
    database: TestDatabase,
    app: App,
    records: Arc<Records>,
}

impl Server {
    fn start(email: &str, prefix: u32) -> Self {
        Self::over(TestDatabase::new(), email, prefix)
    }

    fn over(database: TestDatabase, email: &str, prefix: u32) -> Self {
        let records = Arc::new(database.open());
        let clock = ManualClock::at(START);
        let app = app_over(builder(&catalog(email, prefix), &clock).build(), &records);
        block_on(app.resume(None)).unwrap();
        Self { database, app, records }
    }

    fn restart(self, email: &str, prefix: u32) -> Self {
        let Self { database, app, records } = self;
        drop((app, records));
        Self::over(database, email, prefix)
    }

    fn change(self, email: &str, prefix: u32, while_stopped: bool) -> Self {
        if while_stopped {
            return self.restart(email, prefix);
        }
        let catalog = Catalog::parse(&catalog(email, prefix)).unwrap();
        let change =
            CatalogChange { catalog, changes: &[], requires_keys: false, by: None, why: "test" };
        assert!(self.app.reload(change).durable);
        self
    }

    fn list(&self, email: &str) {
        let entry = self.app.list_entry(&NewListEntry::new(target(email))).unwrap();
        let added = self.app.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false);
        assert!(block_on(added).unwrap().durable);
    }

    fn unlist(&self, email: &str) -> bool {
        let target = target(email);
        let removed = self.app.remove_from_list(&ANA, ListName::Block, None, &target);
        block_on(removed).is_ok_and(|removed| removed.durable)
    }

    fn set(&self, attribute: &str, value: &str, name: &str, fact: &str) {
        let facts = FactMap::from([(name.to_owned(), fact.to_owned())]);
        let set = self.app.set_facts(&ANA, None, attribute, value, facts);
        assert!(block_on(set).unwrap().durable);
    }

    fn forget(&self, attribute: &str, value: &str) -> bool {
        let forgotten = self.app.forget_facts(&ANA, None, attribute, value);
        block_on(forgotten).is_ok_and(|forgotten| forgotten.durable)
    }

    fn reason(&self, email: &str) -> &'static str {
        let check = Check::new("api", Subject::from([("email", email)]));
        block_on(self.app.peek(&check)).unwrap().reason.as_str()
    }

    fn limit(&self, gate: &str, attribute: &str, value: &str) -> Option<i64> {
        let check = Check::new(gate, Subject::from([(attribute, value)]));
        block_on(self.app.peek(&check)).unwrap().limit
    }

    /// The values of the blocklist and of the facts.
    fn stored(&self) -> (Vec<String>, Vec<String>) {
        let listed = block_on(self.app.list_entries(ListName::Block, None, None, 99)).unwrap();
        let facts = block_on(self.app.stated_facts(None, None, 99)).unwrap();
        let value = |target| match target {
            ListTarget::Value { value, .. } => value,
            ListTarget::Range(range) => panic!("{range}"),
        };
        let listed = listed.rows.into_iter().map(|row| value(row.what)).collect();
        (listed, facts.rows.into_iter().map(|row| row.about.value).collect())
    }
}

fn target(email: &str) -> ListTargetText {
    ListTargetText::Value { attribute: "email".to_owned(), value: email.to_owned() }
}

/// Regression: after `kind` changed from `text` to `caseless`, the entry matched no caller, the
/// fact did not apply, neither could be removed, and nothing said so.
#[test]
fn entries_and_facts_of_another_kind_stay_in_force_and_can_be_removed() {
    for while_stopped in [false, true] {
        let server = Server::start(TEXT, 64);
        server.list("C@x.com");
        server.set("email", "D@x.com", "plan", "gold");
        let mut server = server.change(CASELESS, 64, while_stopped);
        for round in ["changed", "restarted"] {
            for email in ["C@x.com", "c@x.com"] {
                assert_eq!(server.reason(email), "blocklisted", "{email}, {round}");
            }
            for email in ["D@x.com", "d@x.com"] {
                assert_eq!(server.limit("api", "email", email), Some(3), "{email}, {round}");
            }
            server = server.restart(CASELESS, 64);
        }
        assert_eq!(server.app.engine().orphaned_entries_and_facts(), (0, 0));
        assert!(server.unlist("C@X.com") && !server.unlist("C@x.com"));
        assert!(server.forget("email", "d@x.com") && !server.forget("email", "D@x.com"));
        assert_eq!(server.stored(), (Vec::new(), Vec::new()));
        let server = server.restart(CASELESS, 64);
        assert_eq!(
            (server.reason("c@x.com"), server.limit("api", "email", "d@x.com")),
            ("ok", Some(1))
        );
    }
}

#[test]
fn a_new_entry_or_fact_replaces_the_one_of_another_kind() {
    for while_stopped in [false, true] {
        let server = Server::start(TEXT, 64);
        server.list("C@x.com");
        server.set("email", "D@x.com", "plan", "gold");
        let server = server.change(CASELESS, 64, while_stopped);
        server.list("c@x.com");
        server.set("email", "d@x.com", "plan", "silver");
        let server = server.restart(CASELESS, 64);
        assert_eq!(server.stored(), (vec!["c@x.com".to_owned()], vec!["d@x.com".to_owned()]));
        assert_eq!(server.limit("api", "email", "D@x.com"), Some(1));
    }
}

#[test]
fn facts_follow_the_prefix_of_ipv6_where_the_network_is_known() {
    for while_stopped in [false, true] {
        let server = Server::start(TEXT, 64);
        server.set("ip", "2001:db8:1:2::7", "network", "office");
        let server = server.change(TEXT, 48, while_stopped);
        assert_eq!(server.limit("site", "ip", "2001:db8:1:9::1"), Some(3));
        assert!(server.forget("ip", "2001:db8:1:2::7"));
        assert_eq!(server.limit("site", "ip", "2001:db8:1:2::7"), Some(1));

        // Which networks of 64 bits a fact about one of 48 bits was meant for is not known.
        server.set("ip", "2001:db8:1:2::7", "network", "office");
        let server = server.change(TEXT, 64, while_stopped);
        assert_eq!(server.limit("site", "ip", "2001:db8:1:2::7"), Some(1));
        assert_eq!(server.app.engine().orphaned_entries_and_facts(), (0, 1));
        let stored = server.stored().1;
        assert_eq!(stored, ["2001:db8:1::/48"]);
        assert!(server.forget("ip", &stored[0]), "it is removed by its stored form");
        assert_eq!(server.app.engine().orphaned_entries_and_facts(), (0, 0));
        assert_eq!(server.stored().1, Vec::<String>::new());
    }
}

#[test]
fn an_entry_whose_value_no_caller_can_have_is_counted_and_can_be_removed() {
    let server = Server::start(TEXT, 64);
    server.list("not a number");
    let server = server.change("kind = 'cpf_cnpj'", 64, false);
    assert_eq!(server.app.engine().orphaned_entries_and_facts(), (1, 0));
    assert!(server.unlist("not a number") && !server.unlist("not a number"));
    assert_eq!(server.app.engine().orphaned_entries_and_facts(), (0, 0));
}

/// A private fact is in memory under its value, and in the records under a pseudonym of it.
#[test]
fn a_private_fact_follows_a_new_kind_over_a_restart() {
    let server = Server::start("private = true", 64);
    server.set("email", "D@x.com", "plan", "gold");
    let private = format!("{CASELESS}\nprivate = true");
    let server = server.change(&private, 64, false);
    assert_eq!(server.limit("api", "email", "d@x.com"), Some(3));
    let server = server.restart(&private, 64);
    assert_eq!(server.limit("api", "email", "D@x.com"), Some(3));
    // From clear to private, with another kind at once.
    for while_stopped in [false, true] {
        let server = Server::start(TEXT, 64);
        server.list("C@x.com");
        server.set("email", "D@x.com", "plan", "gold");
        let server = server.change(&private, 64, while_stopped).restart(&private, 64);
        assert_eq!(server.reason("c@x.com"), "blocklisted");
        assert_eq!(server.limit("api", "email", "d@x.com"), Some(3));
    }
}
