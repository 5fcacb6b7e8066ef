//! The number of threads changes no byte of the results: random catalogs and histories, replayed on
//! one thread in one batch and on several threads in small batches.
//!
//! The checks of a batch are planned before its first line is executed. In one batch, all are
//! planned before any state exists; with one line per batch, each is planned after all lines before
//! it.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fmt::Write;
use std::io::Cursor;
use std::num::NonZero;
use std::sync::Arc;

use catraca::{Catalog, MemoryOptions, Secret};
use catraca_replay::simulate::{
    HistoryFormat, JsonLines, Outputs, ReplayEngine, ReplayResult, Source, compare, replay,
};
use catraca_testkit::generate::Rng;
use catraca_testkit::generate::catalog::{catalog, version};
use catraca_testkit::generate::catalog_toml::toml;

const SEEDS: u64 = 150;
const LINES: usize = 400;
/// Larger than any history here: the whole history is one batch.
const ONE_BATCH: usize = usize::MAX;

/// How a history is replayed.
#[derive(Clone, Copy, Debug)]
struct Mode {
    threads: usize,
    batch_bytes: usize,
    memory: MemoryOptions,
}

/// Everything that a run returns.
#[derive(Debug, PartialEq)]
struct Observed {
    json: String,
    summary: String,
    result: ReplayResult,
}

#[test]
fn events_have_the_same_results_on_many_threads() {
    for_each_seed(|rng, seed| {
        let toml = toml(&catalog(rng));
        let size = size(rng);
        let history = events(rng, size.addresses);
        assert_same(seed, &toml, &history, &HistoryFormat::Events, size.memory, rng);
    });
}

#[test]
fn logs_have_the_same_results_on_many_threads() {
    for_each_seed(|rng, seed| {
        let toml = toml(&catalog(rng));
        let size = size(rng);
        let history = log(rng, size.addresses);
        let format = HistoryFormat::Combined { gate: Some("g0".to_owned()) };
        assert_same(seed, &toml, &history, &format, size.memory, rng);
    });
}

#[test]
fn comparisons_are_the_same_on_many_threads() {
    for_each_seed(|rng, seed| {
        let first = catalog(rng);
        let other = toml(&version(rng, &first));
        let first = toml(&first);
        let size = size(rng);
        let history = events(rng, size.addresses);
        let alone = comparison(&first, &other, &history, Mode::sequential(size.memory));
        for mode in modes(rng, size.memory) {
            let found = comparison(&first, &other, &history, mode);
            assert_eq!(alone, found, "seed {seed}, {mode:?}\n{first}");
        }
    });
}

/// Otherwise the tests above could compare runs in which nothing happens.
#[test]
fn the_histories_reach_every_kind_of_result() {
    let mut all = String::new();
    for_each_seed(|rng, _| {
        let toml = toml(&catalog(rng));
        let size = size(rng);
        let history = events(rng, size.addresses);
        let mode = Mode::sequential(size.memory);
        all += &observe(&toml, &history, &HistoryFormat::Events, mode).json;
    });
    for text in [
        "\"reason\":\"over_limit\"",
        "\"reason\":\"blocked\"",
        "\"reason\":\"allowlisted\"",
        "\"reason\":\"blocklisted\"",
        "\"degraded\":true",
        "\"settled\":null",
        "\"state\":\"settled\"",
        "\"state\":\"expired\"",
        "\"blocked_by\":\"ban",
        "\"credit\":{\"applied\":true",
        "\"credit\":{\"applied\":false",
        "\"block\":{\"applied\":true",
        "\"unblock\":{\"applied\":true",
        "\"reset\":{\"applied\":true",
        "\"error\":",
    ] {
        assert!(all.contains(text), "no line has {text}");
    }
}

