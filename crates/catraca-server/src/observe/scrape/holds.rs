//! What is held right now: by the catalog, the store, the records, the listener and the process.
//!
//! Must not keep anything between two scrapes.

use catraca::Engine;
use catraca::memory::{MemoryPool, Usage};
use catraca::records::Records;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::{Counters, Drawn, Gauges, counter, gauge, labels, whole};
use crate::http::{Front, LIMITS, Listening};

/// The catalog in force, and whether it is the one on disk.
pub fn catalog(to: &mut Registry, front: &Front) {
    let catalog = front.engine.catalog();
    let revision = Info::new(labels([("revision", &catalog.revision)]));
    to.register("catalog", "The catalog in force", revision);
    gauge(to, "policies", "Policies in force", catalog.policies.len());
    let unlisted = front.engine.unlisted().len();
    gauge(to, "unlisted_gates", "Gates that were asked for and nobody declared", unlisted);
    let trouble = front.reloader.trouble();
    let stale = usize::from(trouble.is_some());
    gauge(to, "catalog_stale", "1 while the files on disk are not in force", stale);
    let problem: Gauges = Gauges::default();
    if let Some(trouble) = &trouble {
        problem.get_or_create(&labels([("place", &trouble.place)])).set(1);
    }
    to.register("catalog_problem", "Where the catalog on disk is wrong", problem);
    to.register("mode_overridden", "1 for each mode that an operator has set", overridden(front));
    let reloads = Counters::default();
    for (result, count) in front.observer.meter.reloads() {
        reloads.get_or_create(&labels([("result", result)])).inc_by(count);
    }
    to.register("reloads", "Catalogs that were tried while running", reloads);
    let built = Info::new(labels([("version", env!("CARGO_PKG_VERSION"))]));
    to.register("build", "The program", built);
}

/// Only of policies in force: what is overridden and not there decides nothing.
fn overridden(front: &Front) -> Gauges {
    let gauges: Gauges = Gauges::default();
    for policy in &front.engine.catalog().policies {
        if let Some(mode) = front.engine.overridden(&policy.name) {
            let labels = labels([("policy", &policy.name), ("mode", mode.as_str())]);
            gauges.get_or_create(&labels).set(1);
        }
    }
    gauges
}

/// What the store holds and what it had to do without.
pub fn store(to: &mut Registry, front: &Front) {
    let engine = &front.engine;
    let stats = engine.store().stats();
    let (cells, bytes): (Gauges, Gauges) = Default::default();
    let kinds: [(&str, Usage); 9] = [
        ("buckets", stats.buckets),
        ("logs", stats.logs),
        ("fixed", stats.fixed),
        ("leases", stats.leases),
        ("watches", stats.watches),
        ("overflow", stats.overflow),
        ("blocks", stats.blocks),
        ("marks", stats.marks),
        ("references", stats.references),
    ];
    for (kind, usage) in kinds {
        cells.get_or_create(&labels([("kind", kind)])).set(whole(usage.cells));
        bytes.get_or_create(&labels([("kind", kind)])).set(whole(usage.bytes));
    }
    to.register("store_cells", "What the store holds", cells);
    to.register("store_bytes", "Bytes that it takes", bytes);
    to.register("store_full", "1 if the pool had no room within the last minute", full(engine));
    gauge(to, "blocks", "Blocks that stand and decide", standing(engine));
    let left_out = usize::try_from(front.blocks_left_out()).unwrap_or(usize::MAX);
    gauge(to, "blocks_not_restored", "Blocks that found no room at the start", left_out);
    for (name, help, count) in [
        ("store_overflow", "Counts in cells that keys share because memory was full", stats.shared),
        ("store_refused_counters", "Counters not kept", stats.refused_counters),
        ("store_refused_blocks", "Blocks not started: their pool was full", stats.refused_blocks),
        ("store_refused_marks", "Settles not done: their pool was full", stats.refused_marks),
        ("store_dropped_references", "References dropped early", stats.dropped_references),
    ] {
        counter(to, name, help, count);
    }
}

fn full(engine: &Engine) -> Gauges {
    let full = engine.store().full_pools();
    let gauges: Gauges = Gauges::default();
    for pool in MemoryPool::ALL {
        let labels = labels([("pool", pool.as_str())]);
        gauges.get_or_create(&labels).set(i64::from(full.contains(&pool)));
    }
    gauges
}

