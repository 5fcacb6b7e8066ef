//! Privacy: nothing private in clear on disk, retention that deletes, erasure that does not free.

use std::sync::Arc;

use catraca::core::lists::What;
use catraca::records::{
    About, BlockQuery, Deed, ListName, Options, Purged, Record, Records, Retention, Revision,
};
use catraca::{BlockOrder, Check, Engine, ManualClock, Outcome, Settle, Span, Subject};

use crate::kit::{Folder, START, at, engine, passes, secs};

const CATALOG: &str = r#"
    [policy.pay]
    each = ["customer", "session"]
    ban  = [ { when = "body.reject_id == 5", for = "10m", reason = "reject 5" } ]

    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 5, refill = "2 per 1m" }
    cost   = { "404" = 20, default = 1 }
    debt   = true
    block  = "1h"

    [policy.api]
    by     = ["token"]
    window = "1 per 1m"
    block  = "1h"

    [attribute.payer]
    kind    = "cpf_cnpj"
    private = true

    [attribute.customer]
    private = true
"#;

pub const PLANTED: [&str; 4] = ["customer-4711", "session-8a9b", "52998224725", "token-c0ffee"];

/// Does a bit of everything with the planted values.
fn act_on_planted(engine: &Engine, records: &Records) {
    let identities = [("customer", PLANTED[0]), ("session", PLANTED[1])];
    let ticket = engine.check(&Check::new("pay", identities)).unwrap().ticket.unwrap();
    let body = serde_json::json!({ "reject_id": 5 });
    let rejected = Outcome { status: Some(400), body, ..Outcome::default() };
    engine.settle(&Settle::ticket(&ticket, &rejected)).unwrap();
    let ticket = engine.check(&Check::new("lookup", [("payer", PLANTED[2])])).unwrap().ticket;
    let missing = Outcome { status: Some(404), ..Outcome::default() };
    engine.settle(&Settle::ticket(&ticket.unwrap(), &missing)).unwrap();
    assert!(passes(engine, "api", &[("token", PLANTED[3])]));
    assert!(!passes(engine, "api", &[("token", PLANTED[3])]));
    let order = BlockOrder {
        namespace: "default",
        policy: "pay",
        subject: Subject::from(identities),
        span: secs(3600),
        reason: Some("fraud"),
    };
    let (_, receipt) = records.acknowledged(Some("ana"), None, || engine.block(&order).unwrap());
    assert!(receipt.wait().is_durable());
    for (attribute, value) in identities {
        let about = engine.known_as(attribute, value).unwrap().swap_remove(0);
        let facts = Deed::State(about, vec![("plan".to_owned(), "gold".to_owned())]);
        let receipt = records.record(vec![Record::operator(START, "ana", None, facts)]);
        assert!(receipt.wait().is_durable());
    }
    records.flush().unwrap();
}

pub fn set_up(options: Options) -> (Folder, Arc<Records>, Engine, ManualClock) {
    let folder = Folder::new();
    let records = Arc::new(Records::open(&folder.url(), options).unwrap());
    let (engine, clock) = engine(CATALOG, &records);
    act_on_planted(&engine, &records);
    (folder, records, engine, clock)
}

/// covers: B-14
#[test]
fn no_planted_identifier_is_in_any_file() {
    let (folder, records, engine, _) = set_up(Options::default());
    let named = engine.known_as("customer", PLANTED[0]).unwrap();
    let looked_for = |when: &str| {
        for planted in PLANTED {
            assert!(!folder.holds(planted), "{planted} {when}");
        }
        // The search itself must be able to find something.
        assert!(folder.holds(&named[0].value), "{when}");
    };
    looked_for("while open");
    let shown = folder.rows("SELECT identifier FROM buyer_rate_limits").concat();
    assert!(shown.len() == 6 && shown.iter().all(|name| name.starts_with('~')), "{shown:?}");
    folder.back_up(&records);
    drop((engine, records));
    looked_for("after closing");
}

