//! The engine and its records: acknowledged acts apply again before the first decision.

use std::sync::Arc;

use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::core::policy::Mode;
use catraca::records::{BlockQuery, ListName, Operator, Record, RecordKind, Records};
use catraca::{
    AppError, BlockProposal, Check, Engine, ManualClock, Outcome, Settle, Span, Subject, Time,
};

use super::helpers::{
    ANA, START, TestDatabase, app, at, block_on, engine, engine_at, passes, secs,
};

const LOGIN: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "2 per 1m"
    block  = "15m"
"#;

/// An engine restored from the same records, as the next process restores it.
fn restart(database: &TestDatabase, catalog: &str, clock: &ManualClock) -> (Engine, Arc<Records>) {
    let records = Arc::new(database.open());
    let engine = engine_at(catalog, &records, clock);
    engine.resume(&records, None).unwrap();
    (engine, records)
}

fn fraud(span: Span) -> BlockProposal {
    BlockProposal::by_operator(span, Some("fraud"))
}

/// covers: 002-48
#[test]
fn a_block_of_a_check_stands_after_a_restart_to_its_exact_end() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = engine(LOGIN, &records);
    let ip = [("ip", "198.51.100.7")];
    assert_eq!([0; 3].map(|_| passes(&before, "login", &ip)), [true, true, false]);
    drop((before, records));
    clock.advance(secs(60));
    let (after, records) = restart(&database, LOGIN, &clock);
    assert!(!passes(&after, "login", &ip));
    let [row] = &records.blocks(&BlockQuery::default(), at(60)).unwrap().rows[..] else { panic!() };
    let subject = &row.subject;
    let found = (row.block.until, &*subject.policy, &*subject.namespace);
    assert_eq!(found, (at(900), "login", "default"));
    clock.set(Time::from_micros(at(900).micros() - 1));
    assert!(!passes(&after, "login", &ip));
    clock.set(at(900));
    assert!(passes(&after, "login", &ip));
}

/// covers: 000-11
#[test]
fn an_operators_block_is_acknowledged_and_a_release_stays_released() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(LOGIN, &records);
    let subject = Subject::from([("ip", "198.51.100.7")]);
    let ana = Operator { why: Some("case 7"), ..ANA };
    let blocked =
        block_on(before.block(&ana, "default", "login", &subject, fraud(secs(600)))).unwrap();
    let (_, reply, id) = &blocked.blocks[0];
    assert!(reply.changed && blocked.durable);
    let rui = Operator { name: "rui", why: None };
    let released = block_on(before.release(&rui, id.unwrap(), None, false)).unwrap();
    assert!(released.before.block.until == at(600) && released.durable);
    let audit = records.audit(&Default::default()).unwrap().rows;
    let acts: Vec<_> = audit.iter().map(|row| (&*row.by, &*row.act)).collect();
    assert_eq!(acts, [("rui", "release"), ("ana", "block")]);
    let other = Subject::from([("ip", "198.51.100.8")]);
    block_on(before.block_unaudited("default", "login", &other, fraud(secs(600)))).unwrap();
    drop((before, records));
    let (after, records) = restart(&database, LOGIN, &clock);
    assert!(passes(&after, "login", &[("ip", "198.51.100.7")]));
    let [row] = &records.blocks(&BlockQuery::default(), at(1)).unwrap().rows[..] else { panic!() };
    assert_eq!(
        (&*row.subject.parts[0].1, row.block.note.reason.as_deref()),
        ("198.51.100.8", Some("fraud"))
    );
}

/// A call that changes nothing has nothing to wait for.
#[test]
fn nothing_to_write_is_durable_at_once() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (app, clock) = app(LOGIN, &records);
    let subject = || Subject::from([("ip", "198.51.100.7")]);
    assert!(!block_on(app.unblock_unaudited("default", "login", &subject())).unwrap());
    assert!(records.record_events(Some(ANA), &[]).wait().is_durable());
    assert_eq!(records.health().written, 0);
    let blocked =
        block_on(app.block(&ANA, "default", "login", &subject(), fraud(secs(60)))).unwrap();
    let id = blocked.blocks[0].2.unwrap();
    let written = records.health().written;
    clock.set(at(60));
    let ended = block_on(app.release(&ANA, id, None, false));
    assert!(matches!(ended, Err(AppError::NotFound { code: "not-blocked", .. })), "{ended:?}");
    assert_eq!(records.health().written, written);
}

/// A snapshot older than a release still contains the block; the records take precedence.
#[test]
fn a_snapshots_block_that_was_released_since_is_not_brought_back() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = engine(LOGIN, &records);
    let subject = || Subject::from([("ip", "198.51.100.7")]);
    before.block("default", "login", &subject(), fraud(secs(3600))).unwrap();
    clock.advance(secs(1));
    before.unblock("default", "login", &subject()).unwrap();
    clock.advance(secs(1));
    before.block("default", "login", &subject(), fraud(secs(60))).unwrap();
    drop((before, records));
    // The block that a snapshot of the first second would have restored.
    let records = Arc::new(database.open());
    let after = engine_at(LOGIN, &records, &clock);
    clock.set(START);
    after.block("default", "login", &subject(), fraud(secs(3600))).unwrap();
    clock.set(at(3));
    records.flush().unwrap();
    after.resume(&records, Some(at(1).into())).unwrap();
    clock.set(at(61));
    assert!(!passes(&after, "login", &[("ip", "198.51.100.7")]));
    clock.set(at(62));
    assert!(passes(&after, "login", &[("ip", "198.51.100.7")]));
}

