//! An engine that is killed together with its records: acknowledged resets and offences survive.
//!
//! It uses the system clock, so its spans are hours: no machine is too slow for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catraca::memory::RestoreOutcome;
use catraca::records::Records;
use catraca::{Catalog, Check, Engine, Secret, Span, Subject};

const CATALOG: &str = r#"
    [policy.login]
    by     = ["name"]
    window = "1 per 7d"
    block  = { first = "1h", factor = 2, max = "100d", forget = "7d" }
"#;
/// Keeps the doubled block below the catalog's `max`.
const OFFENCES_MAX: u32 = 5;

/// Restores the engine from its snapshot and its records, as a start does.
pub fn start(folder: &Path, records: &Arc<Records>) -> Engine {
    let recorder = Arc::clone(records);
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let builder = builder.secret(Secret::from_bytes([7; 32]));
    let builder = builder.listener(move |event| recorder.on_event(event));
    let (engine, restored) = builder.restore(&snapshot(folder)).unwrap();
    let since = match restored {
        RestoreOutcome::Read { created_at, .. } => Some(created_at),
        RestoreOutcome::Missing => None,
    };
    engine.resume(records, since).unwrap();
    engine
}

/// The path of the snapshot that the child writes repeatedly.
pub fn snapshot(folder: &Path) -> PathBuf {
    folder.join("catraca.snapshot")
}

/// Blocks and resets one name; then another name offends several times.
pub fn act(engine: &Engine, records: &Records, mark: &str, number: u32) {
    let name = format!("{mark}.reset");
    engine.check(&check(&name)).unwrap();
    offend(engine, &name);
    let (done, receipt) = records
        .run_recorded(Some("ana"), None, || engine.reset("default", "login", &subject(&name)));
    done.unwrap();
    if receipt.wait().is_durable() {
        println!("reset {name}");
    }
    let name = format!("{mark}.offends");
    engine.check(&check(&name)).unwrap();
    for offence in 1..=number % OFFENCES_MAX {
        let (_, receipt) = records.run_recorded(None, None, || offend(engine, &name));
        if receipt.wait().is_durable() {
            println!("offended {name} {offence}");
        }
        engine.unblock("default", "login", &subject(&name)).unwrap();
    }
}

/// Asserts that a reset name has its whole quota, no block and no escalation level.
pub fn assert_reset(engine: &Engine, name: &str) {
    assert!(engine.check(&check(name)).unwrap().allowed, "{name} is not reset");
    assert_eq!(offend(engine, name), hours(1), "{name} has a level");
}

/// Asserts that the next block of a name is at least as long as after this many offences.
pub fn assert_offended(engine: &Engine, name: &str, offences: u32) {
    engine.unblock("default", "login", &subject(name)).unwrap();
    // A check is not acknowledged, so its count may be lost and the quota free again.
    let first = engine.check(&check(name)).unwrap();
    let length = match first.blocked_until {
        Some(until) => until.since(first.at),
        None => offend(engine, name),
    };
    assert!(length >= hours(1 << offences), "{name} offended {offences} times: {length:?}");
}

fn offend(engine: &Engine, name: &str) -> Span {
    let decision = engine.check(&check(name)).unwrap();
    assert!(!decision.allowed, "{name} passes");
    decision.blocked_until.unwrap().since(decision.at)
}

fn check(name: &str) -> Check<'_> {
    Check::new("login", [("name", name)])
}

fn subject(name: &str) -> Subject<'_> {
    Subject::from([("name", name)])
}

const fn hours(number: i64) -> Span {
    Span::from_secs(3_600 * number)
}
