//! The metrics for Prometheus: counters so far and the current gauges, as OpenMetrics text.
//!
//! `docs/guide/observe.md` lists every name; a test keeps the two equal. The store is read shard by
//! shard, so that a scrape does not stall decisions.

mod counters;
mod gauges;
mod lock_metrics;

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::context::ServerContext;
use crate::observe::latency::HistogramSnapshot;

/// The labels of a series, in the order of the output.
type MetricLabels = Vec<(&'static str, String)>;
/// Counters by their labels.
type CounterFamily = Family<MetricLabels, Counter>;
/// Gauges by their labels.
type GaugeFamily<N = Gauge> = Family<MetricLabels, N>;

/// The text of a scrape.
pub fn text(context: &ServerContext) -> String {
    let mut registry = Registry::with_prefix("catraca");
    counters::decisions(&mut registry, &context.observer.metrics, context.app.now());
    counters::calls(&mut registry, &context.observer.metrics);
    gauges::catalog(&mut registry, context);
    gauges::store(&mut registry, context);
    gauges::shared_store(&mut registry, context);
    lock_metrics::locks(&mut registry, context.app.locks(), &context.app.catalog().locks);
    gauges::records(&mut registry, context);
    gauges::background(&mut registry, context);
    gauges::listener(&mut registry, context);
    gauges::proxy(&mut registry, &context.proxy_metrics);
    gauges::process(&mut registry);
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn counter(to: &mut Registry, name: &str, help: &str, count: u64) {
    to.register(name, help, ConstCounter::new(count));
}

fn gauge(to: &mut Registry, name: &str, help: &str, number: usize) {
    to.register(name, help, ConstGauge::new(to_i64(number)));
}

fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> MetricLabels {
    pairs.map(|(name, value)| (name, value.to_owned())).to_vec()
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A histogram whose counts come from elsewhere.
#[derive(Debug)]
struct HistogramMetric(HistogramSnapshot);

impl EncodeMetric for HistogramMetric {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let HistogramSnapshot { seconds, buckets } = &self.0;
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<[(&str, &str); 0]>(*seconds, count, buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
