//! The way to a collector: spans gathered for a moment, and one call for each batch.
//!
//! Must not wait for ever, try twice, nor tell of every failure: a collector that is away is told
//! of when it goes and when it is back, and counted in between.

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

use super::queue::Counts;

/// Spans in one call.
const BATCH: usize = 512;
/// How long the first of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a connection with a call on it is asked whether it is still there.
const PULSE: Duration = Duration::from_secs(10);

/// A collector, and what it is told of us.
pub struct Collector {
    client: TraceServiceClient<Channel>,
    resource: ResourceAttributesWithSchema,
}

impl Collector {
    /// The collector at this address, which is asked when there is something to send.
    pub fn new(address: &str, resource: &Resource) -> Result<Self, tonic::transport::Error> {
        let channel = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(PATIENCE)
            .timeout(PATIENCE)
            .http2_keep_alive_interval(PULSE)
            .keep_alive_timeout(PATIENCE)
            .connect_lazy();
        Ok(Self { client: TraceServiceClient::new(channel), resource: resource.into() })
    }

    /// Sends a batch; how many of it were not taken.
    async fn take(&mut self, batch: Vec<SpanData>) -> Result<u64, Status> {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let answer = self.client.export(ExportTraceServiceRequest { resource_spans }).await?;
        let refused = answer.into_inner().partial_success.map(|partial| partial.rejected_spans);
        Ok(u64::try_from(refused.unwrap_or_default()).unwrap_or_default())
    }
}

/// Sends spans until it is told to stop; then those that wait.
pub async fn send(
    mut spans: Receiver<SpanData>,
    mut collector: Collector,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
) {
    let (mut batch, mut away) = (Vec::with_capacity(BATCH), false);
    loop {
        let more = tokio::select! {
            more = gather(&mut spans, &mut batch) => more,
            () = stop.notified() => {
                spans.close();
                true
            }
        };
        if !batch.is_empty() {
            let size = batch.len() as u64;
            let taken = collector.take(std::mem::take(&mut batch)).await;
            let refused = taken.as_ref().map_or(size, |refused| size.min(*refused));
            counts.send_some(size - refused);
            counts.drop_some(refused);
            tell(&mut away, taken.err());
        }
        if !more {
            return;
        }
    }
}

/// Waits for spans; false when there will be no more. What it has gathered survives its end.
async fn gather(spans: &mut Receiver<SpanData>, batch: &mut Vec<SpanData>) -> bool {
    if batch.is_empty() && spans.recv_many(batch, BATCH).await == 0 {
        return false;
    }
    let until = Instant::now() + LINGER;
    while batch.len() < BATCH && !spans.is_closed() {
        let room = BATCH - batch.len();
        if !matches!(timeout_at(until, spans.recv_many(batch, room)).await, Ok(1..)) {
            break;
        }
    }
    true
}

fn tell(away: &mut bool, failed: Option<Status>) {
    match (&failed, *away) {
        (Some(status), false) => {
            let why = format!("{}: {}", status.code(), status.message());
            warn!(why, "the collector of [server] traces takes no spans; they are dropped");
        }
        (None, true) => info!("the collector of [server] traces takes spans again"),
        _ => {}
    }
    *away = failed.is_some();
}
