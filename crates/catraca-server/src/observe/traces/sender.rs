//! Sends spans to a collector in batches, one call each, never retried.
//!
//! A failing collector is logged once when it starts to fail and once when it works again; lost
//! spans are counted.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tracing::{info, warn};

use super::queue::SpanCounts;

/// The most spans in one call.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// Timeout of connecting, of a call, and of a keepalive response.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of HTTP/2 keepalive pings during a call, so that a dead connection is noticed.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A client of the collector, and the resource that its spans carry.
pub struct Collector {
    client: TraceServiceClient<Channel>,
    resource: ResourceAttributesWithSchema,
}

impl Collector {
    /// A client that connects with the first batch.
    pub fn new(address: &str, resource: &Resource) -> Result<Self, tonic::transport::Error> {
        let channel = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(TIMEOUT)
            .connect_lazy();
        Ok(Self { client: TraceServiceClient::new(channel), resource: resource.into() })
    }

    /// Sends a batch and returns how many of its spans the collector rejected.
    async fn export(&mut self, batch: Vec<SpanData>) -> Result<u64, Status> {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let response = self.client.export(ExportTraceServiceRequest { resource_spans }).await?;
        let rejected = response.into_inner().partial_success.map(|partial| partial.rejected_spans);
        Ok(u64::try_from(rejected.unwrap_or_default()).unwrap_or_default())
    }
}

/// Sends spans until `stop` is notified; then closes the queue and sends the rest.
pub async fn send(
    mut spans: Receiver<SpanData>,
    mut collector: Collector,
    counts: Arc<SpanCounts>,
    stop: Arc<Notify>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut failing = false;
    loop {
        let more = tokio::select! {
            more = collect(&mut spans, &mut batch) => more,
            () = stop.notified() => {
                spans.close();
                // Once more around, for the rest of the queue.
                true
            }
        };
        if !batch.is_empty() {
            let size = batch.len() as u64;
            let result = collector.export(std::mem::take(&mut batch)).await;
            let rejected = result.as_ref().map_or(size, |rejected| size.min(*rejected));
            counts.add_sent(size - rejected);
            counts.add_dropped(rejected);
            log_transition(&mut failing, result.err());
        }
        if !more {
            return;
        }
    }
}

/// Collects a batch; false when the queue is closed and empty. Spans are collected into `batch`, so
/// that they survive if the future is dropped by `select!`.
async fn collect(spans: &mut Receiver<SpanData>, batch: &mut Vec<SpanData>) -> bool {
    if batch.is_empty() && spans.recv_many(batch, BATCH_MAX).await == 0 {
        return false;
    }
    let deadline = Instant::now() + LINGER;
    while batch.len() < BATCH_MAX && !spans.is_closed() {
        let room = BATCH_MAX - batch.len();
        if !matches!(timeout_at(deadline, spans.recv_many(batch, room)).await, Ok(1..)) {
            break;
        }
    }
    true
}

/// Logs only when the collector starts or stops failing.
fn log_transition(failing: &mut bool, error: Option<Status>) {
    match (&error, *failing) {
        (Some(status), false) => {
            let why = format!("{}: {}", status.code(), status.message());
            warn!(why, "the collector of [server] traces does not accept spans; they are dropped");
        }
        (None, true) => info!("the collector of [server] traces accepts spans again"),
        _ => {}
    }
    *failing = error.is_some();
}
