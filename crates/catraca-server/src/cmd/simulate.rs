//! `catraca simulate`: a history through the engine that decides in production, in virtual time.
//!
//! The clock moves only when a line says so, so that a run can be repeated to the byte, save for
//! pseudonyms, which are of one run unless a file gives their secret. Standard output holds results
//! alone; what is wrong with the run goes to standard error. Must not hold rules: the engine has
//! them.

mod answer;
mod compare;
mod early;
mod event;
mod json;
mod lines;
mod log;
mod progress;
mod report;
mod run;
mod sink;
mod source;
mod stage;
mod summary;

use std::fs;
use std::io::{BufWriter, StdoutLock, Write, stdout};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Context, Result};
use catraca::MemoryOptions;

use crate::args::{Output, Simulate};
use crate::exit::Exit;
use crate::render::{counted, tell};
use compare::Comparison;
use json::Json;
pub use log::Field;
use log::Reader;
use report::Labels;
use run::{Ended, Late};
use sink::Sink;
use source::{AHEAD, Source};
use stage::Stage;

/// Bytes written at once.
const CHUNK: usize = 256 * 1024;

/// Replays a history; exits 2 if a line was bad.
pub fn run(args: &Simulate) -> Result<Exit> {
    let ended = match &args.compare {
        None => alone(args)?,
        Some(other) => compared(args, other)?,
    };
    tell_late(ended.late);
    tell_inexact(&ended);
    Ok(Exit::yes_or(ended.fine, Exit::Wrong))
}

/// One catalog.
fn alone(args: &Simulate) -> Result<Ended> {
    let decisions_only = args.output == Output::Json && args.report.is_none();
    let stage = Stage::new(super::catalog(&args.catalog)?, memory(args), decisions_only);
    if decisions_only {
        return replay(args, &stage, &mut Json::new(out()));
    }
    let mut summary = stage.summary();
    let ended = match args.output {
        Output::Json => {
            let mut both = (summary.quiet(), Json::new(out()));
            let ended = replay(args, &stage, &mut both)?;
            summary = both.0;
            ended
        }
        Output::Human => {
            let ended = replay(args, &stage, &mut summary)?;
            summary.picture().print(out())?;
            ended
        }
    };
    if let Some(path) = &args.report {
        write_page(path, &report::page(&labels(args), &summary.picture()))?;
    }
    Ok(ended)
}

fn replay(args: &Simulate, stage: &Stage, sink: &mut impl Sink) -> Result<Ended> {
    let reader = Reader::new(&stage.catalog, args)?;
    let source = Source::open(&args.events)?;
    thread::scope(|scope| {
        let (to, from) = sync_channel(AHEAD);
        let pump = scope.spawn(move || source.pump(&[to]));
        let ended = stage.replay(&reader, from, sink, |_| {});
        stage::joined(pump).and(ended)
    })
}

/// Two catalogs, side by side: each decides on a thread of its own.
fn compared(args: &Simulate, other: &Path) -> Result<Ended> {
    let before = Stage::new(super::catalog(&args.catalog)?, memory(args), false);
    let after = Stage::new(super::catalog(other)?, memory(args), false);
    let (comparison, ended) = compare::replay(args, &before, &after)?;
    let labels = labels(args);
    match args.output {
        Output::Human => comparison.print(&labels, out())?,
        Output::Json => comparison.write_json(&labels, out())?,
    }
    tell_bad(&comparison, &labels);
    if let Some(path) = &args.report {
        write_page(path, &report::comparison(&labels, &comparison))?;
    }
    Ok(ended)
}

/// The pools of a run, in the shares that a server has by default.
fn memory(args: &Simulate) -> MemoryOptions {
    let usual = MemoryOptions::default();
    let share = |bytes: usize| bytes / (usual.budget_bytes >> 20) * usize::from(args.memory);
    MemoryOptions {
        budget_bytes: share(usual.budget_bytes),
        block_bytes: share(usual.block_bytes),
        reference_bytes: share(usual.reference_bytes),
        mark_bytes: share(usual.mark_bytes),
        shards: usual.shards,
    }
}

fn labels(args: &Simulate) -> Labels {
    let shown = |path: &Path| match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
    };
    Labels {
        history: shown(&args.events),
        catalog: shown(&args.catalog),
        other: args.compare.as_deref().map(shown).unwrap_or_default(),
    }
}

fn out() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(CHUNK, stdout().lock())
}

fn write_page(path: &Path, page: &str) -> Result<()> {
    let written = fs::File::create(path).and_then(|mut file| file.write_all(page.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn tell_late(late: Late) {
    if late.lines > 0 {
        tell(format_args!(
            "note: {} behind the one before, by {} at most; decided in the order of the file",
            counted(late.lines as usize, "line is", "lines are"),
            late.most
        ));
    }
}

/// Bounds keep a server alive; a replay that reached one is no longer what each caller would get.
fn tell_inexact(ended: &Ended) {
    if ended.shared > 0 {
        tell(format_args!(
            "note: the figures are not exact: more keys are alive at once than the memory holds, \
             and {} in cells that callers share; give more with --memory",
            counted(ended.shared as usize, "count went", "counts went"),
        ));
    }
    if ended.unblocked > 0 {
        tell(format_args!(
            "note: the figures are not exact: {} for want of memory; give more with --memory",
            counted(ended.unblocked as usize, "block was not started", "blocks were not started"),
        ));
    }
}

fn tell_bad(comparison: &Comparison, labels: &Labels) {
    let (before, after) = (comparison.before.bad, comparison.after.bad);
    if before != after {
        tell(format_args!(
            "note: {} has {} and {} has {}; simulate each alone to see why",
            labels.catalog,
            counted(before as usize, "bad line", "bad lines"),
            labels.other,
            counted(after as usize, "bad line", "bad lines"),
        ));
    }
}
