//! Series about the catalog, the store, the records, the listener and the process, read at the time
//! of the scrape.

use catraca::Engine;
use catraca::memory::MemoryPool;
use catraca::shared::SharedStats;
use catraca::supervise::{TaskPanics, task_panics};
use catraca_core::cell::CellKind;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::{CounterFamily, GaugeFamily, HistogramMetric, counter, gauge, labels, to_i64};
use crate::context::ServerContext;
use crate::listener::{CONNECTION_LIMITS, Phase};
use crate::observe::background_tasks::BackgroundTask;
use crate::observe::proxy_metrics::ProxyMetrics;

/// The catalog: revision, policies, reloads, and whether the files on disk are applied.
pub fn catalog(registry: &mut Registry, context: &ServerContext) {
    let catalog = context.app.catalog();
    let revision = Info::new(labels([("revision", &catalog.revision)]));
    registry.register("catalog", "Revision of the current catalog", revision);
    gauge(registry, "policies", "Policies of the current catalog", catalog.policies.len());
    let unlisted = context.app.engine().undeclared_gates().len();
    let help = "Distinct gates in checks that the catalog does not declare, up to 1000";
    gauge(registry, "unlisted_gates", help, unlisted);
    let error = context.reloader.error();
    let stale = usize::from(error.is_some());
    gauge(
        registry,
        "catalog_stale",
        "1 while the catalog on disk is invalid and not applied",
        stale,
    );
    let problem: GaugeFamily = GaugeFamily::default();
    if let Some(error) = &error {
        problem.get_or_create(&labels([("place", &error.location)])).set(1);
    }
    registry.register(
        "catalog_problem",
        "Location of the first error in the catalog on disk",
        problem,
    );
    let help = "1 for each policy whose mode an operator has overridden";
    registry.register("mode_overridden", help, overridden(context));
    let reloads = CounterFamily::default();
    for (result, count) in context.observer.metrics.reloads() {
        reloads.get_or_create(&labels([("result", result)])).inc_by(count);
    }
    registry.register("reloads", "Reloads of the catalog, by result", reloads);
    let step = context.observer.wall_clock.check() as f64 / 1e6;
    let help = "How far the wall clock was moved since the start";
    registry.register("wall_clock_step_seconds", help, ConstGauge::new(step));
    let built = Info::new(labels([("version", env!("CARGO_PKG_VERSION"))]));
    registry.register("build", "Version of the program", built);
}

/// Mode overrides of policies that exist; others have no effect.
fn overridden(context: &ServerContext) -> GaugeFamily {
    let gauges: GaugeFamily = GaugeFamily::default();
    for policy in &context.app.catalog().policies {
        if let Some(mode) = context.app.engine().mode_override(&policy.name) {
            let labels = labels([("policy", &policy.name), ("mode", mode.as_str())]);
            gauges.get_or_create(&labels).set(1);
        }
    }
    gauges
}

/// The memory store: its cells, and what it refused for lack of memory.
pub fn store(registry: &mut Registry, context: &ServerContext) {
    let engine = &context.app.engine();
    let stats = engine.store().stats();
    let cells: GaugeFamily = GaugeFamily::default();
    let bytes: GaugeFamily = GaugeFamily::default();
    let kinds = CellKind::ALL.iter().map(|kind| (kind.name(), stats[*kind]));
    let kinds = kinds.chain([("overflow", stats.overflow)]);
    for (kind, usage) in kinds {
        cells.get_or_create(&labels([("kind", kind)])).set(to_i64(usage.cells));
        bytes.get_or_create(&labels([("kind", kind)])).set(to_i64(usage.bytes));
    }
    registry.register("store_cells", "Cells in the memory store, by kind", cells);
    registry.register("store_bytes", "Bytes of the cells in the memory store, by kind", bytes);
    let help = "1 if the memory pool was full within the last minute";
    registry.register("store_full", help, full(engine));
    gauge(registry, "blocks", "Blocks that deny now", active_blocks(engine));
    let not_restored = usize::try_from(context.blocks_not_restored()).unwrap_or(usize::MAX);
    let help = "Blocks not restored at the start because their memory pool was full";
    gauge(registry, "blocks_not_restored", help, not_restored);
    for (name, help, count) in [
        (
            "store_overflow",
            "Rows of new keys for which memory had no room for a counter",
            stats.overflowed,
        ),
        (
            "store_refused_counters",
            "Strikes and watched ratios not counted because memory was full",
            stats.refused_counters,
        ),
        (
            "store_refused_blocks",
            "Blocks not started because their memory pool was full",
            stats.refused_blocks,
        ),
        (
            "store_refused_marks",
            "Settles refused because the memory pool of settled markers was full",
            stats.refused_marks,
        ),
        (
            "store_dropped_references",
            "References dropped before their time to make room for newer ones",
            stats.dropped_references,
        ),
    ] {
        counter(registry, name, help, count);
    }
}

