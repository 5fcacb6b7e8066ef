//! Queries: pages that neither skip nor repeat rows, filters, and consistent totals.

use std::sync::Arc;

use catraca::core::cell::block::Origin;
use catraca::records::{
    AttributeValue, AuditNote, AuditQuery, BlockQuery, Cursor, Record, RecordKind,
};
use catraca::{Check, Time};

use super::helpers::{
    TestDatabase, at, block_record, engine, excess_block, passes, secs, subject_key, write,
};

fn address(number: i64) -> String {
    format!("198.51.100.{number}")
}

#[test]
fn pages_go_from_new_to_old_without_a_gap_or_a_repeat() {
    let database = TestDatabase::new();
    let records = database.open();
    // Two blocks start at each time, so that only the order in which they were written orders them.
    let all = (0..25).map(|n| excess_block("login", &address(n), at(n / 2), at(1_000))).collect();
    write(&records, all);
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = records.blocks(&BlockQuery { after, limit: 4, ..Default::default() }, at(100));
        let page = page.unwrap();
        seen.extend(page.rows.iter().map(|row| row.subject.parts[0].1.clone()));
        let Some(next) = page.next else { break };
        after = Some(next.to_string().parse::<Cursor>().unwrap());
        assert_eq!(page.rows.len(), 4);
    }
    assert_eq!(seen, (0..25).rev().map(address).collect::<Vec<_>>());
    assert!("12".parse::<Cursor>().is_err() && "a.1".parse::<Cursor>().is_err());
}

#[test]
fn filters_narrow_by_policy_origin_and_attribute() {
    let database = TestDatabase::new();
    let records = database.open();
    let ban = block_record(subject_key("pay", &address(1)), at(600), Origin::Ban, Some("reject 5"));
    write(
        &records,
        vec![
            excess_block("login", &address(1), at(0), at(600)),
            excess_block("login", &address(2), at(0), at(600)),
            Record::automatic(at(0), ban),
        ],
    );
    let count = |query| records.blocks(&query, at(1)).unwrap().rows.len();
    let by_policy = |policy: &str| BlockQuery { policy: Some(policy.into()), ..Default::default() };
    assert_eq!((count(by_policy("login")), count(by_policy("pay"))), (2, 1));
    assert_eq!(count(BlockQuery { origin: Some(Origin::Ban), ..Default::default() }), 1);
    let about = vec![AttributeValue { attribute: "ip".to_owned(), value: address(1) }];
    assert_eq!(count(BlockQuery { about, ..Default::default() }), 2);
}

#[test]
fn a_private_value_is_found_by_its_real_one() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let catalog = "[policy.api]\nby = [\"token\"]\nwindow = \"1 per 1m\"\nblock = \"10m\"";
    let (engine, _) = engine(catalog, &records);
    for token in ["first-token", "second-token"] {
        assert!(passes(&engine, "api", &[("token", token)]));
        assert!(!passes(&engine, "api", &[("token", token)]));
    }
    records.flush().unwrap();
    let about = engine.stored_names("token", "second-token").unwrap();
    let found = records.blocks(&BlockQuery { about, ..Default::default() }, at(1)).unwrap();
    let [row] = &found.rows[..] else { panic!("{found:?}") };
    assert!(row.subject.parts[0].1.starts_with('~'), "{row:?}");
    let about = engine.stored_names("token", "third-token").unwrap();
    let none = records.blocks(&BlockQuery { about, ..Default::default() }, at(1)).unwrap();
    assert!(none.rows.is_empty());
}

#[test]
fn the_audit_is_paged_and_filtered() {
    let database = TestDatabase::new();
    let records = database.open();
    let note = |number: i64| {
        let by = if number % 2 == 0 { "ana" } else { "rui" };
        let noted = AuditNote { act: "backup".to_owned(), target: number.to_string() };
        Record::operator(at(number), by, None, RecordKind::Note(noted))
    };
    write(&records, (0..9).map(note).collect());
    let query = AuditQuery { by: Some("ana".to_owned()), limit: 3, ..Default::default() };
    let first = records.audit(&query).unwrap();
    let rest = records.audit(&AuditQuery { before: first.next, ..query }).unwrap();
    let seen: Vec<_> = first.rows.iter().chain(&rest.rows).map(|row| &*row.target).collect();
    assert_eq!((seen, rest.next), (vec!["8", "6", "4", "2", "0"], None));
}

const MIXED: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "2 per 1m"
    block  = "5m"

    [policy.global]
    by     = ["ip"]
    window = "100 per 1m"

    [gate.site]
    policies = ["global", "login"]
"#;

/// covers: 003-50, B-54, 004-63
#[test]
fn totals_equal_the_traffic_and_add_up() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (engine, clock) = engine(MIXED, &records);
    let mut allowed = 0;
    for _ in 0..5 {
        allowed += u64::from(passes(&engine, "site", &[("ip", "198.51.100.7")]));
    }
    clock.advance(secs(60));
    for number in 1..8 {
        allowed += u64::from(passes(&engine, "login", &[("ip", &address(number))]));
    }
    engine.peek(&Check::new("login", [("ip", "198.51.100.8")])).unwrap();
    records.flush().unwrap();
    let actions = records.actions(None, at(0), at(120)).unwrap();
    let total: u64 = actions.iter().map(|row| row.total).sum();
    assert_eq!((total, allowed), (12, 2 + 6));
    assert_eq!(actions.iter().map(|row| row.allowed).sum::<u64>(), allowed);
    assert_eq!(actions[0].name, "login");
    let site = &actions[1];
    assert_eq!((site.allowed, site.denied, site.blocked), (2, 1, 2));
    for row in actions.iter().chain(&records.policies(None, at(0), at(120)).unwrap()) {
        assert_eq!(row.total, row.allowed + row.denied + row.blocked, "{row:?}");
    }
    let policies = records.policies(None, at(0), at(120)).unwrap();
    let of = |name: &str| policies.iter().find(|row| row.name == name).unwrap().total;
    assert_eq!((of("global"), of("login")), (5, 12));
    assert_eq!(records.actions(None, at(0), at(60)).unwrap().len(), 1);
}

/// covers: 003-49, B-53
#[test]
fn the_most_blocked_are_counted_by_events() {
    let database = TestDatabase::new();
    let records = database.open();
    let often = (0..3).map(|n| excess_block("login", &address(1), at(n * 100), at(n * 100 + 50)));
    let once = excess_block("login", &address(2), at(0), at(9_000));
    write(&records, often.chain([once]).collect());
    let top = records.top_blocked(None, Time::ZERO, 20).unwrap();
    let seen: Vec<_> = top.iter().map(|row| (&*row.parts[0].1, row.blocks)).collect();
    assert_eq!(seen, [("198.51.100.1", 3), ("198.51.100.2", 1)]);
    assert_eq!(top[0].last_until, at(250));
    assert_eq!(records.top_blocked(None, at(150), 20).unwrap().len(), 1);
}