/// covers: X-27, B-56
#[test]
fn what_is_over_its_time_is_gone_from_the_disk() {
    let days = |number: i64| Span::from_secs(number * 86_400);
    let retention = Retention { history: days(30), audit: days(60), counts: days(10) };
    let (folder, records, engine, _) = set_up(Options { retention });
    let revision = |number: u32| Revision { revision: format!("r{number}"), policies: None };
    for number in 0..2 {
        let deed = Deed::Revise(revision(number));
        assert!(records.record(vec![Record::automatic(START, deed)]).wait().is_durable());
    }
    let name = engine.known_as("token", PLANTED[3]).unwrap().swap_remove(0).value;
    assert!(folder.holds(&name));
    assert!(records.purge(START.after(days(1))).unwrap().is_empty());
    let first = records.purge(START.after(days(11))).unwrap();
    assert!(first.counts > 0 && Purged { counts: 0, ..first }.is_empty(), "{first:?}");
    let second = records.purge(START.after(days(31))).unwrap();
    assert!(second.blocks == 4 && second.history == 6 && second.subjects == 4, "{second:?}");
    assert!(!folder.holds(&name));
    let third = records.purge(START.after(days(61))).unwrap();
    assert!(third.audit > 0, "{third:?}");
    assert_eq!(records.revisions(9).unwrap().len(), 1, "the one in force stays");
}

/// covers: X-28
#[test]
fn erasure_removes_what_has_ended_and_reports_what_stands() {
    let (folder, records, engine, _) = set_up(Options::default());
    let about = engine.known_as("customer", PLANTED[0]).unwrap();
    let name = about[0].value.clone();
    let before = records.export(&about).unwrap();
    assert_eq!((before.blocks.len(), before.blocks[0].1.len(), before.facts.len()), (1, 2, 1));
    assert!(!before.audit.is_empty());
    let early = records.erase(&about, at(60)).unwrap();
    assert_eq!((early.retained_blocks, early.blocks, early.facts), (1, 0, 1));
    assert_eq!(records.blocks(&page(&about), at(60)).unwrap().rows.len(), 1);
    let late = records.erase(&about, at(3600)).unwrap();
    assert_eq!((late.retained_blocks, late.blocks), (0, 1));
    let after = records.export(&about).unwrap();
    assert!(after.blocks.is_empty() && after.facts.is_empty() && after.audit.is_empty());
    assert!(!folder.holds(&name));
    let other = engine.known_as("session", PLANTED[1]).unwrap();
    assert_eq!(records.export(&other).unwrap().blocks.len(), 1, "nobody else's is touched");
}

/// An entry that is over stood in the way of taking the name out of the audit.
#[test]
fn erasure_takes_entries_that_are_over_along_and_keeps_those_that_stand() {
    let (folder, records, engine, _) = set_up(Options::default());
    for (value, until) in [("over-991", Some(at(60))), ("stands-992", None)] {
        let about = engine.known_as("plan", value).unwrap();
        let About { attribute, value: name } = about[0].clone();
        let what = What::Value { attribute, value: name };
        let deed = Deed::List(ListName::Block, what, until);
        let listed = Record::operator(at(0), "ana", None, deed);
        assert!(records.record(vec![listed]).wait().is_durable());
        let erased = records.erase(&about, at(61)).unwrap();
        assert_eq!(erased.retained_lists, u64::from(until.is_none()));
        let left = records.export(&about).unwrap();
        let stands = usize::from(until.is_none());
        assert_eq!((left.lists.len(), left.audit.len()), (stands, stands));
        assert_eq!(folder.holds(value), until.is_none(), "{value}");
    }
}

fn page(about: &[About]) -> BlockQuery {
    BlockQuery { about: about.to_vec(), ..BlockQuery::default() }
}

#[test]
fn a_debt_that_stands_keeps_its_subject() {
    let (_folder, records, engine, _) = set_up(Options::default());
    let about = engine.known_as("payer", PLANTED[2]).unwrap();
    let erased = records.erase(&about, at(86_400)).unwrap();
    assert_eq!((erased.retained_debts, erased.blocks), (1, 0));
}