/// 1 for each memory pool that was full within the last minute.
fn full(engine: &Engine) -> GaugeFamily {
    let full = engine.store().full_pools();
    let gauges: GaugeFamily = GaugeFamily::default();
    for pool in MemoryPool::ALL {
        let labels = labels([("pool", pool.as_str())]);
        gauges.get_or_create(&labels).set(i64::from(full.contains(&pool)));
    }
    gauges
}

/// The shared store, if there is one.
pub fn shared_store(registry: &mut Registry, context: &ServerContext) {
    let Some(stats) = context.app.shared_stats() else { return };
    let help = "1 while the whole shared store is used, 0 while on_failure decides for some keys";
    gauge(registry, "shared_up", help, usize::from(stats.up));
    let primaries: GaugeFamily = GaugeFamily::default();
    for (name, up) in &stats.primaries {
        primaries.get_or_create(&labels([("primary", name.as_str())])).set(i64::from(*up));
    }
    if !stats.primaries.is_empty() {
        let help = "1 while this primary is used, 0 while on_failure decides for its keys";
        registry.register("shared_primary_up", help, primaries);
    }
    let is_unsafe = usize::from(stats.config_warning.is_some());
    let help = "1 while the settings of the shared store let it lose blocks";
    gauge(registry, "shared_unsafe", help, is_unsafe);
    nodes(registry, &stats);
    let help = "1 while the primary of the shared store may have been replaced: no majority of the \
                Sentinels confirms it";
    gauge(registry, "shared_unconfirmed", help, usize::from(stats.doubt.is_some()));
    let help = "Blocks in the block cache of this node";
    gauge(registry, "shared_cached_blocks", help, stats.cached_blocks);
    gauge(
        registry,
        "shared_unsynced_blocks",
        "Blocks that are not written to the shared store yet",
        stats.unsynced_blocks,
    );
    let help = "Blocks that did not fit among the unsynced ones; the shared store gets all blocks \
                of this node instead";
    counter(registry, "shared_dropped_unsynced_blocks", help, stats.dropped_unsynced_blocks);
    if let Some(age) = stats.heartbeat_age {
        let age = ConstGauge::new(age.as_secs_f64());
        let help = "Time since the last heartbeat to the shared store has ended";
        registry.register("shared_heartbeat_age_seconds", help, age);
    }
    // Absent until the store has answered: zero would say that the clocks agree.
    if let Some(micros) = stats.clock_offset {
        let offset = ConstGauge::new(micros as f64 / 1e6);
        let help = "Clock of the shared store minus the clock of this node";
        registry.register("shared_clock_offset_seconds", help, offset);
    }
    counter(
        registry,
        "shared_breaker_opened",
        "Times that the circuit breaker of the shared store opened",
        stats.breaker_opened,
    );
    let failing = usize::from(stats.background_error.is_some());
    let help = "1 while a background task of the shared store fails; /readyz says why";
    gauge(registry, "shared_background_failing", help, failing);
    let help = "Changes of the shared store that this node could not apply to its local fallback";
    counter(registry, "shared_failed_mirrors", help, stats.failed_mirrors);
    let help = "Denials by the block cache, without a call to the shared store";
    counter(registry, "shared_cached_denials", help, stats.cached_denials);
    let (round_trips, failed) = context.observer.metrics.store_round_trips();
    counter(registry, "shared_failures", "Calls to the shared store that failed", failed);
    registry.register(
        "shared_round_trip_seconds",
        "Latency of calls to the shared store",
        HistogramMetric(round_trips),
    );
}

