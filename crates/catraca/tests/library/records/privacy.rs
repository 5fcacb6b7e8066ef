//! Privacy: no private value on disk in clear, retention, and erasure that does not end blocks.

use std::sync::Arc;

use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::records::{
    AttributeValue, AuditQuery, BlockQuery, ListName, Options, PurgeCounts, Record, RecordKind,
    Records, Retention, Revision,
};
use catraca::{App, BlockProposal, Check, ManualClock, Outcome, Settle, Span, Subject};

use super::helpers::{
    ANA, START, TestDatabase, app, app_passes, at, block_on, engine, passes, secs,
};

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

/// Creates bans, debts, blocks and facts with the planted values.
fn act_on_planted(app: &App, records: &Records) {
    let identities = [("customer", PLANTED[0]), ("session", PLANTED[1])];
    let ticket = block_on(app.check(&Check::new("pay", identities))).unwrap().ticket.unwrap();
    let body = serde_json::json!({ "reject_id": 5 });
    let rejected = Outcome { status: Some(400), body, ..Outcome::default() };
    block_on(app.settle(&Settle::ticket(&ticket, &rejected))).unwrap();
    let lookup = Check::new("lookup", [("payer", PLANTED[2])]);
    let ticket = block_on(app.check(&lookup)).unwrap().ticket;
    let missing = Outcome { status: Some(404), ..Outcome::default() };
    block_on(app.settle(&Settle::ticket(&ticket.unwrap(), &missing))).unwrap();
    assert!(app_passes(app, "api", &[("token", PLANTED[3])]));
    assert!(!app_passes(app, "api", &[("token", PLANTED[3])]));
    let subject = Subject::from(identities);
    let proposal = BlockProposal::by_operator(secs(3600), Some("fraud"));
    assert!(block_on(app.block(&ANA, "default", "pay", &subject, proposal)).unwrap().durable);
    for (attribute, value) in identities {
        let about = app.stored_values(attribute, value).unwrap().swap_remove(0);
        let facts = RecordKind::SetFacts {
            namespace: None,
            about,
            facts: vec![("plan".to_owned(), "gold".to_owned())],
        };
        let receipt = records.record(vec![Record::operator(START, "ana", None, facts)]);
        assert!(receipt.wait().is_durable());
    }
    records.flush().unwrap();
}

pub fn set_up(options: Options) -> (TestDatabase, Arc<Records>, App, ManualClock) {
    let database = TestDatabase::new();
    let records = Arc::new(Records::open(&database.url(), options).unwrap());
    let (app, clock) = app(CATALOG, &records);
    act_on_planted(&app, &records);
    (database, records, app, clock)
}

/// covers: B-14
#[test]
fn no_planted_identifier_is_in_any_file() {
    let (database, records, app, _) = set_up(Options::default());
    let named = app.stored_values("customer", PLANTED[0]).unwrap();
    let assert_only_pseudonyms = |when: &str| {
        for planted in PLANTED {
            assert!(!database.holds(planted), "{planted} {when}");
        }
        // The search must be able to find a value that is there.
        assert!(database.holds(&named[0].value), "{when}");
    };
    assert_only_pseudonyms("while open");
    // An attempt that started no block has no identifier.
    let query = "SELECT identifier FROM buyer_rate_limits WHERE identifier IS NOT NULL";
    let identifiers = database.rows(query).concat();
    assert!(
        identifiers.len() == 6 && identifiers.iter().all(|name| name.starts_with('~')),
        "{identifiers:?}"
    );
    database.back_up(&records);
    drop((app, records));
    assert_only_pseudonyms("after closing");
}

/// covers: 000-14
#[test]
fn the_list_of_the_blocked_has_their_pseudonyms_as_blocked_id() {
    let (database, _records, app, _) = set_up(Options::default());
    for (attribute, value) in [("customer", PLANTED[0]), ("session", PLANTED[1])] {
        let subject = Subject::from([(attribute, value)]);
        let proposal = BlockProposal::by_operator(Span::FOREVER, Some("fraud"));
        assert!(block_on(app.block(&ANA, "default", "pay", &subject, proposal)).unwrap().durable);
        let name = app.stored_values(attribute, value).unwrap().swap_remove(0).value;
        assert!(name.starts_with('~') && name != value);
        let sql = format!("SELECT unblockTime FROM rate_limit_tracking WHERE blockedID = '{name}'");
        assert_eq!(database.rows(&sql), [["9999-12-31T23:59:59.999Z"]]);
    }
    for planted in PLANTED {
        assert!(!database.holds(planted), "{planted}");
    }
}

