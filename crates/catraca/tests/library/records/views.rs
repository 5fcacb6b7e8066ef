//! The documented views, queried with the SQL of the guide.

use std::sync::Arc;

use catraca::core::address::AddressRange;
use catraca::core::cell::block::Origin;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::records::{ListName, MinuteCount, Record, RecordKind, Records};
use catraca::{Span, Time};

use super::helpers::{
    TestDatabase, at, block_record, engine, excess_block, passes, subject_key, write,
};
use super::test_database::FENCES;

const GUIDE: &str = include_str!("../../../../../docs/guide/records.md");

/// The query below a heading of the guide, in this dialect if there is one for it.
fn query(heading: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    query_in_dialect(
        rest.split("\n## ").next().and_then(|part| part.split("\n### ").next()).unwrap(),
    )
    .unwrap_or_else(|| panic!("no query below {heading}"))
}

fn query_in_dialect(section: &'static str) -> Option<&'static str> {
    let own = FENCES.iter().find_map(|fence| section.split_once(fence));
    own.map(|(_, sql)| sql.split_once("\n```").unwrap().0)
}

/// The views use the machine's clock, so test times are years before or after the present.
fn year(number: i64) -> Time {
    Time::parse_rfc3339(&format!("{number}-01-01T00:00:00Z")).unwrap()
}

fn filled_database() -> (TestDatabase, Records) {
    let database = TestDatabase::new();
    let records = database.open();
    let ban =
        block_record(subject_key("pay", "198.51.100.9"), year(2200), Origin::Ban, Some("reject 5"));
    write(
        &records,
        vec![
            excess_block("login", "198.51.100.7", year(2020), year(2021)),
            excess_block("login", "198.51.100.7", year(2022), year(2023)),
            excess_block("login", "198.51.100.8", year(2022), year(2200)),
            Record::automatic(year(2022), ban),
        ],
    );
    (database, records)
}

/// covers: 003-49, B-53
#[test]
fn buyer_rate_limits_has_one_row_per_block_event() {
    let (database, _records) = filled_database();
    let top = database.rows(query("### Most blocked"));
    assert_eq!(top[0], ["198.51.100.7", "login", "2", "2023-01-01T00:00:00.000Z"]);
    assert_eq!(top.len(), 3);
    let columns = "SELECT id, identifier, action, attempts, first_attempt_at, last_attempt_at,
                   blocked_until, created_at FROM buyer_rate_limits ORDER BY created_at";
    let first = &database.rows(columns)[0];
    assert_eq!(first[0].len(), 36, "{first:?}");
    assert_eq!(first[7], "2020-01-01T00:00:00.000Z");
}

/// covers: 000-18, 000-51
#[test]
fn rate_limit_tracking_shows_who_until_when_and_why_while_it_stands() {
    let (database, _records) = filled_database();
    let blocked = database.rows(query("### Who is blocked"));
    let wanted = [
        ["198.51.100.8", "2200-01-01T00:00:00.000Z", "NULL"],
        ["198.51.100.9", "2200-01-01T00:00:00.000Z", "reject 5"],
    ];
    assert_eq!(blocked, wanted);
}

#[test]
fn an_end_is_shown_to_the_millisecond_and_forever_has_a_date() {
    let database = TestDatabase::new();
    let records = database.open();
    let end = year(2200).after(Span::from_micros(7_999));
    write(&records, vec![excess_block("a", "198.51.100.1", year(2020), end)]);
    write(&records, vec![excess_block("b", "198.51.100.2", year(2020), Time::FOREVER)]);
    let ends = database.rows("SELECT unblockTime FROM rate_limit_tracking ORDER BY policy");
    assert_eq!(ends, [["2200-01-01T00:00:00.007Z"], ["9999-12-31T23:59:59.999Z"]]);
}

/// covers: 003-45, 003-48
#[test]
fn ip_blocklist_has_one_row_per_range() {
    let database = TestDatabase::new();
    let records = database.open();
    let list = |text: &str, until, reason: Option<&str>| {
        let what = ListTarget::Range(AddressRange::parse(text).unwrap());
        let entry = AccessListEntry {
            namespace: None,
            target: what,
            reason: reason.map(str::to_owned),
            until,
        };
        Record::operator(year(2020), "ana", None, RecordKind::List(ListName::Block, entry))
    };
    let value = ListTarget::Value { attribute: "tenant".to_owned(), value: "t1".to_owned() };
    let tenant = RecordKind::List(
        ListName::Block,
        AccessListEntry { namespace: None, target: value, reason: None, until: None },
    );
    let tenant = Record::operator(year(2020), "ana", None, tenant);
    write(
        &records,
        vec![
            list("203.0.113.0/24", None, Some("scan")),
            list("198.51.100.7", Some(year(2021)), None),
            tenant,
        ],
    );
    let listed = database.rows(query("### Addresses on the blocklist"));
    assert_eq!(listed, [["203.0.113.0/24", "scan", "2020-01-01T00:00:00.000Z", "NULL"]]);
    assert_eq!(database.rows("SELECT * FROM ip_blocklist").len(), 2);
}

/// covers: 003-50, B-54
#[test]
fn attempts_by_action_counts_attempts_of_the_last_day() {
    let database = TestDatabase::new();
    let records = database.open();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let minute = now.as_secs() as i64 / 60;
    let count = |minute, action: &str, policy: &str, allowed, denied, blocked| MinuteCount {
        minute,
        namespace: "default".to_owned(),
        action: action.to_owned(),
        policy: policy.to_owned(),
        allowed,
        denied,
        blocked,
    };
    let counts = vec![
        count(minute, "login", "", 5, 1, 3),
        count(minute - 60, "login", "", 10, 0, 0),
        count(minute - 60, "login", "login", 10, 0, 0),
        count(minute - 3 * 1440, "login", "", 1_000, 0, 0),
        count(minute, "pay", "", 1, 0, 0),
    ];
    write(&records, vec![Record::automatic(at(0), RecordKind::Count(counts))]);
    let seen = database.rows(query("### Attempts by action"));
    assert_eq!(seen, [["login", "19", "3"], ["pay", "1", "0"]]);
}

/// The sums of real traffic.
#[test]
fn the_view_and_the_totals_agree() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let catalog = "[policy.login]\nby = [\"ip\"]\nwindow = \"2 per 1m\"\nblock = \"15m\"";
    let (engine, _) = engine(catalog, &records);
    for _ in 0..6 {
        passes(&engine, "login", &[("ip", "198.51.100.7")]);
    }
    records.flush().unwrap();
    let view = "SELECT action, sum(attempts), sum(blocked) FROM attempts_by_action GROUP BY action";
    assert_eq!(database.rows(view), [["login", "6", "3"]]);
    let totals = &records.actions(None, at(0), at(60)).unwrap()[0];
    assert_eq!((totals.total, totals.blocked), (6, 3));
}

/// Every other query of the guide at least runs.
#[test]
fn every_query_of_the_guide_runs() {
    let (database, _records) = filled_database();
    let queries: Vec<_> = GUIDE.split("\n### ").filter_map(query_in_dialect).collect();
    assert!(queries.len() >= 6, "{}", queries.len());
    for query in queries {
        database.rows(query);
    }
}
