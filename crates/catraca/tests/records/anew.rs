//! A start after a kill: resets and offences since the last snapshot are those of the records.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::memory::RestoreOutcome;
use catraca::records::Records;
use catraca::{Catalog, Check, Engine, ManualClock, Outcome, Settle, Span, Subject};

use crate::helpers::{Folder, SECRET, engine, passes, secs};

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

/// A snapshot that goes with its test.
struct Snapshot(PathBuf);

impl Snapshot {
    fn of(engine: &Engine) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-anew-{}-{number}.snapshot", std::process::id());
        let snapshot = Self(std::env::temp_dir().join(name));
        engine.store().snapshot(&snapshot.0).unwrap();
        snapshot
    }

    /// The process after the one that was killed.
    fn resume(&self, folder: &Folder, clock: &ManualClock) -> (Engine, Arc<Records>) {
        let records = Arc::new(folder.open());
        let heard = Arc::clone(&records);
        let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
        let builder = builder.clock(clock.clone()).secret(SECRET);
        let (engine, restored) =
            builder.listener(move |event| heard.on_event(event)).restore(&self.0).unwrap();
        let RestoreOutcome::Read { created_at, .. } = restored else { panic!("{restored:?}") };
        engine.resume(&records, Some(created_at)).unwrap();
        (engine, records)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn reset(engine: &Engine, records: &Records, policy: &str) {
    let (done, receipt) = records
        .run_recorded(Some("ana"), None, || engine.reset("default", policy, &Subject::from(HERE)));
    done.unwrap();
    assert!(receipt.wait().is_durable());
}

fn release(engine: &Engine) -> bool {
    engine.unblock("default", "login", &Subject::from(HERE)).unwrap()
}

/// Offends, and says how long the block is.
fn offend(engine: &Engine) -> Span {
    let decision = engine.check(&Check::new("login", HERE)).unwrap();
    assert!(!decision.allowed);
    decision.blocked_until.unwrap().since(decision.at)
}

fn settle(engine: &Engine, status: u16) -> Option<Span> {
    let ticket = engine.check(&Check::new("pay", HERE)).unwrap().ticket.unwrap();
    let outcome = Outcome { status: Some(status), ..Outcome::default() };
    let settled = engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
    settled.rows[0].blocked_until.map(|until| until.since(settled.at))
}

fn minutes(number: i64) -> Span {
    secs(60 * number)
}

#[test]
fn a_key_that_was_reset_since_the_snapshot_stays_reset() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    let (before, clock) = engine(CATALOG, &records);
    assert!(passes(&before, "login", &HERE));
    assert_eq!(offend(&before), minutes(1));
    clock.advance(secs(1));
    let snapshot = Snapshot::of(&before);
    clock.advance(secs(1));
    reset(&before, &records, "login");
    drop((before, records));
    clock.advance(secs(1));
    let (after, _records) = snapshot.resume(&folder, &clock);
    assert!(passes(&after, "login", &HERE), "counters and block are forgotten");
    assert_eq!(offend(&after), minutes(1), "and so is the level");
}

#[test]
fn a_reset_that_the_snapshot_knows_of_forgets_nothing_since() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    let (before, clock) = engine(CATALOG, &records);
    reset(&before, &records, "login");
    clock.advance(secs(1));
    assert!(passes(&before, "login", &HERE));
    clock.advance(secs(1));
    let snapshot = Snapshot::of(&before);
    drop((before, records));
    let (after, _records) = snapshot.resume(&folder, &clock);
    assert!(!passes(&after, "login", &HERE));
}

#[test]
fn a_debt_since_the_reset_is_owed_and_one_from_before_is_not() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    let (before, clock) = engine(CATALOG, &records);
    assert_eq!([settle(&before, 404), settle(&before, 404)], [None, None]);
    let snapshot = Snapshot::of(&before);
    clock.advance(secs(1));
    reset(&before, &records, "pay");
    drop((before, records));
    let (between, records) = snapshot.resume(&folder, &clock);
    clock.advance(secs(1));
    assert_eq!([settle(&between, 404), settle(&between, 404)], [None, None], "not owed any more");
    drop((between, records));
    let (after, _records) = snapshot.resume(&folder, &clock);
    assert!(!passes(&after, "pay", &HERE), "owed since the reset");
}

#[test]
fn offences_since_the_snapshot_are_remembered_as_long_as_they_would_have_been() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    let (before, clock) = engine(CATALOG, &records);
    assert!(passes(&before, "login", &HERE));
    assert_eq!(offend(&before), minutes(1));
    let snapshot = Snapshot::of(&before);
    clock.advance(minutes(2));
    assert_eq!(offend(&before), minutes(2));
    clock.advance(secs(30));
    assert!(release(&before));
    clock.advance(secs(30));
    assert_eq!(offend(&before), minutes(4));
    drop((before, records));
    clock.advance(minutes(1));
    let (after, records) = snapshot.resume(&folder, &clock);
    clock.advance(secs(179));
    assert_eq!(offend(&after), secs(1), "the block that stood ends when it would have");
    clock.advance(secs(1));
    assert_eq!(offend(&after), minutes(8));
    // Ended, and remembered for an hour: known again although nothing of it stands.
    drop((after, records));
    clock.advance(minutes(8 + 59));
    let (after, records) = snapshot.resume(&folder, &clock);
    drop((after, records));
    clock.advance(Span::from_micros(minutes(1).micros() - 1));
    let (after, records) = snapshot.resume(&folder, &clock);
    assert_eq!(offend(&after), minutes(16), "to the last microsecond");
    drop((after, records));
    clock.advance(minutes(16 + 60));
    let (after, _records) = snapshot.resume(&folder, &clock);
    assert_eq!(offend(&after), minutes(1), "and not one longer");
}

#[test]
fn a_ban_rules_offences_are_remembered_and_an_operators_block_raises_nothing() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    let (before, clock) = engine(CATALOG, &records);
    let snapshot = Snapshot::of(&before);
    clock.advance(secs(1));
    assert_eq!(settle(&before, 403), Some(minutes(1)));
    clock.advance(minutes(1));
    assert_eq!(settle(&before, 403), Some(minutes(3)));
    clock.advance(minutes(3));
    let order = catraca::BlockOrder {
        namespace: "default",
        policy: "pay",
        subject: Subject::from(HERE),
        span: minutes(1),
        reason: None,
    };
    before.block(&order).unwrap();
    drop((before, records));
    clock.advance(minutes(1));
    let (after, _records) = snapshot.resume(&folder, &clock);
    assert_eq!(settle(&after, 403), Some(minutes(9)));
}
