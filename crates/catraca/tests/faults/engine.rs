//! An application that is killed together with its records: acknowledged resets and offences
//! survive.
//!
//! It uses the system clock, so its spans are hours: no machine is too slow for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catraca::memory::RestoreOutcome;
use catraca::records::{AuditNote, Operator, Record, RecordKind, Records};
use catraca::{App, Catalog, Check, Decision, Engine, Secret, Span, Subject};
use tokio::runtime::Runtime;

const CATALOG: &str = r#"
    [policy.login]
    by     = ["name"]
    window = "1 per 7d"
    block  = { first = "1h", factor = 2, max = "100d", forget = "7d" }
"#;
/// Keeps the doubled block below the catalog's `max`.
const OFFENCES_MAX: u32 = 5;

/// An application, and the runtime of its operations.
pub struct Node {
    pub app: App,
    runtime: Runtime,
}

/// Restores the application from its snapshot and its records, as a start does.
pub fn start(folder: &Path, records: &Arc<Records>) -> Node {
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let builder = builder.secret(Secret::from_bytes([7; 32]));
    let (engine, restored) = builder.restore(&snapshot(folder)).unwrap();
    let since = match restored {
        RestoreOutcome::Read { created_at, .. } => Some(created_at.into()),
        RestoreOutcome::Missing => None,
    };
    let app = App::local(engine).records(Arc::clone(records)).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(app.resume(since)).unwrap();
    Node { app, runtime }
}

/// The path of the snapshot that the child writes repeatedly.
pub fn snapshot(folder: &Path) -> PathBuf {
    folder.join("catraca.snapshot")
}

impl Node {
    /// Blocks and resets one name; then another name offends several times.
    pub fn act(&self, records: &Records, mark: &str, number: u32) {
        let name = format!("{mark}.reset");
        self.check(&name);
        self.offend(&name);
        let ana = Operator { name: "ana", why: None };
        let subject = subject(&name);
        let reset = self.app.reset(&ana, "default", "login", &subject);
        if self.runtime.block_on(reset).unwrap().durable {
            println!("reset {name}");
        }
        let name = format!("{mark}.offends");
        self.check(&name);
        for offence in 1..=number % OFFENCES_MAX {
            self.offend(&name);
            if self.is_written(records) {
                println!("offended {name} {offence}");
            }
            self.release(&name);
        }
    }

    /// Asserts that a reset name has its whole quota, no block and no escalation level.
    pub fn assert_reset(&self, name: &str) {
        assert!(self.check(name).allowed, "{name} is not reset");
        assert_eq!(self.offend(name), hours(1), "{name} has a level");
    }

    /// Asserts that the next block of a name is at least as long as after this many offences.
    pub fn assert_offended(&self, name: &str, offences: u32) {
        self.release(name);
        // A check is not acknowledged, so its count may be lost and the quota free again.
        let first = self.check(name);
        let length = match first.blocked_until {
            Some(until) => until.since(first.at),
            None => self.offend(name),
        };
        assert!(length >= hours(1 << offences), "{name} offended {offences} times: {length:?}");
    }

    /// Whether everything recorded until now is on disk: records are written in order, and the
    /// block of a check has no receipt of its own.
    fn is_written(&self, records: &Records) -> bool {
        let note = AuditNote { act: "written".to_owned(), target: "all before".to_owned() };
        let record = Record::automatic(self.app.now(), RecordKind::Note(note));
        records.record(vec![record]).wait().is_durable()
    }

    fn check(&self, name: &str) -> Decision {
        self.runtime.block_on(self.app.check(&Check::new("login", [("name", name)]))).unwrap()
    }

    fn offend(&self, name: &str) -> Span {
        let decision = self.check(name);
        assert!(!decision.allowed, "{name} passes");
        decision.blocked_until.unwrap().since(decision.at)
    }

    fn release(&self, name: &str) {
        let subject = subject(name);
        let released = self.app.unblock_unaudited("default", "login", &subject);
        self.runtime.block_on(released).unwrap();
    }
}

fn subject(name: &str) -> Subject<'_> {
    Subject::from([("name", name)])
}

const fn hours(number: i64) -> Span {
    Span::from_secs(3_600 * number)
}