/// The store that nodes share, if there is one.
pub fn shared(to: &mut Registry, front: &Front) {
    let Some(shared) = &front.shared else { return };
    let stats = shared.stats();
    gauge(to, "shared_up", "1 while the shared store is asked", usize::from(stats.up));
    let in_danger = usize::from(stats.danger.is_some());
    gauge(to, "shared_unsafe", "1 while its settings let it lose blocks", in_danger);
    gauge(to, "shared_cached_blocks", "Blocks that this node knows of", stats.known);
    gauge(
        to,
        "shared_unsynced_blocks",
        "Blocks that the shared store has still to be told of",
        stats.owing,
    );
    let ahead = ConstGauge::new(stats.ahead.unwrap_or_default() as f64 / 1e6);
    to.register("shared_clock_offset_seconds", "The store's clock less this node's", ahead);
    counter(to, "shared_breaker_opened", "Times that the shared store was given up", stats.opened);
    counter(to, "shared_cached_denials", "Denials without a trip", stats.cached);
    let (trips, lost) = front.observer.meter.trips();
    counter(to, "shared_failures", "Trips to the shared store without an answer", lost);
    to.register(
        "shared_round_trip_seconds",
        "How long trips to the shared store took",
        Drawn(trips),
    );
}

/// Blocks that stand now; one that is over may be remembered for its level.
fn standing(engine: &Engine) -> usize {
    let (now, mut standing) = (engine.now(), 0);
    engine
        .store()
        .each_block(|_, block| standing += usize::from(block.until > now && !block.shadow));
    standing
}

/// How the records fare, if anything is kept.
pub fn records(to: &mut Registry, records: Option<&Records>) {
    let health = records.map(Records::health).unwrap_or_default();
    let up = usize::from(records.is_some() && health.down.is_none());
    gauge(to, "records_up", "1 while acts reach the disk", up);
    let waiting = usize::try_from(health.waiting).unwrap_or(usize::MAX);
    gauge(to, "records_waiting", "Records that wait to be written", waiting);
    for (name, help, count) in [
        ("records_written", "Records on disk", health.written),
        ("records_commits", "Transactions", health.commits),
        ("records_failures", "Commits that failed and were tried again", health.failures),
        ("records_not_durable", "Acts answered `durable: false`", health.refused),
        ("records_postponed", "Records that found the queue full", health.postponed),
        ("records_lost", "Records given up", health.lost),
        ("records_rejected", "Records that the database will never take", health.rejected),
        ("records_maintenance_failures", "Housekeeping that failed", health.untended),
    ] {
        counter(to, name, help, count);
    }
}

/// Connections, answers and how long they took.
pub fn listener(to: &mut Registry, listening: &Listening<'_>) {
    let tally = listening.tally;
    to.register("check_seconds", "Time to answer a check", Drawn(tally.checks()));
    to.register("call_seconds", "Time to answer any other call", Drawn(tally.others()));
    let [refused, failed] = tally.unhappy();
    counter(to, "http_client_errors", "Answers that say the request was wrong", refused);
    counter(to, "http_server_errors", "Answers that say we were", failed);
    let help = "Connections refused because a limit was reached";
    by_limit(to, "connections_shed", help, tally.shed());
    let help = "Idle connections closed to make room for new ones, by the limit reached";
    by_limit(to, "connections_idle_closed", help, tally.idle_closed());
    let help = "Connections that did not speak TLS as they should";
    counter(to, "tls_failed", help, tally.strange());
    let (present, most) = listening.connections;
    gauge(to, "connections", "Connections open", present);
    gauge(to, "connections_max", "Connections that may be", most);
    gauge(to, "draining", "1 while the server is stopping", usize::from(listening.draining));
    let front = listening.front;
    gauge(to, "feed_listeners", "Listeners of the live feed", front.feed.listeners());
    let dropped = front.observer.logs.dropped();
    counter(to, "log_lines_dropped", "Log lines that found no room", dropped);
    let [sent, dropped] = front.traces.as_ref().map(|traces| traces.counts()).unwrap_or_default();
    counter(to, "spans_sent", "Spans that a collector took", sent);
    counter(to, "spans_dropped", "Spans that found no room or no collector", dropped);
}

fn by_limit(to: &mut Registry, name: &str, help: &str, counts: [u64; LIMITS.len()]) {
    let counters = Counters::default();
    for ((_, limit), count) in LIMITS.iter().zip(counts) {
        counters.get_or_create(&labels([("limit", limit)])).inc_by(count);
    }
    to.register(name, help, counters);
}

/// What the system says of the process; where it does not say, nothing is shown.
pub fn process(to: &mut Registry) {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split_whitespace().nth(1).and_then(|text| text.parse::<usize>().ok());
    if let Some(pages) = resident {
        let bytes = pages.saturating_mul(rustix::param::page_size());
        gauge(to, "resident_memory_bytes", "Memory that the process takes", bytes);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        gauge(to, "open_descriptors", "Files and connections open", open.count());
    }
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9;
    to.register("cpu_seconds", "Processor time spent", ConstCounter::new(seconds));
}