/// A purge that has seen a block end must not delete the block that was started after it.
///
/// covers: B-08
#[test]
fn a_ban_that_was_renewed_after_its_end_is_not_cleaned_away() {
    let database = TestDatabase::new();
    let days = |number: i64| Span::from_secs(number * 86_400);
    let retention =
        Retention { history: secs(3_600).into(), audit: days(60).into(), counts: days(10).into() };
    let records = Arc::new(
        Records::open(&database.url(), Options { retention, ..Options::default() }).unwrap(),
    );
    let (engine, clock) = engine(CATALOG, &records);
    let subject = Subject::from([("token", "t")]);
    let proposal = |seconds| BlockProposal::by_operator(secs(seconds), None);
    engine.block("default", "api", &subject, proposal(60)).unwrap();
    records.flush().unwrap();
    let read = records.blocks(&BlockQuery::default(), at(0)).unwrap().rows;
    assert_eq!((read.len(), read[0].block.until), (1, at(60)));
    clock.set(at(61));
    assert!(passes(&engine, "api", &[("token", "t")]), "it has ended");
    engine.block("default", "api", &subject, proposal(86_400)).unwrap();
    records.flush().unwrap();
    // The first end is older than the retention; the end of the renewed block is not.
    clock.set(at(60 + 3_601));
    assert!(records.purge(at(60 + 3_601)).unwrap().is_empty());
    let left = records.blocks(&BlockQuery::default(), at(60 + 3_601)).unwrap().rows;
    assert_eq!((left.len(), left[0].block.until), (1, at(61 + 86_400)));
    assert!(!passes(&engine, "api", &[("token", "t")]));
    assert_eq!(
        records.purge(at(61 + 86_400 + 3_601)).unwrap().blocks,
        1,
        "a purge after the end deletes it"
    );
}

/// covers: X-27, B-56
#[test]
fn what_is_over_its_time_is_gone_from_the_disk() {
    let days = |number: i64| Span::from_secs(number * 86_400);
    let retention =
        Retention { history: days(30).into(), audit: days(60).into(), counts: days(10).into() };
    let (database, records, app, _) = set_up(Options { retention, ..Options::default() });
    let revision = |number: u32| Revision { revision: format!("r{number}"), policies: None };
    for number in 0..2 {
        let kind = RecordKind::Catalog(revision(number));
        assert!(records.record(vec![Record::automatic(START, kind)]).wait().is_durable());
    }
    let name = app.stored_values("token", PLANTED[3]).unwrap().swap_remove(0).value;
    assert!(database.holds(&name));
    assert!(records.purge(START.after(days(1))).unwrap().is_empty());
    let first = records.purge(START.after(days(11))).unwrap();
    assert!(first.counts > 0 && PurgeCounts { counts: 0, ..first }.is_empty(), "{first:?}");
    let second = records.purge(START.after(days(31))).unwrap();
    assert!(second.blocks == 4 && second.history == 6 && second.subjects == 4, "{second:?}");
    assert!(!database.holds(&name));
    let third = records.purge(START.after(days(61))).unwrap();
    assert!(third.audit > 0, "{third:?}");
    assert_eq!(records.revisions(9).unwrap().len(), 1, "the current revision stays");
}

/// covers: X-28
#[test]
fn erasure_removes_what_has_ended_and_reports_what_stands() {
    let (database, records, app, _) = set_up(Options::default());
    let about = app.stored_values("customer", PLANTED[0]).unwrap();
    let name = about[0].value.clone();
    let before = records.export(&about, None).unwrap();
    assert_eq!((before.blocks.len(), before.blocks[0].1.len(), before.facts.len()), (1, 2, 1));
    assert!(!before.audit.is_empty());
    let early = records.erase(&about, None, at(60)).unwrap();
    assert_eq!((early.retained_blocks, early.blocks, early.facts), (1, 0, 1));
    assert_eq!(records.blocks(&page(&about), at(60)).unwrap().rows.len(), 1);
    let late = records.erase(&about, None, at(3600)).unwrap();
    assert_eq!((late.retained_blocks, late.blocks), (0, 1));
    let after = records.export(&about, None).unwrap();
    assert!(after.blocks.is_empty() && after.facts.is_empty() && after.audit.is_empty());
    assert!(!database.holds(&name));
    let other = app.stored_values("session", PLANTED[1]).unwrap();
    assert_eq!(
        records.export(&other, None).unwrap().blocks.len(),
        1,
        "other subjects are unchanged"
    );
}

