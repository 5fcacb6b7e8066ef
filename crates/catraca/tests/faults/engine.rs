//! An engine that is killed with its records: resets and offences that were acknowledged.
//!
//! Its clock is the system's and its spans are long, so that no machine is too slow for it.

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
/// More offences than this last longer than the catalog's longest.
const OFFENCES_MAX: u32 = 5;

/// The engine as a start makes it.
pub fn start(folder: &Path, records: &Arc<Records>) -> Engine {
    let heard = Arc::clone(records);
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let builder = builder.secret(Secret::from_bytes([7; 32]));
    let builder = builder.listener(move |event| heard.on_event(event));
    let (engine, restored) = builder.restore(&snapshot(folder)).unwrap();
    let since = match restored {
        RestoreOutcome::Read { created_at, .. } => Some(created_at),
        RestoreOutcome::Missing => None,
    };
    engine.resume(records, since).unwrap();
    engine
}

/// Where the engine's cells are written, again and again.
pub fn snapshot(folder: &Path) -> PathBuf {
    folder.join("catraca.snapshot")
}

/// Uses up what a name has, is blocked and is reset; then another offends several times.
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

/// A name that was reset begins anew: all of its quota, no block, no level.
pub fn assert_reset(engine: &Engine, name: &str) {
    assert!(engine.check(&check(name)).unwrap().allowed, "{name} is not reset");
    assert_eq!(offend(engine, name), hours(1), "{name} has a level");
}

/// A name that offended this often, at least, is blocked for so long the next time.
pub fn assert_offended(engine: &Engine, name: &str, offences: u32) {
    engine.unblock("default", "login", &subject(name)).unwrap();
    // The quota may be back: a check acknowledges nothing.
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
