//! Attempts in the documented views: one row for each, those of single callers if asked for.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catraca::core::cell::block::Origin;
use catraca::core::digest::Digester;
use catraca::records::{AttributeValue, Options, Record, Records, Retention};
use catraca::{Catalog, Check, Engine, ManualClock, Secret, Span, Time};

use super::helpers::{TestDatabase, block_record, subject_key, write};
use super::test_database::{DAY_AGO, execute_error};

const CATALOG: &str = "\
[policy.buyer_auth_login]
by     = ['ip']
window = '10 per 15m'
block  = '30m'
[policy.create_order]
by     = ['customer']
window = '60 per 1m'
block  = '2m'
[attribute.customer]
private = true
";
const SECRET: [u8; 32] = [7; 32];

/// The two queries of the source document, with its words. `NOW() - INTERVAL '24 hours'` is
/// PostgreSQL's; the test on SQLite replaces that expression and nothing else.
const MOST_BLOCKED: &str = "SELECT 
  identifier,
  action,
  COUNT(*) as block_count,
  MAX(blocked_until) as last_block
FROM buyer_rate_limits
WHERE blocked_until IS NOT NULL
GROUP BY identifier, action
ORDER BY block_count DESC
LIMIT 20;";
const ATTEMPTS_BY_ACTION: &str = "SELECT 
  action,
  COUNT(*) as total_attempts,
  COUNT(CASE WHEN blocked_until IS NOT NULL THEN 1 END) as blocked_count
FROM buyer_rate_limits
WHERE created_at > NOW() - INTERVAL '24 hours'
GROUP BY action
ORDER BY total_attempts DESC;";

/// The views use the machine's clock.
fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::from_micros(since.as_micros() as i64)
}

/// A site with its records, which counts the attempts of this many keys in a minute.
struct Site {
    database: TestDatabase,
    records: Arc<Records>,
    engine: Engine,
    clock: ManualClock,
}

impl Site {
    fn start(keys_per_minute: usize, at: Time) -> Self {
        let database = TestDatabase::new();
        let options = Options { keys_per_minute, ..Options::default() };
        let records = Arc::new(Records::open(&database.url(), options).unwrap());
        let clock = ManualClock::at(at);
        let listener = Arc::clone(&records);
        let engine = Engine::builder(Catalog::parse(CATALOG).unwrap())
            .clock(clock.clone())
            .secret(Secret::from_bytes(SECRET))
            .report_keys(keys_per_minute > 0)
            .listener(move |event| listener.on_event(event))
            .build();
        Self { database, records, engine, clock }
    }

    fn attempt(&self, gate: &str, (attribute, value): (&str, &str), times: usize) {
        for _ in 0..times {
            self.engine.check(&Check::new(gate, [(attribute, value)])).unwrap();
        }
    }

    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.records.flush().unwrap();
        self.database.rows(sql)
    }

    fn by_action(&self) -> Vec<Vec<String>> {
        self.rows(&ATTEMPTS_BY_ACTION.replace("NOW() - INTERVAL '24 hours'", DAY_AGO))
    }
}

/// Two addresses of three are blocked, one of them twice; logins of two days ago are not counted.
///
/// covers: 003-49, 003-50, B-53, B-54
#[test]
fn both_queries_of_the_source_run_as_they_are_written_and_count_what_happened() {
    for keys_per_minute in [0, 1, 100] {
        let start = now().before(Span::from_secs(2 * 86_400));
        let site = Site::start(keys_per_minute, start);
        site.attempt("buyer_auth_login", ("ip", "198.51.100.1"), 5);
        site.clock.set(now().before(Span::from_secs(3 * 3_600)));
        site.attempt("buyer_auth_login", ("ip", "198.51.100.7"), 14);
        site.attempt("buyer_auth_login", ("ip", "198.51.100.8"), 3);
        site.attempt("create_order", ("customer", "c-4711-zoe"), 63);
        site.clock.set(now().before(Span::from_secs(3_600)));
        site.attempt("buyer_auth_login", ("ip", "198.51.100.7"), 11);
        assert_eq!(
            site.by_action(),
            [["create_order", "63", "1"], ["buyer_auth_login", "28", "2"]],
            "{keys_per_minute}"
        );
        let most = site.rows(MOST_BLOCKED);
        assert_eq!(most.len(), 2, "{most:?}");
        assert_eq!(most[0][..3], ["198.51.100.7", "buyer_auth_login", "2"]);
        assert_eq!(most[1][1..3], ["create_order", "1"]);
        assert!(!most[1][0].contains("zoe"), "{most:?}");
        // An operator's block is no attempt, but a block.
        let until = now().after(Span::from_secs(3_600));
        let block = block_record(subject_key("create_order", "x"), until, Origin::Operator, None);
        write(&site.records, vec![Record::operator(now(), "ana", None, block)]);
        assert_eq!(site.by_action()[0], ["create_order", "64", "2"]);
    }
}