/// Regression: an active block retained the history and the audit of all earlier blocks of its key.
#[test]
fn erasure_keeps_of_an_active_block_only_what_explains_it() {
    let (database, records, app, clock) = set_up(Options::default());
    let subject = Subject::from([("token", "token-77")]);
    let reasons = ["first-771", "second-772", "third-773"];
    for (number, reason) in reasons.into_iter().enumerate() {
        clock.set(at(100 + 60 * number as i64));
        let proposal = BlockProposal::by_operator(secs(3_600), Some(reason));
        let done = block_on(app.block(&ANA, "default", "api", &subject, proposal)).unwrap();
        if reason != "third-773" {
            clock.set(at(101 + 60 * number as i64));
            block_on(app.release(&ANA, done.blocks[0].2.unwrap(), None, false)).unwrap();
        }
    }
    let proposal = BlockProposal::by_operator(secs(7_200), Some("longer-774"));
    block_on(app.block(&ANA, "default", "api", &subject, proposal)).unwrap();
    let about = app.stored_values("token", "token-77").unwrap();
    let before = records.export(&about, None).unwrap();
    assert_eq!((before.blocks[0].1.len(), before.audit.len()), (6, 6));
    let erased = records.erase(&about, None, at(300)).unwrap();
    assert_eq!((erased.retained_blocks, erased.blocks, erased.audit), (1, 2, 4));
    let [(block, steps)] = &records.export(&about, None).unwrap().blocks[..] else { panic!() };
    let steps: Vec<_> = steps.iter().map(|step| step.reason.as_deref().unwrap()).collect();
    assert_eq!(steps, ["third-773", "longer-774"]);
    assert_eq!(block.block.note.reason.as_deref(), Some("longer-774"));
    assert_eq!(records.export(&about, None).unwrap().audit.len(), 2);
    for gone in &reasons[..2] {
        assert!(!database.holds(gone), "{gone}");
    }
    assert!(!app_passes(&app, "api", &[("token", "token-77")]), "the block is active");
    assert_eq!(records.erase(&about, None, at(99_999)).unwrap().blocks, 1, "the block has ended");
    assert!(!database.holds("third-773") && !database.holds(&about[0].value));
}

/// Regression: an expired list entry prevented the erasure of the name from the audit.
#[test]
fn erasure_takes_entries_that_are_over_along_and_keeps_those_that_stand() {
    let (database, records, app, _) = set_up(Options::default());
    for (value, until) in [("over-991", Some(at(60))), ("active-992", None)] {
        let about = app.stored_values("plan", value).unwrap();
        let AttributeValue { attribute, value: name } = about[0].clone();
        let what = ListTarget::Value { attribute, value: name };
        let kind = RecordKind::List(
            ListName::Block,
            AccessListEntry { namespace: None, target: what, reason: None, until },
        );
        let listed = Record::operator(at(0), "ana", None, kind);
        assert!(records.record(vec![listed]).wait().is_durable());
        let erased = records.erase(&about, None, at(61)).unwrap();
        assert_eq!(erased.retained_lists, u64::from(until.is_none()));
        let left = records.export(&about, None).unwrap();
        let retained = usize::from(until.is_none());
        assert_eq!((left.lists.len(), left.audit.len()), (retained, retained));
        assert_eq!(database.holds(value), until.is_none(), "{value}");
    }
}

/// The lines of the audit that contain this text.
fn audit_lines_with(records: &Records, needle: &str) -> Vec<String> {
    let rows = records.audit(&AuditQuery { limit: 100, ..AuditQuery::default() }).unwrap().rows;
    rows.iter().map(|row| format!("{row:?}")).filter(|row| row.contains(needle)).collect()
}

