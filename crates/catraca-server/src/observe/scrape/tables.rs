//! What was counted of decisions, blocks, settles and credits, as series.
//!
//! Must not invent a label: each comes from the catalog or is a word of ours.

use std::sync::atomic::{AtomicU64, Ordering};

use catraca::Time;
use catraca::core::policy::Mode;
use catraca::shape::origin;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::super::meter::Meter;
use super::super::policies::{Grid, ORIGINS, Row, WHOLE};
use super::{Counters, Gauges, counter, labels};

/// A share or ratio by policy.
type Shares = Gauges<Gauge<f64, AtomicU64>>;

/// What is counted by policy.
pub fn decisions(to: &mut Registry, meter: &Meter, now: Time) {
    let [decisions, denials, blocks] = [(); 3].map(|()| Counters::default());
    let rows = meter.rows();
    for (name, row) in rows.all() {
        grid(&decisions, name, &row.decisions);
        grid(&denials, name, &row.denials);
        blocked(&blocks, name, row);
    }
    to.register("decisions", "Checks decided, by the policy named", decisions);
    to.register("denials", "Rows without room, shadow ones too", denials);
    to.register("blocks_started", "Blocks started or lengthened", blocks);
    let rows: Vec<(&str, &Row)> = rows.all().collect();
    low_water(to, &rows, now);
    watched(to, &rows, now);
    let storms = Counters::default();
    for (name, count) in rows.iter().filter_map(|(name, row)| Some((name, row.storms.as_ref()?))) {
        let count = count.load(Ordering::Relaxed);
        storms.get_or_create(&labels([("policy", name)])).inc_by(count);
    }
    to.register("ban_storms", "Ban rules turned to shadow for a while", storms);
}

fn low_water(to: &mut Registry, rows: &[(&str, &Row)], now: Time) {
    let (falls, lowest) = (Counters::default(), Shares::default());
    for (name, row) in rows {
        let Some(least) = &row.lowest else { continue };
        let count = row.low_water.load(Ordering::Relaxed);
        falls.get_or_create(&labels([("policy", name)])).inc_by(count);
        let share = least.share(now) as f64 / WHOLE as f64;
        lowest.get_or_create(&labels([("policy", name)])).set(share);
    }
    to.register("low_water", "Falls below a low-water mark", falls);
    let help = "Least share of the limit that remained to one key, this minute and the last";
    to.register("lowest_remaining_ratio", help, lowest);
}

fn watched(to: &mut Registry, rows: &[(&str, &Row)], now: Time) {
    let (outcomes, share, ratio) = (Counters::default(), Counters::default(), Shares::default());
    for (name, row) in rows {
        let Some(watch) = &row.watch else { continue };
        let labels = labels([("policy", name)]);
        outcomes.get_or_create(&labels).inc_by(watch.whole.load(Ordering::Relaxed));
        share.get_or_create(&labels).inc_by(watch.share.load(Ordering::Relaxed));
        if let Some(now) = watch.ratio(now) {
            ratio.get_or_create(&labels).set(now);
        }
    }
    to.register("watch_outcomes", "Outcomes that a watched ratio counts", outcomes);
    to.register("watch_share", "Those of them that count in the share", share);
    let help = "The watched ratio of all keys together, over the policy's own time";
    to.register("watch_ratio", help, ratio);
}

/// Settles and credits.
pub fn calls(to: &mut Registry, meter: &Meter) {
    let (settles, credits) = (Counters::default(), Counters::default());
    for (result, count) in meter.settles() {
        settles.get_or_create(&labels([("result", result)])).inc_by(count);
    }
    for ((event, result), count) in meter.credits() {
        credits.get_or_create(&labels([("event", &event), ("result", result)])).inc_by(count);
    }
    to.register("settles", "Settles, by what they came to", settles);
    to.register("credits", "Credits, by event and by what they came to", credits);
    let [degraded, failed, truncated] = meter.troubles();
    counter(
        to,
        "degraded_decisions",
        "Decisions made while the store could not tell all",
        degraded,
    );
    counter(to, "condition_errors", "Ban conditions that could not be judged", failed);
    let help = "Settles whose body was too large for the ban rules that read it";
    counter(to, "settle_bodies_truncated", help, truncated);
}

fn grid(to: &Counters, policy: &str, grid: &Grid) {
    for (reason, mode, count) in grid.counts() {
        let (reason, mode) = (reason.as_str(), mode.as_str());
        let labels = labels([("policy", policy), ("reason", reason), ("mode", mode)]);
        to.get_or_create(&labels).inc_by(count);
    }
}

fn blocked(to: &Counters, policy: &str, row: &Row) {
    for (mode, counts) in [Mode::Enforce, Mode::Shadow].iter().zip(&row.blocks) {
        for (from, count) in ORIGINS.iter().zip(counts) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let pairs =
                    [("policy", policy), ("origin", origin(*from)), ("mode", mode.as_str())];
                to.get_or_create(&labels(pairs)).inc_by(count);
            }
        }
    }
}
