//! Simulation: replays a history in virtual time through the engine of production.
//!
//! The clock is set by the lines of the history, so a run is repeatable byte for byte, except for
//! pseudonyms, which depend on the secret.

mod access_log;
mod compare;
mod event;
mod json_results;
mod json_sink;
mod line_reader;
mod replay_engine;
mod run;
mod sink;
mod source;
mod summary;

use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::Result;

pub use access_log::{Field, HistoryFormat, LogField};
pub use compare::{ChangedSubject, Comparison, DecisionChanges, compare};
pub use json_sink::JsonLinesSink;
pub use replay_engine::ReplayEngine;
pub use run::{LateLines, ReplayResult};
pub use sink::Sink;
pub use source::{ReadProgress, Source};
pub use summary::{
    Axis, BadLineListener, HistoryInstant, PolicySummary, ReasonCounts, Summary, SummaryData,
    Timeline, TimelineSlot, sum,
};

use access_log::Reader;
use source::AHEAD;

/// Replays a history under one catalog.
pub fn replay(
    source: Source,
    format: &HistoryFormat,
    engine: &ReplayEngine,
    sink: &mut impl Sink,
) -> Result<ReplayResult> {
    let reader = Reader::new(&engine.catalog, format);
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(AHEAD);
        let pump = scope.spawn(move || source.pump(&[sender]));
        let result = engine.replay(&reader, batches, sink, |_| {});
        // An error of reading explains why the run ended, so it comes first.
        replay_engine::join(pump).and(result)
    })
}
