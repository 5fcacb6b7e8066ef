//! Folders, child processes, and the records that parent and child use.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use catraca::core::cell::block::{Block, BlockNote, Origin};
use catraca::core::digest::{Digester, Domain, Key, Secret};
use catraca::core::limit::BucketTerms;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::records::{
    AttributeValue, BlockEvent, DebtEvent, ListName, Options, Record, RecordKind, Records,
    RestoredItem, SubjectKey,
};
use catraca::{Span, Time};

pub const NOW: Time = Time::from_micros(1_800_000_000_000_000);
pub const LATER: Time = Time::from_micros(1_900_000_000_000_000);

const TERMS: BucketTerms = BucketTerms { size: 100, tokens: 1, period: 30_000_000 };

/// A folder that is removed when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("catraca-faults-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("catraca.db").display())
}

pub fn open(folder: &Path) -> Records {
    Records::open(&url(folder), Options::default()).unwrap()
}

/// The command that starts this program in another role.
pub fn role(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("CATRACA_ROLE", role).env("CATRACA_FOLDER", folder);
    command
}

/// A child process, killed on drop, and the lines of its standard output.
pub struct ChildProcess {
    pub child: Child,
    pub lines: Receiver<String>,
}

impl ChildProcess {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits for the end of the child; returns its lines and whether it succeeded.
    pub fn finish(mut self) -> (Vec<String>, bool) {
        let lines = self.lines.iter().collect();
        (lines, self.child.wait().unwrap().success())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Four records of one mark, written together or not at all.
pub fn records_of(mark: &str) -> Vec<Record> {
    let about = AttributeValue { attribute: "mark".to_owned(), value: mark.to_owned() };
    let what = ListTarget::Value { attribute: "mark".to_owned(), value: mark.to_owned() };
    let kinds = [
        block(mark),
        RecordKind::List(
            ListName::Block,
            AccessListEntry {
                namespace: None,
                target: what,
                reason: Some("test".to_owned()),
                until: None,
            },
        ),
        RecordKind::SetFacts {
            namespace: None,
            about,
            facts: vec![("name".to_owned(), mark.to_owned())],
        },
        RecordKind::Debt(Box::new(DebtEvent {
            subject: subject(mark),
            epoch: Time::ZERO,
            balance: -15,
            terms: TERMS,
        })),
    ];
    kinds.map(|kind| Record::operator(NOW, "ana", Some("test"), kind)).into()
}

pub fn block(mark: &str) -> RecordKind {
    let note = BlockNote { reason: Some(mark.into()), ..BlockNote::default() };
    let subject = subject(mark);
    let origin = Origin::Operator;
    let forget = Span::ZERO;
    let block = Block { until: LATER, origin, shadow: false, level: 0, forget, note };
    RecordKind::Block(Box::new(BlockEvent {
        subject,
        epoch: Time::ZERO,
        first_of_act: None,
        block,
    }))
}

pub fn subject(mark: &str) -> SubjectKey {
    let digester = Digester::new(&Secret::from_bytes([7; 32]));
    let key = digester.start(Domain::Cell).part(mark.as_bytes()).finish();
    let parts = vec![("mark".to_owned(), mark.to_owned())];
    SubjectKey { key, namespace: "default".to_owned(), policy: "test".to_owned(), parts }
}

/// The marks that are active after a restore, by kind of record.
#[derive(Debug, Default)]
pub struct ActiveMarks {
    pub blocks: BTreeSet<String>,
    pub lists: BTreeSet<String>,
    pub facts: BTreeSet<String>,
    pub debts: BTreeSet<Key>,
}

pub fn active_marks(records: &Records) -> ActiveMarks {
    let mut found = ActiveMarks::default();
    let visit = |item| match item {
        RestoredItem::Block(_, block) => {
            found.blocks.extend(block.note.reason.map(|mark| mark.to_string()));
        }
        RestoredItem::List(_, entry) => {
            if let ListTarget::Value { value, .. } = entry.target {
                found.lists.insert(value);
            }
        }
        RestoredItem::Fact(fact) => {
            found.facts.insert(fact.about.value);
        }
        RestoredItem::Debt(debt) => {
            found.debts.insert(debt.key);
        }
        _ => {}
    };
    records.restore(NOW, Time::FOREVER, visit).unwrap();
    found
}