/// The other nodes, and the notices that they publish.
fn nodes(registry: &mut Registry, stats: &SharedStats) {
    let help = "Nodes that are alive, as the shared store last showed them";
    gauge(registry, "shared_nodes", help, stats.nodes);
    let differ = usize::from(stats.revision_problem.is_some());
    let help = "1 while live nodes use different revisions of the catalog";
    gauge(registry, "shared_revisions_differ", help, differ);
    let notices = usize::try_from(stats.notices).unwrap_or(usize::MAX);
    let help = "Notices of blocks and releases in the shared store";
    gauge(registry, "shared_notices", help, notices);
    let help = "Notices about active blocks that were dropped because there were too many";
    counter(registry, "shared_dropped_notices", help, stats.dropped_notices);
}

/// Blocks that deny now. The store also keeps ended ones, as long as their escalation level counts.
fn active_blocks(engine: &Engine) -> usize {
    let now = engine.now();
    let mut active = 0;
    engine
        .store()
        .for_each_block(|_, block| active += usize::from(block.until > now && !block.shadow));
    active
}

/// The health of the records.
pub fn records(registry: &mut Registry, context: &ServerContext) {
    let records = context.app.records();
    let health = records.map(|records| records.health()).unwrap_or_default();
    let is_written = health.down.is_none() && health.file_fault.is_none();
    let up = usize::from(records.is_some() && is_written);
    gauge(registry, "records_up", "1 while records are written to disk", up);
    let waiting = usize::try_from(health.waiting).unwrap_or(usize::MAX);
    gauge(registry, "records_waiting", "Records in the queue", waiting);
    for (name, help, count) in [
        ("records_written", "Records written to disk", health.written),
        ("records_commits", "Transactions committed", health.commits),
        ("records_failures", "Commits that failed and are retried", health.failures),
        ("records_not_durable", "Operations answered with `durable: false`", health.refused),
        ("records_postponed", "Records delayed because the queue was full", health.postponed),
        ("records_lost", "Records lost", health.lost),
        ("records_rejected", "Records that the database refused for good", health.rejected),
        ("records_maintenance_failures", "Failed maintenance runs", health.maintenance_failures),
        (
            "records_incomplete_queries",
            "Queries that were answered without queued records",
            context.observer.metrics.incomplete_queries(),
        ),
    ] {
        counter(registry, name, help, count);
    }
}

/// The work in the background.
pub fn background(registry: &mut Registry, context: &ServerContext) {
    let failing: GaugeFamily = GaugeFamily::default();
    let failures = CounterFamily::default();
    for task in BackgroundTask::ALL {
        let (is_failing, failed) = context.observer.background.state(task);
        let labels = labels([("task", task.as_str())]);
        failing.get_or_create(&labels).set(i64::from(is_failing));
        failures.get_or_create(&labels).inc_by(failed);
    }
    let help = "1 while work in the background fails; /readyz says why";
    registry.register("background_failing", help, failing);
    registry.register("background_failures", "Failed work in the background", failures);
    let panics = CounterFamily::default();
    for TaskPanics { task, count, .. } in task_panics() {
        panics.get_or_create(&labels([("task", task)])).inc_by(count);
    }
    let help = "Panics of tasks in the background, each of which was started again";
    registry.register("background_panics", help, panics);
    let help = "Buckets of the DICT for which the catalog has none, at the last poll";
    gauge(registry, "dict_unmirrored_buckets", help, context.observer.unmirrored.count());
}

