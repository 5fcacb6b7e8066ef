//! The child process: writes records until it is killed, the disk is full or a sync fails.

use std::io::Read;
use std::path::{Path, PathBuf};

use catraca::records::{Ack, ListName, Record, RecordKind, Records};
use catraca::{Catalog, Check, Engine};

use crate::engine;
use crate::helpers::{NOW, block, open, records_of, subject};

const THREADS: usize = 3;

pub fn run_role(role: &str) {
    let folder = PathBuf::from(std::env::var_os("CATRACA_FOLDER").unwrap());
    match role {
        "act" => write_until_killed(&folder),
        "hold" => hold(&folder),
        "fill" => fill(&folder),
        "fill-and-die" => fill_and_die(&folder),
        "restart" => restart(&folder),
        "sync" => sync(&folder),
        other => panic!("no role {other}"),
    }
}

/// Writes records from several threads until it is killed; prints a line for each acknowledged act.
fn write_until_killed(folder: &Path) {
    let records = std::sync::Arc::new(open(folder));
    let node = engine::start(folder, &records);
    println!("ready");
    let round = std::env::var("CATRACA_ROUND").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let acts = (0..1_000_000).map(|n| (format!("{round}.{n}"), n));
            acts.for_each(|(mark, n)| node.act(&records, &mark, n));
        });
        scope.spawn(|| {
            let path = engine::snapshot(folder);
            (0..1_000_000).for_each(|_| assert!(node.app.engine().store().snapshot(&path).is_ok()));
        });
        for thread in 0..THREADS {
            let records = &records;
            let round = &round;
            scope.spawn(move || {
                // More than a process can do before it is killed.
                (0..1_000_000)
                    .for_each(|n| write_and_release(records, &format!("{round}.{thread}.{n}")))
            });
        }
    });
}

fn write_and_release(records: &Records, mark: &str) {
    if records.record(records_of(mark)).wait().is_durable() {
        println!("did {mark}");
    }
    let freed = format!("{mark}.freed");
    let both = [block(&freed), RecordKind::Release(subject(&freed))];
    let both = both.map(|kind| Record::operator(NOW, "ana", None, kind));
    let receipts = both.map(|record| records.record(vec![record]));
    if receipts.map(|receipt| receipt.wait().is_durable()) == [true, true] {
        println!("freed {freed}");
    }
}

/// Keeps the records open until standard input ends.
fn hold(folder: &Path) {
    let _records = open(folder);
    println!("ready");
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).unwrap();
}

/// Fills the disk until acts are refused, checks that decisions and reads continue, and frees
/// space.
fn fill(folder: &Path) {
    let records = std::sync::Arc::new(open(folder));
    let recorder = std::sync::Arc::clone(&records);
    let catalog = "[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1m\"\nblock = \"15m\"";
    let engine = Engine::builder(Catalog::parse(catalog).unwrap())
        .listener(move |event| recorder.on_event(event))
        .build();
    std::fs::write(folder.join("ballast"), vec![1; 2 << 20]).unwrap();
    let mut refused = 0;
    let mut number = 0;
    while refused < 20 {
        assert!(number < 50_000, "the disk does not fill");
        let mark = format!("{number}.{}", "x".repeat(1_000));
        match records.record(records_of(&mark)).wait() {
            Ack::Durable => println!("did {mark}"),
            Ack::NotYet(why) => {
                refused += 1;
                println!("later {mark}");
                assert!(why.contains("full"), "{why}");
            }
        }
        number += 1;
    }
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    let decided = [(); 3].map(|()| engine.check(&check).unwrap().reason.as_str());
    assert_eq!(
        decided,
        ["ok", "over_limit", "blocked"],
        "decisions continue, and the block applies"
    );
    assert!(records.audit(&Default::default()).is_ok(), "reads continue");
    let health = records.health();
    assert!(health.down.is_some() && health.failures > 0 && health.refused >= 20, "{health:?}");
    std::fs::remove_file(folder.join("ballast")).unwrap();
    records.flush().unwrap();
    let health = records.health();
    assert!(health.down.is_none() && health.lost == 0 && health.waiting == 0, "{health:?}");
    assert!(records.record(records_of("last")).wait().is_durable());
    println!("did last");
}

/// Fills the disk with the write-ahead log until acts are refused, and ends without closing it.
fn fill_and_die(folder: &Path) {
    let records = std::sync::Arc::new(open(folder));
    let _node = engine::start(folder, &records);
    std::fs::write(folder.join("ballast"), vec![1; 2 << 20]).unwrap();
    for number in 0..50_000 {
        let mark = format!("{number}.{}", "x".repeat(1_000));
        if !records.record(records_of(&mark)).wait().is_durable() {
            std::process::abort();
        }
        println!("did {mark}");
    }
    panic!("the disk does not fill");
}

/// Starts on a full disk: decides, says that nothing is durable, and recovers when there is space.
fn restart(folder: &Path) {
    let records = std::sync::Arc::new(open(folder));
    let node = engine::start(folder, &records);
    let listed = records.lists(ListName::Block, None, None, 1_000, NOW).unwrap().rows;
    assert!(listed.len() > 20, "{}", listed.len());
    // If the log was copied to the database just before the end, its space is used again first.
    let refused = (0..50_000).find_map(|number| {
        let mark = format!("again-{number}.{}", "x".repeat(1_000));
        match records.record(records_of(&mark)).wait() {
            Ack::Durable => {
                println!("did {mark}");
                None
            }
            Ack::NotYet(why) => Some((mark, why)),
        }
    });
    let (refused, why) = refused.expect("the disk is full");
    assert!(why.contains("full"), "{why}");
    assert!(records.health().down.is_some_and(|why| why.contains("full")));
    assert!(records.audit(&Default::default()).is_ok(), "reads continue");
    for name in ["ballast", "zeros"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    records.flush().unwrap();
    assert!(records.health().down.is_none(), "{:?}", records.health());
    println!("did {refused}");
    assert!(records.record(records_of("last")).wait().is_durable());
    println!("did last");
    drop(node);
}

/// Writes records while the n-th sync of the process fails.
fn sync(folder: &Path) {
    let opened = Records::open(&crate::helpers::url(folder), Default::default());
    let records = match opened {
        Ok(records) => records,
        Err(error) => return println!("closed {error}"),
    };
    for number in 0..8 {
        let mark = number.to_string();
        match records.record(records_of(&mark)).wait() {
            Ack::Durable => println!("did {mark}"),
            Ack::NotYet(why) => println!("later {mark} {why}"),
        }
    }
    records.flush().unwrap();
    let health = records.health();
    println!("failures {}", health.failures);
    assert_eq!(records.close(), 0);
}
