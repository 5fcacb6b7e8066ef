//! `catraca simulate`: arguments, notes and output of a simulation, which `catraca-replay` runs.
//!
//! Results go to standard output; notes about the run go to standard error.

mod comparison_text;
mod progress;
mod report;
mod summary_text;

use std::fs;
use std::io::{BufWriter, Stdout, Write, stdout};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catraca::MemoryOptions;
use catraca_replay::simulate::{
    BadLineListener, Comparison, HistoryFormat, JsonLines, LateLines, Outputs, ReplayEngine,
    ReplayResult, Source, compare, default_threads, replay,
};

use super::secret::secret;
use crate::args::{Format, Output, SimulateArgs};
use crate::exit::Exit;
use crate::render::{count, count_noun, eprint_line, sanitize};
use progress::Progress;
use report::ReportLabels;

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;
/// Bad lines that are printed; further ones are only counted.
const BAD_LINES_PRINTED: u64 = 20;

/// Replays a history; exits 2 if a line was bad.
pub fn run(args: &SimulateArgs) -> Result<Exit> {
    let format = history_format(args)?;
    let result = match &args.compare {
        None => replay_one(args, &format)?,
        Some(other) => replay_both(args, &format, other)?,
    };
    note_late(result.late);
    note_inexact(&result);
    Ok(Exit::yes_or(result.fine, Exit::BadInput))
}

/// The format of the history; refuses options of another format.
fn history_format(args: &SimulateArgs) -> Result<HistoryFormat> {
    if args.format != Format::Json && !args.field.is_empty() {
        bail!("--field is for JSON logs; add --format json");
    }
    if args.format == Format::Events && args.gate.is_some() {
        bail!("--gate is for access logs; an event has its own gate");
    }
    let gate = args.gate.clone();
    Ok(match args.format {
        Format::Events => HistoryFormat::Events,
        Format::Combined => HistoryFormat::Combined { gate },
        Format::Json => HistoryFormat::Json { gate, fields: args.field.clone() },
    })
}

/// Replays under one catalog.
fn replay_one(args: &SimulateArgs, format: &HistoryFormat) -> Result<ReplayResult> {
    let is_json = args.output == Output::Json;
    let engine = engine(args, &args.catalog, is_json && args.report.is_none())?;
    let mut outputs = Outputs { summary: None, json: None };
    if is_json {
        outputs.json = Some(JsonLines::new(buffered_stdout()));
        outputs.summary = args.report.as_ref().map(|_| engine.summary());
    } else {
        // With `-o json`, bad lines are among the results.
        outputs.summary = Some(engine.summary().with_bad_line_listener(bad_line_printer()));
    }
    let result = replay(open(args)?, format, &engine, &mut outputs, default_threads())?;
    let Some(data) = outputs.summary.map(|summary| summary.data()) else { return Ok(result) };
    if !is_json {
        note_unprinted_bad_lines(data.bad);
        summary_text::print(&data, buffered_stdout())?;
    }
    if let Some(path) = &args.report {
        write_page(path, &report::page(&labels(args), &data))?;
    }
    Ok(result)
}

/// Replays under two catalogs, and compares.
fn replay_both(args: &SimulateArgs, format: &HistoryFormat, other: &Path) -> Result<ReplayResult> {
    let before = engine(args, &args.catalog, false)?;
    let after = engine(args, other, false)?;
    let source = open(args)?;
    let bad_lines = bad_line_printer();
    let (comparison, result) =
        compare(source, format, &before, &after, bad_lines, default_threads())?;
    note_unprinted_bad_lines(comparison.before.bad);
    let labels = labels(args);
    match args.output {
        Output::Human => comparison_text::print(&comparison, &labels, buffered_stdout())?,
        Output::Json => {
            comparison.write_json(&labels.catalog, &labels.other, buffered_stdout())?;
        }
    }
    note_bad_lines(&comparison, &labels);
    if let Some(path) = &args.report {
        write_page(path, &report::comparison(&labels, &comparison))?;
    }
    Ok(result)
}

fn engine(args: &SimulateArgs, catalog: &Path, silent: bool) -> Result<ReplayEngine> {
    Ok(ReplayEngine::new(super::catalog(catalog)?, memory(args), secret(), silent))
}

fn open(args: &SimulateArgs) -> Result<Source> {
    Source::open(&args.events, |size| Arc::new(Progress::new(size)))
}

/// Prints the first bad lines to standard error.
fn bad_line_printer() -> BadLineListener {
    let mut printed = 0;
    Box::new(move |number, error| {
        if printed < BAD_LINES_PRINTED {
            eprint_line(format_args!("line {number}: {}", sanitize(error)));
            printed += 1;
        }
    })
}

fn note_unprinted_bad_lines(bad: u64) {
    let more = bad.saturating_sub(BAD_LINES_PRINTED);
    if more > 0 {
        eprint_line(format_args!("and {} more bad lines", count(more)));
    }
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

fn buffered_stdout() -> BufWriter<Stdout> {
    BufWriter::with_capacity(BUFFER_BYTES, stdout())
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