/// Connections, responses and latencies, the feed, the log and traces.
pub fn listener(registry: &mut Registry, context: &ServerContext) {
    let calls = &context.calls;
    let checks = HistogramMetric(calls.checks());
    registry.register("check_seconds", "Latency of checks, without the network", checks);
    let other_calls = HistogramMetric(calls.other_calls());
    registry.register(
        "call_seconds",
        "Latency of all other calls, without the network",
        other_calls,
    );
    let [client_errors, server_errors] = calls.errors();
    counter(registry, "http_client_errors", "HTTP responses with a 4xx status", client_errors);
    counter(registry, "http_server_errors", "HTTP responses with a 5xx status", server_errors);
    let connections = &context.connections;
    let help = "Connections refused, by the limit that was reached";
    by_limit(registry, "connections_shed", help, connections.metrics.refusals());
    let help = "Idle connections closed to make room for new ones, by the limit that was reached";
    by_limit(registry, "connections_idle_closed", help, connections.metrics.idle_closed());
    let timeouts = CounterFamily::default();
    for (phase, name) in Phase::NAMES {
        let series = timeouts.get_or_create(&labels([("phase", name)]));
        series.inc_by(connections.metrics.timeouts(phase));
    }
    let help = "Timeouts of connections, by what they waited for";
    registry.register("connection_timeouts", help, timeouts);
    counter(registry, "tls_failed", "Failed TLS handshakes", connections.metrics.tls_failures());
    let failures = connections.metrics.accept_failures();
    counter(registry, "accept_failed", "Connections that the system could not accept", failures);
    gauge(registry, "connections", "Open connections", connections.count());
    gauge(registry, "connections_max", "The most open connections", connections.max());
    gauge(
        registry,
        "draining",
        "1 while the server is stopping",
        usize::from(connections.is_draining()),
    );
    gauge(
        registry,
        "feed_listeners",
        "Subscribers of the live feed",
        context.feed.subscriber_count(),
    );
    let dropped = context.observer.logs.dropped_lines();
    counter(registry, "log_lines_dropped", "Log lines dropped", dropped);
    let [sent, dropped] = context.traces.as_ref().map(|traces| traces.counts()).unwrap_or_default();
    counter(registry, "spans_sent", "Spans accepted by the collector", sent);
    counter(
        registry,
        "spans_dropped",
        "Spans dropped: the queue was full or the collector did not accept them",
        dropped,
    );
}

fn by_limit(
    registry: &mut Registry,
    name: &str,
    help: &str,
    counts: [u64; CONNECTION_LIMITS.len()],
) {
    let counters = CounterFamily::default();
    for ((_, limit), count) in CONNECTION_LIMITS.iter().zip(counts) {
        counters.get_or_create(&labels([("limit", limit)])).inc_by(count);
    }
    registry.register(name, help, counters);
}

/// The reverse proxy.
pub fn proxy(registry: &mut Registry, metrics: &ProxyMetrics) {
    let responses = CounterFamily::default();
    for (source, class, count) in metrics.responses() {
        responses.get_or_create(&labels([("from", source), ("class", class)])).inc_by(count);
    }
    let help = "Responses of the reverse proxy, by who made them and the class of their status";
    registry.register("proxy_responses", help, responses);
    let failures = CounterFamily::default();
    for (cause, count) in metrics.upstream_failures() {
        failures.get_or_create(&labels([("cause", cause)])).inc_by(count);
    }
    let help = "Proxied requests whose upstream failed, by cause";
    registry.register("proxy_upstream_failures", help, failures);
    let help = "Proxied requests whose settle was not applied";
    counter(registry, "proxy_settle_failures", help, metrics.settle_failures());
    let help = "Settles of proxied requests that wait for the store, and are repeated until hold \
                ends";
    gauge(registry, "proxy_settle_retries", help, metrics.settle_retries());
    let help = "Upstreams of routes to which no request can be sent; /readyz says why";
    gauge(registry, "proxy_upstreams_unusable", help, metrics.unusable().len());
    let help =
        "Proxied requests whose clients have gone and whose responses are read for the rules";
    gauge(registry, "proxy_abandoned_requests", help, metrics.abandoned_requests());
}

/// Memory, descriptors and CPU time of the process; memory and descriptors only where `/proc`
/// exists.
pub fn process(registry: &mut Registry) {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    // The second field of statm is the resident set, in pages.
    let resident = pages.split_whitespace().nth(1).and_then(|text| text.parse::<usize>().ok());
    if let Some(pages) = resident {
        let bytes = pages.saturating_mul(rustix::param::page_size());
        gauge(registry, "resident_memory_bytes", "Resident memory of the process", bytes);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        gauge(registry, "open_descriptors", "Open file descriptors", open.count());
    }
    let cpu_time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = cpu_time.tv_sec as f64 + cpu_time.tv_nsec as f64 / 1e9;
    registry.register("cpu_seconds", "CPU time of the process", ConstCounter::new(seconds));
}
