//! Traces: one span for each call, in the caller's own trace, sent by OTLP over gRPC.
//!
//! Made only with `[server] traces`; without it a request pays one look at an empty place. Must not
//! carry anything of a caller: names of the catalog, rows of the table of calls and words of ours
//! alone.

mod queue;
mod sender;
mod span;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::http::{HeaderMap, Method, Uri};
use catraca::records::redacted;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::warn;

use queue::{Counts, Queue};
use sender::Collector;
pub use span::Span;

/// Where callers name their trace; what else they tell of it may name people and is not read.
const PARENT: &str = "traceparent";
/// How long the last spans may take at a stop.
const FAREWELL: Duration = Duration::from_secs(3);

/// Where spans go, and how many of those that nobody asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The collector's address.
    pub address: String,
    /// The share of calls without a `traceparent` that are traced, up to one.
    pub share: f64,
}

/// Sends spans to a collector.
pub struct Traces {
    tracer: SdkTracer,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
    sending: Mutex<Option<JoinHandle<()>>>,
}

impl Target {
    /// A collector's address, such as `http://127.0.0.1:4317`.
    pub fn read(address: &str, share: f64) -> Result<Self> {
        let fix = || {
            format!(
                "[server] traces = {:?}: write where a collector takes OTLP over gRPC in \
                 clear, such as http://127.0.0.1:4317",
                redacted(address)
            )
        };
        let uri: Uri = address.parse().with_context(fix)?;
        let plain = uri.scheme_str() == Some("http") && ["", "/"].contains(&uri.path());
        let plain = plain && uri.query().is_none();
        let authority = uri.authority().filter(|_| plain).with_context(fix)?;
        ensure!(authority.port().is_some() && !authority.as_str().contains('@'), "{}", fix());
        Ok(Self { address: format!("http://{authority}"), share })
    }
}

impl Traces {
    /// Sends spans from now on, by this runtime.
    pub fn start(target: &Target, runtime: &Handle) -> Result<Self> {
        let _within = runtime.enter();
        let resource = resource();
        let collector = Collector::new(&target.address, &resource).context("[server] traces")?;
        let (queue, waiting) = Queue::new();
        let (counts, stop) = (Arc::clone(&queue.counts), Arc::new(Notify::new()));
        let sent = Arc::clone(&counts);
        let sending = tokio::spawn(sender::send(waiting, collector, sent, Arc::clone(&stop)));
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(target.share)));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        let (tracer, sending) = (provider.tracer("catraca"), Mutex::new(Some(sending)));
        Ok(Self { tracer, counts, stop, sending })
    }

    /// Begins the span of a call, named by its row in the table of calls if it has one.
    pub fn begin(&self, method: &Method, row: Option<&'static str>, headers: &HeaderMap) -> Span {
        let nobody = Context::new();
        let parent = TraceContextPropagator::new().extract_with_context(&nobody, &Parent(headers));
        let method = span::method(method);
        let name = row.map_or_else(|| method.into(), |row| format!("{method} {row}"));
        let known = [
            Some(KeyValue::new("http.request.method", method)),
            row.map(|row| KeyValue::new("http.route", row)),
        ];
        let builder = self.tracer.span_builder(name).with_kind(SpanKind::Server);
        let builder = builder.with_attributes(known.into_iter().flatten());
        let begun = builder.start_with_context(&self.tracer, &parent);
        Span::of(parent.with_span(begun))
    }

    /// Spans that a collector took, and that nobody did.
    pub fn counts(&self) -> [u64; 2] {
        self.counts.read()
    }

    /// Sends what is left, for a few seconds at most.
    pub async fn close(&self) {
        self.stop.notify_one();
        let Some(sending) = self.sending.lock().take() else { return };
        let ended = tokio::time::timeout(FAREWELL, sending).await;
        let lost = self.counts.lost();
        if ended.is_err() || lost > 0 {
            warn!(lost, "spans that no collector took");
        }
    }
}

/// What the process is called; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` may say more.
fn resource() -> Resource {
    let mut known = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        known = known.with_service_name("catraca");
    }
    known.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build()
}

/// The one header that a trace is continued by; sent twice it names no trace.
struct Parent<'h>(&'h HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let mut lines = self.0.get_all(PARENT).iter();
        let line = lines.next().filter(|_| key == PARENT && lines.next().is_none())?;
        line.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec![PARENT]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_and_nothing_else() {
        let read = |address: &str| Target::read(address, 1.0);
        for good in ["http://127.0.0.1:4317", "http://collector:4317/", "http://[::1]:4317"] {
            assert_eq!(read(good).unwrap().address, good.trim_end_matches('/'));
        }
        for bad in [
            "",
            "127.0.0.1:4317",
            "https://a:4317",
            "http://a",
            "http://a:1/x",
            "http://a:1/?x",
            "http://u@a:1",
        ] {
            let said = format!("{:#}", read(bad).unwrap_err());
            assert!(said.contains("such as http://127.0.0.1:4317"), "{bad}: {said}");
        }
    }

    #[test]
    fn a_trace_is_named_once_or_not_at_all() {
        let mut headers = HeaderMap::new();
        assert_eq!(Parent(&headers).get(PARENT), None);
        headers.append(PARENT, "00-1".parse().unwrap());
        headers.append("tracestate", "who=ana".parse().unwrap());
        assert_eq!(Parent(&headers).get(PARENT), Some("00-1"));
        assert_eq!(Parent(&headers).get("tracestate"), None);
        headers.append(PARENT, "00-2".parse().unwrap());
        assert_eq!(Parent(&headers).get(PARENT), None);
    }
}
