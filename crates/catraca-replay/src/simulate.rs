//! Simulation: replays a history in virtual time through the engine of production.
//!
//! The clock is set by the lines of the history, so a run is repeatable byte for byte, except for
//! pseudonyms, which depend on the secret.

mod access_log;
mod compare;
mod due_settlement;
mod event;
mod json_lines;
mod json_results;
mod line_reader;
mod line_result;
mod pipeline;
mod planned_line;
mod replay_engine;
mod run;
mod source;
mod summary;

use std::io::{self, Write};
use std::num::NonZero;

use anyhow::Result;

pub use access_log::{Field, HistoryFormat, LogField};
pub use compare::{ChangedSubject, Comparison, DecisionChanges, compare};
pub use json_lines::JsonLines;
pub use pipeline::default_threads;
pub use replay_engine::ReplayEngine;
pub use run::{LateLines, ReplayResult};
pub use source::{ReadProgress, Source};
pub use summary::{
    Axis, BadLineListener, HistoryInstant, PolicySummary, ReasonCounts, Summary, SummaryData,
    Timeline, TimelineSlot, sum,
};

use access_log::LineParser;
use json_lines::JsonBatch;
use line_result::LineResult;
use pipeline::Pipeline;
use planned_line::plan;
use run::RunOptions;

/// What a run writes its results to.
pub struct Outputs<W> {
    /// Counts the results.
    pub summary: Option<Summary>,
    /// Writes every result.
    pub json: Option<JsonLines<W>>,
}

/// Replays a history under one catalog. The results do not depend on the number of threads.
pub fn replay<W: Write + Send>(
    source: Source,
    format: &HistoryFormat,
    engine: &ReplayEngine,
    outputs: &mut Outputs<W>,
    threads: NonZero<usize>,
) -> Result<ReplayResult> {
    let parser = LineParser::new(&engine.catalog, format);
    let writes_json = outputs.json.is_some();
    let options = RunOptions { is_log: parser.is_log(), holds_back: writes_json };
    let pipeline = Pipeline::new(threads);
    let run = pipeline.add_stage(engine.start_run(options));
    let output = pipeline.add_stage(&mut *outputs);
    let end = pipeline.run(source, |number, batch| {
        let lines = parser.parse(batch);
        let lines = plan(engine, &lines);
        let results = run.take_turn(number, |run| run.execute(lines))?;
        let json = writes_json.then(|| JsonBatch::render(&results)).transpose()?;
        output.take_turn(number, |outputs| Ok(outputs.write(&results, json.as_ref())?))
    })?;
    let mut run = run.into_inner();
    let results = run.finish();
    let json = writes_json.then(|| JsonBatch::render(&results)).transpose()?;
    outputs.write(&results, json.as_ref())?;
    outputs.flush()?;
    // The lines before an error of reading have their results.
    end?;
    Ok(run.result())
}

impl<W: Write> Outputs<W> {
    fn write(&mut self, results: &[LineResult<'_>], json: Option<&JsonBatch>) -> io::Result<()> {
        if let Some(summary) = &mut self.summary {
            summary.count(results);
        }
        match (&mut self.json, json) {
            (Some(lines), Some(batch)) => lines.write(batch),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.json.as_mut().map_or(Ok(()), JsonLines::flush)
    }
}