/// Regression: an address is listed as a range, so its audit lines were not found by the address,
/// and reasons that contain the value stayed.
#[test]
fn erasure_reaches_entries_that_were_taken_off_long_ago_and_addresses() {
    let (database, records, app, _) = set_up(Options::default());
    let plan = ListTarget::Value { attribute: "plan".to_owned(), value: "gone-993".to_owned() };
    let range = |text: &str| ListTarget::Range(AddressRange::parse(text).unwrap());
    let cases = [
        ("plan", "gone-993", plan),
        ("ip", "198.51.100.93", range("198.51.100.93")),
        ("ip", "2001:db8::93", range("2001:db8::93")),
    ];
    for (attribute, value, what) in cases {
        let reason = Some(format!("{value} is a nuisance"));
        let by = |kind| Record::operator(at(0), "ana", Some(&format!("case {value}")), kind);
        let entry = |until| AccessListEntry {
            namespace: None,
            target: what.clone(),
            reason: reason.clone(),
            until,
        };
        let on = |list, until| RecordKind::List(list, entry(until));
        let acts = vec![
            by(on(ListName::Block, None)),
            by(RecordKind::Unlist(ListName::Block, entry(None))),
            by(on(ListName::Allow, Some(at(60)))),
        ];
        assert!(records.record(acts).wait().is_durable());
        let about = app.stored_values(attribute, value).unwrap();
        assert_eq!(records.export(&about, None).unwrap().audit.len(), 3);
        // The allowlist entry is still active, so its line stays; the lines of the blocklist are
        // erased.
        let early = records.erase(&about, None, at(59)).unwrap();
        assert_eq!((early.audit, early.retained_lists), (2, 1), "{value}");
        assert_eq!(audit_lines_with(&records, value).len(), 1, "{value}");
        let late = records.erase(&about, None, at(60)).unwrap();
        assert_eq!((late.audit, late.retained_lists), (1, 0), "{value}");
        assert_eq!(audit_lines_with(&records, value), Vec::<String>::new());
        assert!(!database.holds(value), "{value}");
    }
    let kinds = audit_lines_with(&records, "(erased)");
    assert_eq!(kinds.len(), 9);
    let left = |words: [&str; 3]| {
        kinds.iter().filter(|row| words.iter().all(|word| row.contains(word))).count()
    };
    assert_eq!(left(["\"ana\"", "\"unlist\"", "\"blocklist (erased)\""]), 3, "{kinds:?}");
    assert_eq!(left(["\"ana\"", "\"list\"", "\"allowlist (erased)\""]), 3, "{kinds:?}");
}

fn page(about: &[AttributeValue]) -> BlockQuery {
    BlockQuery { about: about.to_vec(), ..BlockQuery::default() }
}

/// Regression: an active entry retained the audit of earlier entries about the same value.
#[test]
fn erasure_keeps_of_an_active_entry_only_its_own_audit() {
    let (database, records, app, _) = set_up(Options::default());
    let about = app.stored_values("plan", "plan-995").unwrap();
    let target = ListTarget::Value { attribute: "plan".to_owned(), value: "plan-995".to_owned() };
    let entry = |reason: &str| {
        let reason = Some(reason.to_owned());
        AccessListEntry { namespace: None, target: target.clone(), reason, until: None }
    };
    let list = |reason: &str| RecordKind::List(ListName::Block, entry(reason));
    let unlist = RecordKind::Unlist(ListName::Block, entry("old-996"));
    for (second, kind) in [(0, list("old-996")), (1, unlist), (2, list("new-997"))] {
        let record = Record::operator(at(second), "ana", Some("case"), kind);
        assert!(records.record(vec![record]).wait().is_durable());
    }
    let erased = records.erase(&about, None, at(3)).unwrap();
    assert_eq!((erased.audit, erased.retained_lists), (2, 1));
    assert!(!database.holds("old-996") && database.holds("new-997"));
}

#[test]
fn a_debt_that_stands_keeps_its_subject() {
    let (_database, records, app, _) = set_up(Options::default());
    let about = app.stored_values("payer", PLANTED[2]).unwrap();
    // The block that the debt had started has ended.
    for blocks in [1, 0] {
        let erased = records.erase(&about, None, at(86_400)).unwrap();
        assert_eq!((erased.retained_debts, erased.blocks), (1, blocks));
    }
}

/// Regression: a debt retained the ended blocks of its key.
#[test]
fn a_debt_that_stands_keeps_no_ended_block() {
    let (database, records, app, _) = set_up(Options::default());
    let payer = Subject::from([("payer", PLANTED[2])]);
    let proposal = BlockProposal::by_operator(secs(60), Some("ended-998"));
    assert!(block_on(app.block(&ANA, "default", "lookup", &payer, proposal)).unwrap().durable);
    let about = app.stored_values("payer", PLANTED[2]).unwrap();
    let erased = records.erase(&about, None, at(86_400)).unwrap();
    assert_eq!((erased.retained_debts, erased.blocks, erased.audit), (1, 1, 1));
    assert!(records.export(&about, None).unwrap().blocks.is_empty());
    assert!(!database.holds("ended-998"));
}
