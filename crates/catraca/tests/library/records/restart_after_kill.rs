//! A start after a kill: resets and offences since the last snapshot come from the records.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::memory::RestoreOutcome;
use catraca::records::Records;
use catraca::{App, BlockProposal, Check, ManualClock, Outcome, Settle, Span, Subject};

use super::helpers::{ANA, TestDatabase, app, app_over, app_passes, block_on, builder, secs};

const CATALOG: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "1 per 1d"
    block  = { first = "1m", factor = 2, max = "10h", forget = "1h" }

    [policy.pay]
    by     = ["ip"]
    bucket = { size = 100, refill = "1 per 1h" }
    cost   = { "404" = 60, default = 1 }
    debt   = true
    ban    = [ { when = "status == 403", reason = "refused upstream",
                 for = { first = "1m", factor = 3, max = "1d", forget = "1h" } } ]
"#;
const HERE: [(&str, &str); 1] = [("ip", "198.51.100.7")];

/// A snapshot file that is removed with its test.
struct Snapshot(PathBuf);

impl Snapshot {
    fn take(app: &App) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-restart-{}-{number}.snapshot", std::process::id());
        let snapshot = Self(std::env::temp_dir().join(name));
        app.engine().store().snapshot(&snapshot.0).unwrap();
        snapshot
    }

    /// Restores an application from the snapshot and the records, as the next process does.
    fn resume(&self, database: &TestDatabase, clock: &ManualClock) -> (App, Arc<Records>) {
        let records = Arc::new(database.open());
        let (engine, restored) = builder(CATALOG, clock).restore(&self.0).unwrap();
        let RestoreOutcome::Read { created_at, .. } = restored else { panic!("{restored:?}") };
        let app = app_over(engine, &records);
        block_on(app.resume(Some(created_at.into()))).unwrap();
        (app, records)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn reset(app: &App, policy: &str) {
    assert!(block_on(app.reset(&ANA, "default", policy, &Subject::from(HERE))).unwrap().durable);
}

fn release(app: &App) -> bool {
    block_on(app.unblock_unaudited("default", "login", &Subject::from(HERE))).unwrap()
}

/// Exceeds the limit; returns the length of the block.
fn offend(app: &App) -> Span {
    let decision = block_on(app.check(&Check::new("login", HERE))).unwrap();
    assert!(!decision.allowed);
    decision.blocked_until.unwrap().since(decision.at)
}

fn settle(app: &App, status: u16) -> Option<Span> {
    let ticket = block_on(app.check(&Check::new("pay", HERE))).unwrap().ticket.unwrap();
    let outcome = Outcome { status: Some(status), ..Outcome::default() };
    let settled = block_on(app.settle(&Settle::ticket(&ticket, &outcome))).unwrap().settlement;
    settled.rows[0].blocked_until.map(|until| until.since(settled.at))
}

fn minutes(number: i64) -> Span {
    secs(60 * number)
}

#[test]
fn a_key_that_was_reset_since_the_snapshot_stays_reset() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    assert!(app_passes(&before, "login", &HERE));
    assert_eq!(offend(&before), minutes(1));
    clock.advance(secs(1));
    let snapshot = Snapshot::take(&before);
    clock.advance(secs(1));
    reset(&before, "login");
    drop((before, records));
    clock.advance(secs(1));
    let (after, _records) = snapshot.resume(&database, &clock);
    assert!(app_passes(&after, "login", &HERE), "counters and block are reset");
    assert_eq!(offend(&after), minutes(1), "the level is reset too");
}

#[test]
fn a_reset_that_the_snapshot_knows_of_forgets_nothing_since() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    reset(&before, "login");
    clock.advance(secs(1));
    assert!(app_passes(&before, "login", &HERE));
    clock.advance(secs(1));
    let snapshot = Snapshot::take(&before);
    drop((before, records));
    let (after, _records) = snapshot.resume(&database, &clock);
    assert!(!app_passes(&after, "login", &HERE));
}

#[test]
fn a_debt_since_the_reset_is_owed_and_one_from_before_is_not() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    assert_eq!([settle(&before, 404), settle(&before, 404)], [None, None]);
    let snapshot = Snapshot::take(&before);
    clock.advance(secs(1));
    reset(&before, "pay");
    drop((before, records));
    let (between, records) = snapshot.resume(&database, &clock);
    clock.advance(secs(1));
    assert_eq!([settle(&between, 404), settle(&between, 404)], [None, None], "the debt is reset");
    drop((between, records));
    let (after, _records) = snapshot.resume(&database, &clock);
    assert!(!app_passes(&after, "pay", &HERE), "the debt since the reset is restored");
}

#[test]
fn offences_since_the_snapshot_are_remembered_as_long_as_they_would_have_been() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    assert!(app_passes(&before, "login", &HERE));
    assert_eq!(offend(&before), minutes(1));
    let snapshot = Snapshot::take(&before);
    clock.advance(minutes(2));
    assert_eq!(offend(&before), minutes(2));
    clock.advance(secs(30));
    assert!(release(&before));
    clock.advance(secs(30));
    assert_eq!(offend(&before), minutes(4));
    drop((before, records));
    clock.advance(minutes(1));
    let (after, records) = snapshot.resume(&database, &clock);
    clock.advance(secs(179));
    assert_eq!(offend(&after), secs(1), "the active block keeps its end");
    clock.advance(secs(1));
    assert_eq!(offend(&after), minutes(8));
    // The block has ended, but its level is remembered for an hour and restored.
    drop((after, records));
    clock.advance(minutes(8 + 59));
    let (after, records) = snapshot.resume(&database, &clock);
    drop((after, records));
    clock.advance(Span::from_micros(minutes(1).micros() - 1));
    let (after, records) = snapshot.resume(&database, &clock);
    assert_eq!(offend(&after), minutes(16), "remembered to the last microsecond of `forget`");
    drop((after, records));
    clock.advance(minutes(16 + 60));
    let (after, _records) = snapshot.resume(&database, &clock);
    assert_eq!(offend(&after), minutes(1), "forgotten after `forget`");
}

#[test]
fn a_ban_rules_offences_are_remembered_and_an_operators_block_raises_nothing() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    let (before, clock) = app(CATALOG, &records);
    let snapshot = Snapshot::take(&before);
    clock.advance(secs(1));
    assert_eq!(settle(&before, 403), Some(minutes(1)));
    clock.advance(minutes(1));
    assert_eq!(settle(&before, 403), Some(minutes(3)));
    clock.advance(minutes(3));
    let proposal = BlockProposal::by_operator(minutes(1), None);
    let subject = Subject::from(HERE);
    block_on(before.block_unaudited("default", "pay", &subject, proposal)).unwrap();
    drop((before, records));
    clock.advance(minutes(1));
    let (after, _records) = snapshot.resume(&database, &clock);
    assert_eq!(settle(&after, 403), Some(minutes(9)));
}
