//! Traces: one span for each call, in the caller's own trace, sent by OTLP over gRPC.
//!
//! Only with `[server] traces`; without it a request pays for one check of an `Option`. A span
//! holds names of the catalog, path templates and fixed words, and nothing that a caller wrote.

mod queue;
mod sender;
mod span;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::http::{HeaderMap, Method, Uri};
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

use queue::{SpanCounts, SpanQueue};
use sender::Collector;
pub use span::RequestSpan;

/// The header that names the caller's trace. `tracestate` and `baggage` may hold personal data and
/// are not read.
const TRACEPARENT: &str = "traceparent";
/// How long `close` may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The collector, and the share of calls that start a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTarget {
    /// The address of the collector.
    pub address: String,
    /// The share of calls without a `traceparent` that are traced, from 0 to 1.
    pub share: f64,
}

/// Creates spans and sends them to a collector.
pub struct Traces {
    tracer: SdkTracer,
    counts: Arc<SpanCounts>,
    stop: Arc<Notify>,
    /// The task that sends; none after `close`.
    sender: Mutex<Option<JoinHandle<()>>>,
}

impl TraceTarget {
    /// The address of a collector without path and credentials; `None` if the text is not one.
    pub fn parse_address(text: &str) -> Option<String> {
        let uri: Uri = text.parse().ok()?;
        let is_http = uri.scheme_str() == Some("http");
        let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
        let authority = uri.authority().filter(|_| is_http && !has_path)?;
        // Credentials in the address are not supported.
        let is_plain = authority.port().is_some() && !authority.as_str().contains('@');
        is_plain.then(|| format!("http://{authority}"))
    }
}

impl Traces {
    /// Starts the task that sends spans.
    pub fn start(target: &TraceTarget, runtime: &Handle) -> Result<Self> {
        // The gRPC channel and the task need a runtime.
        let _entered = runtime.enter();
        let resource = resource();
        let collector = Collector::new(&target.address, &resource).context("[server] traces")?;
        let (queue, spans) = SpanQueue::new();
        let counts = Arc::clone(&queue.counts);
        let stop = Arc::new(Notify::new());
        let send = sender::send(spans, collector, Arc::clone(&counts), Arc::clone(&stop));
        let sender = tokio::spawn(send);
        // A sampled flag in `traceparent` decides; only calls without one are sampled by share.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(target.share)));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("catraca");
        Ok(Self { tracer, counts, stop, sender: Mutex::new(Some(sender)) })
    }

    /// Begins the span of a call, named by its path template if there is such a call.
    pub fn begin(
        &self,
        method: &Method,
        template: Option<&'static str>,
        headers: &HeaderMap,
    ) -> RequestSpan {
        let root = Context::new();
        let header = TraceParentHeader(headers);
        let parent = TraceContextPropagator::new().extract_with_context(&root, &header);
        let method = span::method(method);
        let name = match template {
            Some(template) => format!("{method} {template}"),
            None => method.to_owned(),
        };
        let attributes = [
            Some(KeyValue::new("http.request.method", method)),
            template.map(|template| KeyValue::new("http.route", template)),
        ];
        let builder = self.tracer.span_builder(name).with_kind(SpanKind::Server);
        let builder = builder.with_attributes(attributes.into_iter().flatten());
        let span = builder.start_with_context(&self.tracer, &parent);
        RequestSpan::new(parent.with_span(span))
    }

    /// Spans accepted by the collector, and spans dropped.
    pub fn counts(&self) -> [u64; 2] {
        self.counts.read()
    }

    /// Sends the spans in the queue, for at most `CLOSE_TIMEOUT`, and logs those that are lost.
    pub async fn close(&self) {
        self.stop.notify_one();
        let Some(sender) = self.sender.lock().take() else { return };
        let ended = tokio::time::timeout(CLOSE_TIMEOUT, sender).await;
        let lost = self.counts.unsent();
        if ended.is_err() || lost > 0 {
            warn!(lost, "spans were not sent to the collector and are lost");
        }
    }
}

/// The OpenTelemetry resource; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` add to it.
fn resource() -> Resource {
    let mut builder = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        builder = builder.with_service_name("catraca");
    }
    builder.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build()
}

/// Reads `traceparent`; if it is sent twice, there is no parent.
struct TraceParentHeader<'h>(&'h HeaderMap);

impl Extractor for TraceParentHeader<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let mut lines = self.0.get_all(TRACEPARENT).iter();
        let line = lines.next().filter(|_| key == TRACEPARENT && lines.next().is_none())?;
        line.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_and_nothing_else() {
        let read = TraceTarget::parse_address;
        for good in ["http://127.0.0.1:4317", "http://collector:4317/", "http://[::1]:4317"] {
            assert_eq!(read(good).as_deref(), Some(good.trim_end_matches('/')));
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
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_repeated_traceparent_is_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParentHeader(&headers).get(TRACEPARENT), None);
        headers.append(TRACEPARENT, "00-1".parse().unwrap());
        headers.append("tracestate", "user=ana".parse().unwrap());
        assert_eq!(TraceParentHeader(&headers).get(TRACEPARENT), Some("00-1"));
        assert_eq!(TraceParentHeader(&headers).get("tracestate"), None);
        headers.append(TRACEPARENT, "00-2".parse().unwrap());
        assert_eq!(TraceParentHeader(&headers).get(TRACEPARENT), None);
    }
}
