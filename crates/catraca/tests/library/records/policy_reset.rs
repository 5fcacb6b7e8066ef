//! Reset of a policy for all subjects: no earlier state decides any more, also after a restart.

use std::sync::Arc;

use catraca::core::cell::block::Origin;
use catraca::core::limit::BucketTerms;
use catraca::records::{
    AuditQuery, BlockEvent, BlockQuery, DebtEvent, Operator, PolicyReset, Record, RecordKind,
    Records,
};
use catraca::{App, BlockProposal, Check, Credit, Engine, Outcome, Settle, Subject, Time};

use super::helpers::{
    ANA, START, TestDatabase, app, app_over, app_passes, at, block_on, block_record, builder,
    engine, engine_at, excess_block, passes, secs, subject_key, write,
};

const CATALOG: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "2 per 1h"
    block  = "15m"

    [policy.search]
    by     = ["ip"]
    window = "1 per 1h"
    block  = "15m"

    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 100, refill = "1 per 1h" }
    cost   = { "404" = 20, default = 1 }
    credit = { payment = { amount = 5, on = ["404"] } }
    debt   = true
    ban    = [ { when = "status == 403", for = "10m", reason = "refused upstream" } ]
"#;

const HERE: [(&str, &str); 1] = [("ip", "198.51.100.7")];
const THERE: [(&str, &str); 1] = [("ip", "198.51.100.8")];

fn active_blocks(records: &Records, now: Time) -> Vec<(String, String)> {
    records.flush().unwrap();
    let page = records.blocks(&BlockQuery { limit: 1_000, ..BlockQuery::default() }, now).unwrap();
    let rows = page.rows.into_iter();
    rows.map(|row| (row.subject.policy, row.subject.parts[0].1.clone())).collect()
}

/// Resets a policy durably as an operator, and sweeps; returns how many blocks ended.
fn reset(app: &App, policy: &str, why: &str) -> u64 {
    let reset = block_on(app.reset_policy(&Operator { why: Some(why), ..ANA }, policy)).unwrap();
    assert!(reset.durable);
    reset.blocks.unwrap()
}

fn sweep(records: &Records, now: Time) -> usize {
    let mut ended = 0;
    loop {
        let swept = records.sweep(now).unwrap();
        ended += swept.blocks.len();
        if !swept.more {
            return ended;
        }
    }
}

#[test]
fn everybody_begins_anew_and_nobody_else_does() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (app, clock) = app(CATALOG, &records);
    for ip in [&HERE, &THERE] {
        assert_eq!([0; 3].map(|_| app_passes(&app, "login", ip)), [true, true, false]);
        assert_eq!([0; 2].map(|_| app_passes(&app, "search", ip)), [true, false]);
    }
    let other = Check { namespace: "other", ..Check::new("login", HERE) };
    let passes_there = || block_on(app.check(&other)).unwrap().allowed;
    assert_eq!([0; 3].map(|_| passes_there()), [true, true, false]);
    clock.advance(secs(1));
    assert_eq!(reset(&app, "login", "the limit was wrong"), 3);
    for ip in [&HERE, &THERE] {
        assert_eq!([0; 3].map(|_| app_passes(&app, "login", ip)), [true, true, false]);
        assert!(!app_passes(&app, "search", ip), "another policy");
    }
    assert!(passes_there(), "every namespace");
    assert!(app.engine().reset_policy("nothing").is_err());
    assert!(block_on(app.reset_policy(&ANA, "nothing")).is_err());
}

#[test]
fn it_stays_so_after_a_restart_from_an_older_snapshot() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    assert_eq!([0; 3].map(|_| app_passes(&before, "login", &HERE)), [true, true, false]);
    assert!(app_passes(&before, "login", &THERE), "counted, not blocked");
    let snapshot = std::env::temp_dir().join(format!("catraca-whole-{}", std::process::id()));
    clock.advance(secs(1));
    let begun = before.now();
    before.engine().store().snapshot(&snapshot).unwrap();
    clock.advance(secs(1));
    reset(&before, "login", "the limit was wrong");
    assert!(app_passes(&before, "login", &HERE));
    drop((before, records));

    let records = Arc::new(database.open());
    let (engine, _) = builder(CATALOG, &clock).restore(&snapshot).unwrap();
    let after = app_over(engine, &records);
    std::fs::remove_file(&snapshot).unwrap();
    assert_eq!(block_on(after.resume(Some(begun.into()))).unwrap().resets, 1);
    assert_eq!([0; 3].map(|_| app_passes(&after, "login", &THERE)), [true, true, false]);
    assert!(app_passes(&after, "login", &HERE), "its block is from before the reset");
    assert_eq!(active_blocks(&records, after.now()), [("login".into(), THERE[0].1.into())]);
}

#[test]
fn the_history_and_the_audit_tell_who_and_why() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (app, clock) = app(CATALOG, &records);
    assert_eq!([0; 3].map(|_| app_passes(&app, "login", &HERE)), [true, true, false]);
    records.flush().unwrap();
    let block = records.blocks(&BlockQuery::default(), START).unwrap().rows[0].clone();
    clock.advance(secs(1));
    reset(&app, "login", "the limit was wrong");
    clock.advance(secs(1));
    reset(&app, "login", "and again");
    let history = records.history(&block).unwrap();
    let rows: Vec<_> =
        history.iter().map(|row| (&*row.act, row.by.as_deref(), row.reason.as_deref())).collect();
    let wrong = Some("the limit was wrong");
    assert_eq!(rows, [("started", None, None), ("reset", Some("ana"), wrong)]);
    let audit = records.audit(&AuditQuery::default()).unwrap().rows;
    let rows: Vec<_> = audit.iter().map(|row| (&*row.by, &*row.act, &*row.target)).collect();
    assert_eq!(rows, [("ana", "reset", "login"); 2]);
    let since = |row: &Option<String>| row.as_ref().map(|text| text.contains(&at(1).to_rfc3339()));
    assert_eq!((since(&audit[1].before), since(&audit[1].after)), (None, Some(true)));
    assert_eq!((since(&audit[0].before), since(&audit[0].after)), (Some(true), Some(false)));
}

