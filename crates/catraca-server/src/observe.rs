//! What operators see of a running server: metrics and log lines, fed from the engine's events, and
//! traces.
//!
//! Must not hold anything up: a decision costs a few atomics and no lock, and a line that finds no
//! room is dropped and counted.

pub mod log;
pub mod meter;
mod policies;
pub mod scrape;
pub mod traces;

use std::io;

use catraca::Catalog;
use catraca::core::cell::block::Origin;
use catraca::event::{Blocked, Event};
use catraca::shape::origin;
use tracing::{Level, info, warn};

use log::{Logs, Style};
use meter::Meter;

/// Hears what happens, counts it and writes it down.
pub struct Observer {
    /// What is counted.
    pub meter: Meter,
    /// What is written down.
    pub logs: Logs,
}

impl Observer {
    /// An observer of what this catalog decides.
    pub fn start((style, level): (Style, Level), catalog: &Catalog) -> io::Result<Self> {
        Ok(Self { meter: Meter::new(catalog), logs: Logs::start(style, level)? })
    }

    /// Hears an event.
    pub fn hear(&self, event: &Event<'_>) {
        self.meter.hear(event);
        match event {
            Event::Blocked(block) if self.logs.has_room(block.at) => blocked(block),
            Event::Storm { at, policy } if self.logs.has_room(*at) => {
                warn!(policy, "too many bans at once: ban rules only watch for ten minutes");
            }
            Event::LowWater { at, policy, remaining, limit } if self.logs.has_room(*at) => {
                warn!(policy, remaining, limit, "below the low-water mark");
            }
            Event::Catalog { revision, policies, .. } => {
                info!(revision, policies, "another catalog is in force");
            }
            _ => {}
        }
    }
}

/// The caller is named by the keyed digest that the records know them by, never in clear; what
/// somebody wrote is quoted and escaped by the formatter.
fn blocked(block: &Blocked) {
    let names: Vec<&str> = block.parts.iter().map(|(name, _)| name.as_str()).collect();
    let until =
        if block.until.is_forever() { "forever".to_owned() } else { block.until.to_rfc3339() };
    warn!(
        policy = block.policy.as_str(),
        key = format!("{:?}", block.key).as_str(),
        by = names.join("+").as_str(),
        until = until.as_str(),
        origin = origin(block.origin),
        reason = block.note.reason.as_deref().unwrap_or(unsaid(block.origin)),
        namespace = block.namespace.as_str(),
        shadow = block.shadow,
        "blocked"
    );
}

/// What is said of a block that was given no reason.
fn unsaid(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "over the limit",
        Origin::Upstream => "the upstream refused",
        Origin::Ban | Origin::Operator => "not given",
    }
}
