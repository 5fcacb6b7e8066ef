//! `catraca simulate`: replays a history in virtual time through the engine of production.
//!
//! The clock is set by the lines of the history, so a run is repeatable byte for byte, except for
//! pseudonyms, which differ between runs without `--secret-file`. Results go to standard output;
//! notes about the run go to standard error.

mod access_log;
mod compare;
mod event;
mod json_results;
mod json_sink;
mod line_reader;
mod progress;
mod replay_engine;
mod report;
mod run;
mod sink;
mod source;
mod summary;

use std::fs;
use std::io::{BufWriter, StdoutLock, Write, stdout};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Context, Result};
use catraca::MemoryOptions;

use crate::args::{Output, SimulateArgs};
use crate::exit::Exit;
use crate::render::{count_noun, eprint_line};
use access_log::Reader;
use compare::Comparison;
use json_sink::JsonLinesSink;
use replay_engine::ReplayEngine;
use report::ReportLabels;
use run::{LateLines, ReplayResult};
use sink::Sink;
use source::{AHEAD, Source};

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// Replays a history; exits 2 if a line was bad.
pub fn run(args: &SimulateArgs) -> Result<Exit> {
    let result = match &args.compare {
        None => replay_one(args)?,
        Some(other) => replay_both(args, other)?,
    };
    note_late(result.late);
    note_inexact(&result);
    Ok(Exit::yes_or(result.fine, Exit::BadInput))
}

/// Replays under one catalog.
fn replay_one(args: &SimulateArgs) -> Result<ReplayResult> {
    let decisions_only = args.output == Output::Json && args.report.is_none();
    let engine = ReplayEngine::new(super::catalog(&args.catalog)?, memory(args), decisions_only);
    if decisions_only {
        return replay(args, &engine, &mut JsonLinesSink::new(buffered_stdout()));
    }
    let mut summary = engine.summary();
    let result = match args.output {
        Output::Json => {
            let mut both = (summary.quiet(), JsonLinesSink::new(buffered_stdout()));
            let result = replay(args, &engine, &mut both)?;
            summary = both.0;
            result
        }
        Output::Human => {
            let result = replay(args, &engine, &mut summary)?;
            summary.data().print(buffered_stdout())?;
            result
        }
    };
    if let Some(path) = &args.report {
        write_page(path, &report::page(&labels(args), &summary.data()))?;
    }
    Ok(result)
}

fn replay(
    args: &SimulateArgs,
    engine: &ReplayEngine,
    sink: &mut impl Sink,
) -> Result<ReplayResult> {
    let reader = Reader::new(&engine.catalog, args)?;
    let source = Source::open(&args.events)?;
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(AHEAD);
        let pump = scope.spawn(move || source.pump(&[sender]));
        let result = engine.replay(&reader, batches, sink, |_| {});
        // An error of reading explains why the run ended, so it comes first.
        replay_engine::join(pump).and(result)
    })
}

/// Replays under two catalogs, each on its own thread.
fn replay_both(args: &SimulateArgs, other: &Path) -> Result<ReplayResult> {
    let before = ReplayEngine::new(super::catalog(&args.catalog)?, memory(args), false);
    let after = ReplayEngine::new(super::catalog(other)?, memory(args), false);
    let (comparison, result) = compare::replay(args, &before, &after)?;
    let labels = labels(args);
    match args.output {
        Output::Human => comparison.print(&labels, buffered_stdout())?,
        Output::Json => comparison.write_json(&labels, buffered_stdout())?,
    }
    note_bad_lines(&comparison, &labels);
    if let Some(path) = &args.report {
        write_page(path, &report::comparison(&labels, &comparison))?;
    }
    Ok(result)
}

/// Splits `--memory` among the pools in the proportions of the server's defaults.
fn memory(args: &SimulateArgs) -> MemoryOptions {
    let defaults = MemoryOptions::default();
    let scale = |bytes: usize| bytes / (defaults.budget_bytes >> 20) * usize::from(args.memory);
    MemoryOptions {
        budget_bytes: scale(defaults.budget_bytes),
        block_bytes: scale(defaults.block_bytes),
        reference_bytes: scale(defaults.reference_bytes),
        mark_bytes: scale(defaults.mark_bytes),
        shards: defaults.shards,
    }
}

fn labels(args: &SimulateArgs) -> ReportLabels {
    let label = |path: &Path| match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
    };
    ReportLabels {
        history: label(&args.events),
        catalog: label(&args.catalog),
        other: args.compare.as_deref().map(label).unwrap_or_default(),
    }
}

fn buffered_stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(BUFFER_BYTES, stdout().lock())
}

fn write_page(path: &Path, page: &str) -> Result<()> {
    let written = fs::File::create(path).and_then(|mut file| file.write_all(page.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn note_late(late: LateLines) {
    if late.lines > 0 {
        eprint_line(format_args!(
            "note: {} older than an earlier line, by {} at most; decided in the order of the file",
            count_noun(late.lines as usize, "line is", "lines are"),
            late.most
        ));
    }
}

/// Notes that a memory limit was reached, so that some decisions differ from exact ones.
fn note_inexact(result: &ReplayResult) {
    if result.shared > 0 {
        eprint_line(format_args!(
            "note: the figures are not exact: more keys are active at once than fit into memory, \
             and {} in overflow cells shared by several callers; increase --memory",
            count_noun(result.shared as usize, "charge went", "charges went"),
        ));
    }
    if result.unblocked > 0 {
        eprint_line(format_args!(
            "note: the figures are not exact: {} because memory is full; increase --memory",
            count_noun(
                result.unblocked as usize,
                "block was not started",
                "blocks were not started"
            ),
        ));
    }
}

fn note_bad_lines(comparison: &Comparison, labels: &ReportLabels) {
    let before = comparison.before.bad;
    let after = comparison.after.bad;
    if before != after {
        eprint_line(format_args!(
            "note: {} has {} and {} has {}; simulate each alone to see the reasons",
            labels.catalog,
            count_noun(before as usize, "bad line", "bad lines"),
            labels.other,
            count_noun(after as usize, "bad line", "bad lines"),
        ));
    }
}
