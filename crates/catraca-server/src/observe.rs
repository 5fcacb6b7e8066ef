//! Metrics, log lines and traces of a running server, fed by the engine's events.
//!
//! Observing never blocks a decision: it costs a few atomic additions and no lock, and a log line
//! that finds the queue full is dropped and counted.

pub mod background_tasks;
pub mod call_metrics;
pub mod engine_metrics;
pub mod latency;
pub mod log;
mod policy_lines;
pub mod policy_metrics;
pub mod proxy_metrics;
pub mod traces;
pub mod unmirrored_buckets;
pub mod wall_clock;

use std::io;

use catraca::Catalog;
use catraca::core::cell::block::Origin;
use catraca::event::{BlockEvent, Event};
use catraca::json::origin_name;
use catraca::settlement::SettleState;
use tracing::{Level, info, warn};

use background_tasks::BackgroundTasks;
use engine_metrics::EngineMetrics;
use log::{LogStyle, LogSubjects, Logs};
use policy_lines::PolicyLines;
use unmirrored_buckets::UnmirroredBuckets;
use wall_clock::WallClock;

/// Counts and logs the engine's events.
pub struct Observer {
    /// Counters of decisions, settles, credits and reloads.
    pub metrics: EngineMetrics,
    /// The log.
    pub logs: Logs,
    /// How log lines name callers.
    pub log_subjects: LogSubjects,
    /// The alarm on a stepped wall clock.
    pub wall_clock: WallClock,
    /// Whether the work in the background succeeds.
    pub background: BackgroundTasks,
    /// What the bank limits and the catalog does not.
    pub unmirrored: UnmirroredBuckets,
    expired_settles: PolicyLines,
    failed_conditions: PolicyLines,
}

impl Observer {
    /// Starts the log and the counters for the policies of a catalog.
    pub fn start(
        style: LogStyle,
        level: Level,
        log_subjects: LogSubjects,
        catalog: &Catalog,
    ) -> io::Result<Self> {
        Ok(Self {
            metrics: EngineMetrics::new(catalog),
            logs: Logs::start(style, level)?,
            log_subjects,
            wall_clock: WallClock::default(),
            background: BackgroundTasks::default(),
            expired_settles: PolicyLines::default(),
            failed_conditions: PolicyLines::default(),
            unmirrored: UnmirroredBuckets::default(),
        })
    }

    /// Counts an event, and logs it if it is rare enough and within the lines per second.
    pub fn on_event(&self, event: &Event<'_>) {
        self.metrics.on_event(event);
        match event {
            Event::Blocked { at, block } if self.logs.try_reserve_line(*at) => {
                log_block(block, self.log_subjects);
            }
            Event::BanStorm { at, policy } if self.logs.try_reserve_line(*at) => {
                warn!(
                    policy = &**policy,
                    "ban storm: ban rules of this policy are in shadow mode for ten minutes"
                );
            }
            Event::LowWater { at, policy, remaining, limit } if self.logs.try_reserve_line(*at) => {
                let policy = &**policy;
                warn!(policy, remaining, limit, "a key fell below `low_water` of this policy");
            }
            Event::UnlistedGate { at, gate, nearest } if self.logs.try_reserve_line(*at) => {
                log_unlisted_gate(gate, nearest.as_deref());
            }
            Event::NotSettled { at, state: SettleState::Expired, rows } => {
                let policies = rows.iter().map(|row| row.policy.as_str());
                for policy in self.expired_settles.to_log(policies, *at) {
                    warn!(
                        policy,
                        "a settle came after `hold` of this policy: its cost and its bans are not \
                         applied; settle earlier, or raise `hold`"
                    );
                }
            }
            Event::ConditionsFailed { at, policy, count } => {
                let policies = std::iter::once(&**policy);
                for policy in self.failed_conditions.to_log(policies, *at) {
                    warn!(
                        policy,
                        count,
                        "ban conditions of this policy could not be evaluated, and did not ban: \
                         a field is missing, or has another type; compare the `when` of its \
                         bans with the outcomes that are settled"
                    );
                }
            }
            Event::RecordsBehind { at, waited } if self.logs.try_reserve_line(*at) => {
                let waited_ms = waited.as_millis() as u64;
                warn!(
                    waited_ms,
                    "an operator's query did not wait any longer for queued records, so its \
                     answer may lack the newest entries, and says so (`incomplete`); if this \
                     stays, see whether the database of the records is unavailable, slow or locked"
                );
            }
            Event::CatalogReloaded { revision, policies, .. } => {
                info!(revision = &**revision, policies, "catalog reloaded");
            }
            _ => {}
        }
    }
}

/// Logs a gate that the catalog does not declare. A name is logged only if it is similar to a
/// declared one: any other text of a caller may contain what must not be in a log.
fn log_unlisted_gate(gate: &str, nearest: Option<&str>) {
    match nearest {
        Some(nearest) => warn!(
            gate,
            nearest,
            "a check named a gate that the catalog does not declare, so the default policy \
             decides; correct the name, declare the gate, or set `unlisted = \"deny\"`"
        ),
        None => warn!(
            "a check named a gate that the catalog does not declare, so the default policy \
             decides; `catraca stats` lists its name; declare the gate, or set \
             `unlisted = \"deny\"`"
        ),
    }
}

/// Logs a block. The caller is named by the keyed digest of the records, and with
/// [`LogSubjects::Clear`] also by its values as they may be shown; these, and the reason, which an
/// operator or a rule wrote, are quoted and escaped by the formatter.
fn log_block(event: &BlockEvent, subjects: LogSubjects) {
    let BlockEvent { subject, block, .. } = event;
    // The values of private attributes are pseudonyms already.
    let values = (subjects == LogSubjects::Clear).then(|| {
        let pairs = subject.parts.iter().map(|(name, value)| format!("{name}={value:?}"));
        pairs.collect::<Vec<_>>().join(" ")
    });
    let names: Vec<&str> = subject.parts.iter().map(|(name, _)| name.as_str()).collect();
    let until =
        if block.until.is_forever() { "forever".to_owned() } else { block.until.to_rfc3339() };
    warn!(
        policy = subject.policy.as_str(),
        key = format!("{:?}", subject.key).as_str(),
        by = names.join("+").as_str(),
        subject = values.as_deref(),
        until = until.as_str(),
        origin = origin_name(block.origin),
        reason = block.note.reason.as_deref().unwrap_or(default_reason(block.origin)),
        namespace = subject.namespace.as_str(),
        shadow = block.shadow,
        "blocked"
    );
}

/// The `reason` of a block without one.
fn default_reason(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "over the limit",
        Origin::Upstream => "refused by the upstream",
        Origin::Ban | Origin::Operator => "not given",
    }
}
