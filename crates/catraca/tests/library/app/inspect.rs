//! Inspect: all there is to know of a subject, without a change.

use catraca::app::{
    EntrySource, FactMap, INSPECTED_BLOCKS_MAX, INSPECTED_ENDED_MAX, InspectedPolicy,
};
use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::records::ListName;
use catraca::{App, Catalog, Check, ManualClock, Reason, Span, Subject};

use super::helpers::{
    ANA, CATALOG, IP, RecordsFile, START, app_with, app_with_clock, app_without_records, check,
    proposal, subject,
};

fn policy<'i>(policies: &'i [InspectedPolicy], name: &str) -> &'i InspectedPolicy {
    policies.iter().find(|policy| &*policy.row.policy == name).unwrap()
}

async fn list_subject(app: &App) {
    let target = ListTarget::Range(AddressRange::parse("192.0.2.0/24").unwrap());
    let entry = AccessListEntry { namespace: None, target, reason: None, until: None };
    app.add_to_list(&ANA, ListName::Allow, vec![(entry, None)], false).await.unwrap();
}

#[tokio::test]
async fn a_subject_is_shown_with_its_list_figures_facts_and_blocks() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    check(&app, "pay").await;
    check(&app, "pay").await;
    let before = app.inspect("default", &subject()).await.unwrap();
    assert!(before.list.is_none());
    assert_eq!((before.blocks.len(), before.policies.len()), (0, 2));
    assert_eq!(policy(&before.policies, "login").row.remaining, Some(3));
    assert_eq!(before.facts, FactMap::from([("country".to_owned(), "pt".to_owned())]));

    app.block(&ANA, "default", "login", &subject(), proposal(Some("fraud"))).await.unwrap();
    let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
    app.set_facts(&ANA, None, "ip", IP, gold).await.unwrap();
    list_subject(&app).await;
    let after = app.inspect("default", &subject()).await.unwrap();
    assert_eq!(after.list.unwrap().decision, Reason::Allowlisted);
    let login = policy(&after.policies, "login");
    assert!(!login.row.allowed, "a list must not hide the figures");
    assert_eq!(policy(&after.policies, "pay").row.balance, Some(8));
    assert_eq!(after.facts.keys().collect::<Vec<_>>(), ["country", "plan"]);
    let [block] = &after.blocks[..] else { panic!("{:?}", after.blocks) };
    let reason = block.block.note.reason.as_deref();
    assert_eq!((&*block.subject.policy, reason), ("login", Some("fraud")));

    let other = app.inspect("default", &Subject::from([("ip", "198.51.100.7")])).await.unwrap();
    assert!(other.list.is_none());
    assert_eq!((other.blocks.len(), other.facts.len()), (0, 0));
    let elsewhere = app.inspect("elsewhere", &subject()).await.unwrap();
    assert_eq!(elsewhere.blocks.len(), 0, "blocks of another namespace");
}

/// Regression: an inspection did not say why, until when and by whom a caller is listed.
#[tokio::test]
async fn the_entry_that_decides_is_shown_with_its_origin() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let catalog = format!("{CATALOG}\n[[blocklist]]\nrange = '192.0.2.0/24'\nreason = 'abuse'\n");
    app.engine().reload(Catalog::parse(&catalog).unwrap());
    let by_catalog = app.inspect("default", &subject()).await.unwrap().list.unwrap();
    assert_eq!(by_catalog.decision, Reason::Blocklisted);
    assert_eq!(by_catalog.entry.reason.as_deref(), Some("abuse"));
    assert_eq!(by_catalog.source, EntrySource::Catalog);

    let target = ListTarget::Range(AddressRange::parse("192.0.2.1").unwrap());
    let until = Some(START.after(Span::from_secs(60)));
    let reason = Some("our monitoring".to_owned());
    let entry = AccessListEntry { namespace: None, target, reason, until };
    app.add_to_list(&ANA, ListName::Allow, vec![(entry.clone(), None)], false).await.unwrap();
    let by_operator = app.inspect("default", &subject()).await.unwrap().list.unwrap();
    assert_eq!((by_operator.decision, by_operator.entry), (Reason::Allowlisted, entry));
    let source = EntrySource::RunTime { since: Some(START), by: Some("ana".to_owned()) };
    assert_eq!(by_operator.source, source);
}

#[tokio::test]
async fn the_value_of_a_listed_private_attribute_is_a_pseudonym() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let catalog = format!(
        "{CATALOG}\n[attribute.customer]\nprivate = true\n\
         [[blocklist]]\nattribute = 'customer'\nvalue = 'c-4711'\n"
    );
    app.engine().reload(Catalog::parse(&catalog).unwrap());
    let subject = Subject::from([("customer", "c-4711")]);
    let found = app.inspect("default", &subject).await.unwrap().list.unwrap();
    assert!(!format!("{found:?}").contains("c-4711"), "{found:?}");
}

#[tokio::test]
async fn an_inspection_changes_nothing() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    check(&app, "login").await;
    check(&app, "login").await;
    check(&app, "pay").await;
    let first = app.inspect("default", &subject()).await.unwrap();
    let buckets = app.buckets("default", &subject()).await.unwrap();
    for _ in 0..9 {
        let next = app.inspect("default", &subject()).await.unwrap();
        assert_eq!(next.policies, first.policies);
    }
    assert_eq!(app.buckets("default", &subject()).await.unwrap(), buckets);
    assert!(check(&app, "login").await.allowed, "the third of three");
    assert!(!check(&app, "login").await.allowed);
}

