//! Series about decisions, blocks, settles and credits. Every label value comes from the catalog or
//! from a fixed set.

use std::sync::atomic::{AtomicU64, Ordering};

use catraca::Time;
use catraca::core::cell::block::Origin;
use catraca::core::policy::Mode;
use catraca::json::origin_name;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{CounterFamily, GaugeFamily, counter, labels};
use crate::observe::engine_metrics::EngineMetrics;
use crate::observe::policy_metrics::{ORIGINS, PolicyMetrics, RATIO_SCALE, ReasonModeCounts};

/// Ratios by policy.
type RatioGauges = GaugeFamily<Gauge<f64, AtomicU64>>;

/// Series by policy.
pub fn decisions(registry: &mut Registry, metrics: &EngineMetrics, now: Time) {
    let decisions = CounterFamily::default();
    let denials = CounterFamily::default();
    let blocks = CounterFamily::default();
    let table = metrics.policies();
    let policies: Vec<(&str, &PolicyMetrics)> = table.all().collect();
    for (name, policy) in &policies {
        add_reasons(&decisions, name, &policy.decisions);
        add_reasons(&denials, name, &policy.denials);
        add_blocks(&blocks, name, policy);
    }
    registry.register("decisions", "Checks, by the policy that the decision names", decisions);
    registry.register(
        "denials",
        "Policy evaluations that did not fit, including those in shadow mode",
        denials,
    );
    registry.register("blocks_started", "Blocks started or extended", blocks);
    low_water(registry, &policies, now);
    watched_ratios(registry, &policies, now);
    let storms = CounterFamily::default();
    for (name, policy) in &policies {
        let Some(count) = &policy.storms else { continue };
        let count = count.load(Ordering::Relaxed);
        storms.get_or_create(&labels([("policy", name)])).inc_by(count);
    }
    let failed = CounterFamily::default();
    for (name, policy) in &policies {
        let count = policy.conditions_failed.load(Ordering::Relaxed);
        failed.get_or_create(&labels([("policy", name)])).inc_by(count);
    }
    let help = "Ban conditions that failed to evaluate, by policy";
    registry.register("condition_errors", help, failed);
    let help = "Ban storms: the ban rules of the policy are in shadow mode for a while";
    registry.register("ban_storms", help, storms);
}

fn low_water(registry: &mut Registry, policies: &[(&str, &PolicyMetrics)], now: Time) {
    let falls = CounterFamily::default();
    let lowest_ratios = RatioGauges::default();
    for (name, policy) in policies {
        let Some(lowest) = &policy.lowest else { continue };
        let count = policy.low_water.load(Ordering::Relaxed);
        falls.get_or_create(&labels([("policy", name)])).inc_by(count);
        let share = lowest.share(now) as f64 / RATIO_SCALE as f64;
        lowest_ratios.get_or_create(&labels([("policy", name)])).set(share);
    }
    registry.register("low_water", "Times that a key fell below low_water", falls);
    let help = "Lowest share of the limit that remained for any key, in this minute and the last";
    registry.register("lowest_remaining_ratio", help, lowest_ratios);
}

fn watched_ratios(registry: &mut Registry, policies: &[(&str, &PolicyMetrics)], now: Time) {
    let outcomes = CounterFamily::default();
    let share = CounterFamily::default();
    let ratios = RatioGauges::default();
    for (name, policy) in policies {
        let Some(watch) = &policy.watch else { continue };
        let labels = labels([("policy", name)]);
        outcomes.get_or_create(&labels).inc_by(watch.whole.load(Ordering::Relaxed));
        share.get_or_create(&labels).inc_by(watch.share.load(Ordering::Relaxed));
        if let Some(ratio) = watch.ratio(now) {
            ratios.get_or_create(&labels).set(ratio);
        }
    }
    registry.register("watch_outcomes", "Outcomes that the watched ratio counts", outcomes);
    registry.register(
        "watch_share",
        "Outcomes that count in the share of the watched ratio",
        share,
    );
    let help = "Watched ratio of all keys together, over the `per` of the policy";
    registry.register("watch_ratio", help, ratios);
}

/// Settles, credits, and decisions or settles with incomplete input.
pub fn calls(registry: &mut Registry, metrics: &EngineMetrics) {
    let settles = CounterFamily::default();
    let credits = CounterFamily::default();
    for (result, count) in metrics.settles() {
        settles.get_or_create(&labels([("result", result)])).inc_by(count);
    }
    for ((event, result), count) in metrics.credits() {
        credits.get_or_create(&labels([("event", &event), ("result", result)])).inc_by(count);
    }
    registry.register("settles", "Settles, by result", settles);
    registry.register("credits", "Credits, by event and result", credits);
    let [degraded, truncated] = metrics.incomplete_inputs();
    let help = "Decisions made without complete state";
    counter(registry, "degraded_decisions", help, degraded);
    let help = "Settles whose body was too large for the ban rules that read it";
    counter(registry, "settle_bodies_truncated", help, truncated);
    let help = "Checks of gates that the catalog does not declare";
    counter(registry, "unlisted_checks", help, metrics.unlisted_checks());
}

fn add_reasons(family: &CounterFamily, policy: &str, counts: &ReasonModeCounts) {
    for (reason, mode, count) in counts.counts() {
        let pairs = [("policy", policy), ("reason", reason.as_str()), ("mode", mode.as_str())];
        family.get_or_create(&labels(pairs)).inc_by(count);
    }
}

fn add_blocks(family: &CounterFamily, name: &str, policy: &PolicyMetrics) {
    for (mode, counts) in [Mode::Enforce, Mode::Shadow].iter().zip(&policy.blocks) {
        for (origin, count) in ORIGINS.iter().zip(counts) {
            let count = count.load(Ordering::Relaxed);
            // `increase()` misses the first block of a series that starts with it.
            let is_alerted = policy.watch.is_some() && *origin == Origin::Ban;
            if count > 0 || is_alerted {
                let pairs =
                    [("policy", name), ("origin", origin_name(*origin)), ("mode", mode.as_str())];
                family.get_or_create(&labels(pairs)).inc_by(count);
            }
        }
    }
}