const LOOKUP: &str = r#"
    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 100, refill = "2 per 1m" }
    cost   = { "200" = 1, "404" = 20, default = 0 }
    debt   = true

    [attribute.payer]
    kind    = "cpf_cnpj"
    private = true
"#;

#[test]
fn a_debt_is_still_owed_after_a_restart() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(LOOKUP, &records);
    let check = Check::new("lookup", [("payer", "52998224725")]);
    let not_found = Outcome { status: Some(404), ..Outcome::default() };
    let mut settled = 0;
    while let Some(ticket) = block_on(before.check(&check)).unwrap().ticket {
        let done = block_on(before.settle(&Settle::ticket(&ticket, &not_found))).unwrap();
        settled = done.settlement.rows[0].balance.unwrap();
        assert_eq!(done.durable, (settled < 0).then_some(true), "a debt is on disk");
        // A refill of one unit per settle: the balance is not a multiple of the cost, so the last
        // settle leaves a debt.
        clock.advance(secs(30));
    }
    assert!(settled < 0, "{settled}");
    let owed = block_on(before.peek(&check)).unwrap().rows[0].balance;
    drop((before, records));
    let (after, _records) = restart(&database, LOOKUP, &clock);
    assert_eq!(after.peek(&check).unwrap().rows[0].balance, owed);
}

const TIERS: &str = r#"
    [policy.api]
    by     = ["token"]
    window = "1 per 1m"
    tier   = [ { when = { plan = "gold" }, window = "3 per 1m" } ]

    [facts.token.known]
    plan = "silver"
"#;

#[test]
fn a_fact_about_a_private_value_is_kept_as_a_pseudonym_and_still_found() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = engine(TIERS, &records);
    let about = before.stored_names("token", "secret-token").unwrap().swap_remove(0);
    let facts = vec![("plan".to_owned(), "gold".to_owned())];
    let state = RecordKind::SetFacts { namespace: None, about, facts };
    assert!(records.record(vec![Record::operator(at(0), "ana", None, state)]).wait().is_durable());
    drop((before, records));
    let (after, _records) = restart(&database, TIERS, &clock);
    let gold = [0; 4].map(|_| passes(&after, "api", &[("token", "secret-token")]));
    assert_eq!(gold, [true, true, true, false]);
    let other = [0; 2].map(|_| passes(&after, "api", &[("token", "other")]));
    assert_eq!(other, [true, false]);
    assert!(!database.holds("secret-token"));
}

/// covers: 003-46, 003-47
#[test]
fn lists_made_at_run_time_stand_after_a_restart() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = engine(TIERS, &records);
    let hidden = before.stored_names("token", "secret-token").unwrap().swap_remove(0);
    let range = ListTarget::Range(AddressRange::parse("203.0.113.0/24").unwrap());
    let token = ListTarget::Value { attribute: hidden.attribute, value: hidden.value };
    let list = |name, what, until| {
        let entry = AccessListEntry {
            namespace: None,
            target: what,
            reason: Some("case 7".to_owned()),
            until,
        };
        Record::operator(at(0), "ana", None, RecordKind::List(name, entry))
    };
    let all = vec![
        list(ListName::Block, range, Some(at(60))),
        list(ListName::Block, token, None),
        list(ListName::Allow, ListTarget::Range(AddressRange::parse("203.0.113.9").unwrap()), None),
    ];
    assert!(records.record(all).wait().is_durable());
    drop((before, records));
    let (after, _records) = restart(&database, TIERS, &clock);
    let reason = |subject: &[(&str, &str)]| {
        after
            .check(&Check::new("api", subject.iter().copied().collect::<Subject<'_>>()))
            .unwrap()
            .reason
            .as_str()
    };
    assert_eq!(reason(&[("token", "a"), ("ip", "203.0.113.7")]), "blocklisted");
    assert_eq!(reason(&[("token", "a"), ("ip", "203.0.113.9")]), "allowlisted");
    assert_eq!(reason(&[("token", "secret-token")]), "blocklisted");
    assert_eq!(reason(&[("token", "b")]), "ok");
    clock.set(at(60));
    assert_eq!(reason(&[("token", "a"), ("ip", "203.0.113.7")]), "ok");
    clock.set(at(10 * 366 * 86_400));
    assert_eq!(reason(&[("token", "secret-token")]), "blocklisted");
}

#[test]
fn an_overridden_mode_stands_after_a_restart() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = engine(LOGIN, &records);
    let off = RecordKind::Mode("login".to_owned(), Some(Mode::Off));
    assert!(records.record(vec![Record::operator(at(0), "ana", None, off)]).wait().is_durable());
    drop((before, records));
    let (after, _records) = restart(&database, LOGIN, &clock);
    let ip = [("ip", "198.51.100.7")];
    assert_eq!([0; 4].map(|_| passes(&after, "login", &ip)), [true; 4]);
}

/// covers: 000-15
#[test]
fn namespaces_have_their_own_blocks() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (engine, _) = engine(LOGIN, &records);
    let subject = Subject::from([("ip", "198.51.100.7")]);
    engine.block("site-a", "login", &subject, fraud(secs(60))).unwrap();
    assert!(
        passes(&engine, "login", &[("ip", "198.51.100.7")]),
        "the default namespace has no block"
    );
    records.flush().unwrap();
    let of = |namespace: &str| {
        let query = BlockQuery { namespace: Some(namespace.to_owned()), ..Default::default() };
        records.blocks(&query, at(1)).unwrap().rows.len()
    };
    assert_eq!((of("site-a"), of("site-b"), of("default")), (1, 0, 0));
}