/// There are no blocks to show, because only records contain them by name.
#[tokio::test]
async fn it_works_without_records() {
    let app = app_without_records();
    app.block_unaudited("default", "login", &subject(), proposal(Some("fraud"))).await.unwrap();
    let found = app.inspect("default", &subject()).await.unwrap();
    assert!(!policy(&found.policies, "login").row.allowed);
    assert!(found.blocks.is_empty());
}

/// Regression: the first page of fifty, without a sign that there are more.
#[tokio::test]
async fn all_blocks_are_shown_up_to_a_bound_that_is_told() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let pair = "[policy.pair]\nby = ['ip', 'session']\nwindow = '9 per 1h'\n";
    app.engine().reload(Catalog::parse(&format!("{CATALOG}{pair}")).unwrap());
    let max = INSPECTED_BLOCKS_MAX as usize;
    for (blocks, more) in [(60, false), (max, false), (max + 1, true)] {
        let before = app.inspect("default", &subject()).await.unwrap().blocks.len();
        for session in before..blocks {
            let session = session.to_string();
            let of_session = Subject::from([("ip", IP), ("session", &session)]);
            app.block_unaudited("default", "pair", &of_session, proposal(None)).await.unwrap();
        }
        let found = app.inspect("default", &subject()).await.unwrap();
        assert_eq!((found.blocks.len(), found.more_blocks), (blocks.min(max), more));
    }
}

const TIERS: &str = "[policy.api]\nby = ['customer']\nwindow = '5 per 1h'\n\
    tier = [ { when = { method = ['POST', 'PUT'] }, window = '1 per 1h' },\n\
             { when = { plan = 'gold' }, window = '9 per 1h' } ]\n\
    [policy.writes]\nby = ['customer']\n\
    tier = [ { when = { method = 'POST' }, window = '1 per 1h' } ]\n\
    [facts.customer.c1]\nplan = 'silver'\n";

/// The tiers of the rows of a policy, and whether each passes.
async fn rows(app: &App, name: &str, subject: &[(&str, &str)]) -> Vec<(String, bool)> {
    let subject: Subject<'_> = subject.iter().copied().collect();
    let found = app.inspect("default", &subject).await.unwrap().policies;
    let own = found.iter().filter(|policy| &*policy.row.policy == name);
    own.map(|policy| (format!("{:?}", policy.tier), policy.row.allowed)).collect()
}

/// Regression: a customer that the counter of its POST requests denied was shown as free.
#[tokio::test]
async fn tiers_with_counters_of_their_own_are_shown() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    app.engine().reload(Catalog::parse(&format!("{CATALOG}{TIERS}")).unwrap());
    let none = "None".to_owned();
    let post_or_put = r#"Some([("method", ["POST", "PUT"])])"#.to_owned();
    let post = r#"Some([("method", ["POST"])])"#.to_owned();
    let customer = [("customer", "c1")];
    let posts = [("customer", "c1"), ("method", "POST")];
    for passes in [true, false] {
        // The plan is a fact about the customer: the key determines that the tier does not apply.
        let expected = [(none.clone(), true), (post_or_put.clone(), passes)];
        assert_eq!(rows(&app, "api", &customer).await, expected);
        assert_eq!(rows(&app, "writes", &customer).await, [(post.clone(), passes)]);
        for gate in ["api", "writes"] {
            assert_eq!(rows(&app, gate, &posts).await, [(none.clone(), passes)]);
            app.check(&Check::new(gate, posts)).await.unwrap();
        }
    }
    let gets = [("customer", "c1"), ("method", "GET")];
    assert_eq!(rows(&app, "api", &gets).await, [(none.clone(), true)]);
    assert_eq!(rows(&app, "writes", &gets).await, []);
    let other = [("customer", "c2")];
    assert_eq!(rows(&app, "api", &other).await, [(none, true), (post_or_put, true)]);
}

/// Regression: why the customer was blocked an hour ago was not shown.
#[tokio::test]
async fn the_last_blocks_that_have_ended_are_shown() {
    let file = RecordsFile::new();
    let clock = ManualClock::at(START);
    let app = app_with_clock(&file, &clock);
    let max = INSPECTED_ENDED_MAX as usize;
    for number in 0..=max {
        let reason = format!("case {number}");
        let block = proposal(Some(&reason));
        app.block(&ANA, "default", "login", &subject(), block).await.unwrap();
        let found = app.inspect("default", &subject()).await.unwrap();
        assert_eq!((found.blocks.len(), found.ended_blocks.len()), (1, number));
        clock.advance(Span::from_secs(601));
    }
    let found = app.inspect("default", &subject()).await.unwrap();
    let reasons = found.ended_blocks.iter().map(|row| row.block.note.reason.clone().unwrap());
    let expected = (1..=max).rev().map(|number| format!("case {number}").into());
    assert_eq!((found.blocks.len(), reasons.collect::<Vec<_>>()), (0, expected.collect()));
    let elsewhere = app.inspect("elsewhere", &subject()).await.unwrap();
    assert!(elsewhere.ended_blocks.is_empty(), "blocks of another namespace");
}
