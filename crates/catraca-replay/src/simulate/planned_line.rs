//! Lines whose checks are planned. Planning needs no state, so it runs on all cores before the turn
//! of the batch at the engine.

use catraca::Error;
use catraca::engine::CheckPlan;

use super::access_log::LineError;
use super::event::{ActEvent, At, CheckEvent, Event, EventKind};
use super::replay_engine::ReplayEngine;

/// A parsed line.
pub struct ParsedLine<'b> {
    /// Its number, from one.
    pub number: u64,
    /// The event, or why there is none.
    pub event: Result<Event<'b>, LineError>,
}

/// A parsed line, ready for its turn.
pub struct PlannedLine<'b, 'p> {
    /// Its number, from one.
    pub number: u64,
    /// The event, or why there is none.
    pub event: Result<PlannedEvent<'b, 'p>, &'b LineError>,
}

/// An event, ready for its turn.
pub struct PlannedEvent<'b, 'p> {
    /// The instant.
    pub at: &'b At<'b>,
    /// The check or act.
    pub kind: PlannedKind<'b, 'p>,
}

/// A check with its plan, or an act.
pub enum PlannedKind<'b, 'p> {
    /// A check. Its plan, or why it is refused.
    Check(&'b CheckEvent<'p>, Result<Box<CheckPlan<'b, 'b>>, Error>),
    /// A credit or an operator's act.
    Act(&'b ActEvent<'p>),
}

/// Plans the checks of a batch.
pub fn plan<'b, 'p>(
    engine: &'b ReplayEngine,
    lines: &'b [ParsedLine<'p>],
) -> Vec<PlannedLine<'b, 'p>> {
    let plan = |line: &'b ParsedLine<'p>| PlannedLine {
        number: line.number,
        event: line.event.as_ref().map(|event| plan_event(engine, event)),
    };
    lines.iter().map(plan).collect()
}

fn plan_event<'b, 'p>(engine: &'b ReplayEngine, event: &'b Event<'p>) -> PlannedEvent<'b, 'p> {
    let kind = match &event.kind {
        EventKind::Check(check) => PlannedKind::Check(check, engine.plan(check.check())),
        EventKind::Act(act) => PlannedKind::Act(act),
    };
    PlannedEvent { at: &event.at, kind }
}
