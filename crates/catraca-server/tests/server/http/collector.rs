//! A trace collector that receives OTLP over gRPC and stores the calls.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const RECEIVE_TIMEOUT: Duration = Duration::from_secs(30);

/// A collector on a free port, stopped with the test.
pub struct Collector {
    pub address: String,
    received: Receiver<ExportTraceServiceRequest>,
    _runtime: Runtime,
}

/// Stores every call, and reports `refuses` spans of each call as rejected.
struct CollectorService {
    received: Sender<ExportTraceServiceRequest>,
    refuses: i64,
}

impl Collector {
    pub fn start(refuses: i64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (sender, received) = channel();
        let within = runtime.enter();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("http://{}", incoming.local_addr().unwrap());
        let service = TraceServiceServer::new(CollectorService { received: sender, refuses });
        let server = Server::builder().add_service(service).serve_with_incoming(incoming);
        runtime.spawn(server);
        drop(within);
        Self { address, received, _runtime: runtime }
    }

    /// Waits for the next call.
    pub fn next(&self) -> ExportTraceServiceRequest {
        self.received.recv_timeout(RECEIVE_TIMEOUT).unwrap()
    }

    /// Every call that was received until now.
    pub fn all(&self) -> Vec<ExportTraceServiceRequest> {
        self.received.try_iter().collect()
    }
}

#[tonic::async_trait]
impl TraceService for CollectorService {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.received.send(request.into_inner()).map_err(|_| Status::unavailable("over"))?;
        let rejected_spans = self.refuses;
        let error_message = String::new();
        let partial = ExportTracePartialSuccess { rejected_spans, error_message };
        Ok(Response::new(ExportTraceServiceResponse { partial_success: Some(partial) }))
    }
}

/// The spans of these calls.
pub fn spans(calls: &[ExportTraceServiceRequest]) -> Vec<&Span> {
    let resources = calls.iter().flat_map(|call| &call.resource_spans);
    resources.flat_map(|one| &one.scope_spans).flat_map(|one| &one.spans).collect()
}

/// The value of an attribute of a span, as text.
pub fn span_attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|one| one.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::BoolValue(flag) => Some(flag.to_string()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}