/// Another node or thread may write records that it decided before the reset.
#[test]
fn what_was_decided_before_and_is_written_after_does_not_stand() {
    let database = TestDatabase::new();
    let records = database.open();
    let reset = RecordKind::ResetPolicy(PolicyReset { policy: "login".to_owned(), epoch: at(5) });
    write(&records, vec![Record::operator(at(5), "ana", None, reset)]);
    let terms = BucketTerms { size: 10, tokens: 1, period: 1_000_000 };
    let debt =
        |epoch| DebtEvent { subject: subject_key("login", "192.0.2.1"), epoch, balance: -3, terms };
    let late =
        |epoch| match block_record(subject_key("login", "192.0.2.2"), at(900), Origin::Ban, None) {
            RecordKind::Block(block) => RecordKind::Block(Box::new(BlockEvent { epoch, ..*block })),
            other => other,
        };
    let write_at = |epoch| {
        let kinds = [late(epoch), RecordKind::Debt(Box::new(debt(epoch)))];
        write(&records, kinds.map(|kind| Record::automatic(at(6), kind)).into());
    };
    let debts = || database.rows("SELECT balance FROM debts");
    write_at(Time::ZERO);
    assert_eq!((active_blocks(&records, at(7)).len(), debts().len()), (0, 0));
    write_at(at(5));
    assert_eq!((active_blocks(&records, at(7)).len(), debts().len()), (1, 1));
    let page = records.blocks(&BlockQuery::default(), at(7)).unwrap();
    assert_eq!(records.history(&page.rows[0]).unwrap().len(), 2, "the history has every act");
}

#[test]
fn sweeping_is_bounded_and_leaves_nothing() {
    let database = TestDatabase::new();
    let records = database.open();
    let block = |policy: &str, number: u32| {
        excess_block(policy, &format!("10.0.{}.{}", number / 256, number % 256), at(0), at(900))
    };
    let all = (0..2_500).map(|number| block("login", number));
    write(&records, all.chain((0..3).map(|number| block("search", number))).collect());
    let reset = RecordKind::ResetPolicy(PolicyReset { policy: "login".to_owned(), epoch: at(5) });
    write(&records, vec![Record::operator(at(5), "ana", None, reset)]);
    let first = records.sweep(at(6)).unwrap();
    assert_eq!((first.blocks.len(), first.more), (1_000, true));
    assert_eq!(sweep(&records, at(6)), 1_500);
    assert_eq!(active_blocks(&records, at(6)).len(), 3);
    assert_eq!(sweep(&records, at(6)), 0);
}

/// A purge finishes the sweep of a killed process.
#[test]
fn a_purge_sweeps_too() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "192.0.2.1", at(0), at(900))]);
    let reset = RecordKind::ResetPolicy(PolicyReset { policy: "login".to_owned(), epoch: at(5) });
    write(&records, vec![Record::operator(at(5), "ana", None, reset)]);
    assert_eq!(active_blocks(&records, at(6)).len(), 1);
    records.purge(at(6)).unwrap();
    assert_eq!(active_blocks(&records, at(6)).len(), 0);
}

/// A reset between a check and its settle.
type ResetStep = fn(&Engine);

fn reset_one(engine: &Engine) {
    engine.reset("default", "lookup", &payer()).unwrap();
}

fn reset_all(engine: &Engine) {
    engine.reset_policy("lookup").unwrap();
}

fn payer() -> Subject<'static> {
    Subject::from([("payer", "p1")])
}

#[test]
fn what_began_before_is_settled_as_after_a_reset_of_its_key() {
    for status in [200, 404, 403] {
        let after = |between: ResetStep| {
            let database = TestDatabase::new();
            let (engine, clock) = engine(CATALOG, &Arc::new(database.open()));
            let check = Check { reference: Some("E1"), ..Check::new("lookup", payer()) };
            let ticket = engine.check(&check).unwrap().ticket.unwrap();
            clock.advance(secs(1));
            between(&engine);
            let outcome = Outcome::status(status);
            let settled = engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
            let credited = engine.credit(&Credit::new("E1", "payment", &payer())).unwrap();
            let state = engine.bucket_state("default", "lookup", &payer()).unwrap();
            let allowed = engine.peek(&Check::new("lookup", payer())).unwrap().allowed;
            (settled.rows[0].charged, credited, state.balance, state.blocked_until, allowed)
        };
        assert_eq!(after(reset_one), after(reset_all), "status {status}");
    }
}

#[test]
fn an_operators_block_made_after_it_stands() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    reset(&before, "login", "the limit was wrong");
    let subject = Subject::from(HERE);
    let proposal = BlockProposal::by_operator(secs(600), None);
    let blocked = block_on(before.block(&ANA, "default", "login", &subject, proposal)).unwrap();
    assert!(blocked.blocks[0].1.changed && blocked.durable);
    assert!(!app_passes(&before, "login", &HERE));
    drop((before, records));
    let records = Arc::new(database.open());
    let after = engine_at(CATALOG, &records, &clock);
    after.resume(&records, None).unwrap();
    assert!(!passes(&after, "login", &HERE));
    assert_eq!(active_blocks(&records, at(1)).len(), 1);
}