/// `CATRACA_SEED` runs one seed alone.
fn for_each_seed(mut test: impl FnMut(&mut Rng, u64)) {
    let one = std::env::var("CATRACA_SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    seeds.for_each(|seed| test(&mut Rng::new(seed), seed));
}

fn assert_same(
    seed: u64,
    toml: &str,
    history: &str,
    format: &HistoryFormat,
    memory: MemoryOptions,
    rng: &mut Rng,
) {
    let alone = observe(toml, history, format, Mode::sequential(memory));
    for mode in modes(rng, memory) {
        let found = observe(toml, history, format, mode);
        assert_eq!(alone, found, "seed {seed}, {mode:?}\n{toml}");
    }
}

impl Mode {
    fn sequential(memory: MemoryOptions) -> Self {
        Self { threads: 1, batch_bytes: ONE_BATCH, memory }
    }

    fn source(self, history: &str) -> Source {
        let input = Cursor::new(history.to_owned());
        Source::from_reader(input, Arc::new(())).unwrap().with_batch_bytes(self.batch_bytes)
    }

    fn engine(self, toml: &str) -> ReplayEngine {
        let catalog = Catalog::parse(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
        ReplayEngine::new(catalog, self.memory, Secret::from_bytes([7; 32]), false)
    }

    fn threads(self) -> NonZero<usize> {
        NonZero::new(self.threads).unwrap()
    }
}

/// Batches of one line on one thread; batches of a few lines, of some, and of many on several.
fn modes(rng: &mut Rng, memory: MemoryOptions) -> [Mode; 4] {
    let mut mode = |least, most| Mode {
        threads: rng.within(2, 5) as usize,
        batch_bytes: rng.within(least, most) as usize,
        memory,
    };
    let line_by_line = Mode { threads: 1, batch_bytes: 1, memory };
    [line_by_line, mode(1, 400), mode(400, 4_000), mode(4_000, 20_000)]
}

/// The size of a case.
#[derive(Clone, Copy)]
struct Size {
    /// Number of addresses in the history.
    addresses: i64,
    memory: MemoryOptions,
}

/// Mostly few addresses, which meet limits often. In a third of the cases many, whose counters do
/// not fit into memory and share cells.
fn size(rng: &mut Rng) -> Size {
    let memory = MemoryOptions::default();
    if rng.chance(33) {
        Size { addresses: 250, memory: MemoryOptions { budget_bytes: 0, ..memory } }
    } else {
        Size { addresses: 4, memory }
    }
}

fn observe(toml: &str, history: &str, format: &HistoryFormat, mode: Mode) -> Observed {
    let engine = mode.engine(toml);
    let mut outputs =
        Outputs { summary: Some(engine.summary()), json: Some(JsonLines::new(Vec::new())) };
    let source = mode.source(history);
    let result = replay(source, format, &engine, &mut outputs, mode.threads()).unwrap();
    let json = String::from_utf8(outputs.json.unwrap().into_inner()).unwrap();
    let summary = format!("{:#?}", outputs.summary.unwrap().data());
    Observed { json, summary, result }
}

fn comparison(first: &str, other: &str, history: &str, mode: Mode) -> Observed {
    let before = mode.engine(first);
    let after = mode.engine(other);
    let source = mode.source(history);
    let bad_lines = Arc::new(std::sync::Mutex::new(String::new()));
    let listened = Arc::clone(&bad_lines);
    let listener = Box::new(move |number, error: &str| {
        writeln!(listened.lock().unwrap(), "{number} {error}").unwrap()
    });
    let format = HistoryFormat::Events;
    let threads = mode.threads();
    let (comparison, result) =
        compare(source, &format, &before, &after, listener, threads).unwrap();
    let mut json = Vec::new();
    comparison.write_json("a", "b", &mut json).unwrap();
    let before = comparison.before;
    let after = comparison.after;
    let bad_lines = bad_lines.lock().unwrap();
    let summary = format!("{before:#?} {after:#?} {bad_lines}");
    Observed { json: String::from_utf8(json).unwrap(), summary, result }
}

/// Events of every kind, some of them bad.
fn events(rng: &mut Rng, addresses: i64) -> String {
    let mut text = String::new();
    let mut at = 1_000_000;
    for line in 0..LINES {
        at += rng.pick(&[0, 0, 1, 10, 250, 1_000, 7_000, 60_000]);
        // A line in the past is bad.
        let written = if rng.chance(2) { at - 1 } else { at };
        let event = match rng.within(1, 100) {
            1..=80 => check(rng, addresses, line),
            81..=86 => {
                let reference = rng.within(0, line as i64);
                let event = rng.pick(&["payment", "refund", "e"]);
                let subject = subject(rng, addresses);
                format!(
                    r#""credit":{{"ref":"R{reference}","event":"{event}","subject":{subject}}}"#
                )
            }
            87..=89 => {
                let target = target(rng, addresses);
                let span = rng.pick(&["1s", "10m", "forever"]);
                format!(r#""block":{{{target},"for":"{span}"}}"#)
            }
            90..=92 => format!(r#""unblock":{{{}}}"#, target(rng, addresses)),
            93..=95 => format!(r#""reset":{{{}}}"#, target(rng, addresses)),
            _ => rng.pick(&[r#""gate":"g0""#, r#""gate":7"#, r#""what":1"#]).to_owned(),
        };
        writeln!(text, r#"{{"at":{written},{event}}}"#).unwrap();
    }
    text
}

fn check(rng: &mut Rng, addresses: i64, line: usize) -> String {
    let gate = rng.pick(&["g0", "g0", "g1", "g1", "g1", "undeclared"]);
    let subject = subject(rng, addresses);
    let mut text = format!(r#""gate":"{gate}","subject":{subject}"#);
    if rng.chance(40) {
        // Some references are used twice.
        let reference = line - rng.within(0, 1).min(line as i64) as usize;
        write!(text, r#","ref":"R{reference}""#).unwrap();
    }
    if rng.chance(10) {
        write!(text, r#","cost":{}"#, rng.pick(&[0, 1, 2, 5])).unwrap();
    }
    if rng.chance(10) {
        text += r#","lists":false"#;
    }
    if rng.chance(70) {
        let status = rng.pick(&[200, 200, 404, 429, 500, 503, 401]);
        let reject = rng.pick(&[4, 5, 6]);
        let retry = rng.pick(&[1, 7]);
        let body = format!(r#"{{"reject_id":{reject}}}"#);
        let headers = format!(r#"{{"retry-after":"{retry}"}}"#);
        let outcome = format!(r#"{{"status":{status},"body":{body},"headers":{headers}}}"#);
        write!(text, r#","outcome":{outcome}"#).unwrap();
        if rng.chance(50) {
            write!(text, r#","after_ms":{}"#, rng.pick(&[1, 10, 5_000, 100_000, 10_000_000]))
                .unwrap();
        }
    }
    text
}

fn target(rng: &mut Rng, addresses: i64) -> String {
    let policy = rng.pick(&["p0", "p1", "p2", "p9"]);
    let subject = subject(rng, addresses);
    format!(r#""policy":"{policy}","subject":{subject}"#)
}

fn subject(rng: &mut Rng, addresses: i64) -> String {
    let mut pairs = Vec::new();
    if rng.chance(95) {
        pairs.push(format!(r#""ip":"192.0.2.{}""#, rng.within(1, addresses)));
    }
    if rng.chance(90) {
        pairs.push(format!(r#""user":"{}""#, rng.pick(&["a", "a", "b"])));
    }
    if rng.chance(90) {
        pairs.push(format!(r#""org":"{}""#, rng.pick(&["a", "x"])));
    }
    format!("{{{}}}", pairs.join(","))
}

/// A combined log, slightly out of order and with some bad lines.
fn log(rng: &mut Rng, addresses: i64) -> String {
    let mut text = String::new();
    let mut second = 0;
    for _ in 0..LINES {
        second += rng.pick(&[0, 0, 1, 3, 10]);
        // Servers log the start of a request when it ends.
        let logged = (second - rng.pick(&[0, 0, 0, 2])).max(0);
        let hour = logged / 3_600 % 24;
        let minute = logged / 60 % 60;
        let status = rng.pick(&[200, 200, 404, 500]);
        let address = format!("192.0.2.{}", rng.within(1, addresses));
        let ip = rng.pick(&[&*address, &*address, "2001:db8::7", "bad"]);
        let time = format!("06/Jan/2026:{hour:02}:{minute:02}:{:02} +0000", logged % 60);
        writeln!(text, "{ip} - - [{time}] \"GET /{second} HTTP/1.1\" {status} 5").unwrap();
    }
    text
}
