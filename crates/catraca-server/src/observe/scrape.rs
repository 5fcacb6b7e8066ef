//! One scrape: what was counted so far, and what is held right now.
//!
//! `docs/guide/observe.md` lists every name; a test keeps the two equal. Must not stall decisions:
//! the store is read shard by shard.

mod holds;
mod locks;
mod tables;

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::http::{Listening, Times};

/// The labels of a series, in the order in which they are shown.
type Labels = Vec<(&'static str, String)>;
/// Series that only grow, by their labels.
type Counters = Family<Labels, Counter>;
/// Series that come and go, by their labels.
type Gauges<N = Gauge> = Family<Labels, N>;

/// The text of a scrape, in the OpenMetrics format that Prometheus reads.
pub fn text(listening: &Listening<'_>) -> String {
    let mut now = Registry::with_prefix("catraca");
    let front = listening.front;
    tables::decisions(&mut now, &front.observer.meter, front.engine.now());
    tables::calls(&mut now, &front.observer.meter);
    holds::catalog(&mut now, front);
    holds::store(&mut now, front);
    holds::shared(&mut now, front);
    locks::locks(&mut now, &front.locks, &front.engine.catalog().locks);
    holds::records(&mut now, front.records.as_deref());
    holds::listener(&mut now, listening);
    holds::process(&mut now);
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = encode(&mut text, &now);
    text
}

fn counter(to: &mut Registry, name: &str, help: &str, count: u64) {
    to.register(name, help, ConstCounter::new(count));
}

fn gauge(to: &mut Registry, name: &str, help: &str, number: usize) {
    to.register(name, help, ConstGauge::new(whole(number)));
}

fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.map(|(name, value)| (name, value.to_owned())).to_vec()
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A histogram as it was counted.
#[derive(Debug)]
struct Drawn(Times);

impl EncodeMetric for Drawn {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Times { seconds, buckets } = &self.0;
        let count = buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<[(&str, &str); 0]>(*seconds, count, buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