/// covers: 003-43
#[test]
fn attempts_of_single_callers_are_counted_if_asked_for_and_bounded() {
    let start = now().before(Span::from_secs(7_200));
    let site = Site::start(2, start);
    site.attempt("buyer_auth_login", ("ip", "198.51.100.7"), 3);
    site.attempt("create_order", ("customer", "c-4711-zoe"), 2);
    site.records.flush().unwrap();
    // Beyond the bound attempts are counted, but by no name.
    site.attempt("buyer_auth_login", ("ip", "198.51.100.8"), 4);
    site.attempt("buyer_auth_login", ("ip", "198.51.100.7"), 1);
    site.clock.set(start.after(Span::from_secs(300)));
    site.attempt("buyer_auth_login", ("ip", "198.51.100.8"), 1);
    let named = "SELECT identifier, action, COUNT(*), SUM(attempts) FROM buyer_rate_limits
                 WHERE action = 'buyer_auth_login' GROUP BY identifier, action";
    let mut rows = site.rows(named);
    rows.sort();
    assert_eq!(
        rows,
        [
            ["198.51.100.7", "buyer_auth_login", "4", "4"],
            ["198.51.100.8", "buyer_auth_login", "1", "1"],
            ["NULL", "buyer_auth_login", "4", "4"],
        ]
    );
    assert!(!site.database.holds("c-4711-zoe"), "a private value is a pseudonym");

    let digester = Digester::new(&Secret::from_bytes(SECRET));
    let customer = AttributeValue {
        attribute: "customer".to_owned(),
        value: digester.pseudonym("customer", "c-4711-zoe"),
    };
    let exported = site.records.export(std::slice::from_ref(&customer), None).unwrap();
    assert_eq!(exported.attempts.len(), 1);
    let attempts = exported.attempts[0].attempts;
    assert_eq!((attempts.attempts, attempts.first, attempts.last), (2, start, start));
    site.records.erase(std::slice::from_ref(&customer), None, now()).unwrap();
    assert!(site.records.export(&[customer], None).unwrap().attempts.is_empty());
}

#[test]
fn old_attempts_are_purged_with_their_subjects() {
    let database = TestDatabase::new();
    let retention = Retention { counts: Duration::from_secs(3_600), ..Retention::default() };
    let options = Options { retention, keys_per_minute: 10 };
    let records = Arc::new(Records::open(&database.url(), options).unwrap());
    let listener = Arc::clone(&records);
    let clock = ManualClock::at(now().before(Span::from_secs(7_200)));
    let engine = Engine::builder(Catalog::parse(CATALOG).unwrap())
        .clock(clock)
        .report_keys(true)
        .listener(move |event| listener.on_event(event))
        .build();
    let check = Check::new("buyer_auth_login", [("ip", "198.51.100.7")]);
    engine.check(&check).unwrap();
    records.flush().unwrap();
    let count = "SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM subjects)";
    assert_eq!(database.rows(count), [["1", "1"]]);
    assert!(records.purge(now()).unwrap().counts >= 1);
    assert_eq!(database.rows(count), [["0", "0"]]);
}

#[test]
fn the_views_cannot_be_changed_and_name_the_call_that_can() {
    let site = Site::start(0, now());
    site.attempt("buyer_auth_login", ("ip", "198.51.100.7"), 11);
    site.records.flush().unwrap();
    for (sql, call) in [
        ("INSERT INTO ip_blocklist (ip_address) VALUES ('198.51.100.7')", "POST /v1/blocklist"),
        ("UPDATE buyer_rate_limits SET blocked_until = NULL", "DELETE /v1/blocks/ID"),
        ("DELETE FROM buyer_rate_limits", "catraca blocks"),
        ("INSERT INTO buyer_rate_limits (identifier) VALUES ('x')", "POST /v1/blocks"),
        ("DELETE FROM rate_limit_tracking", "DELETE /v1/blocks/ID"),
        ("DELETE FROM attempts_by_action", "POST /v1/check"),
    ] {
        let error = execute_error(&site.database, sql);
        assert!(error.contains("is read-only") && error.contains(call), "{sql}: {error}");
    }
    assert_eq!(site.rows("SELECT COUNT(*) FROM buyer_rate_limits"), [["11"]]);
}
