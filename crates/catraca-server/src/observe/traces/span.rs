//! The span of one call: method, route, decision and status.
//!
//! Nothing that a caller wrote is stored: an undeclared gate or method has a fixed name.

use catraca::Decision;
use hyper::http::{Method, StatusCode};
use opentelemetry::trace::{Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

/// The name of a gate that the catalog does not declare.
const UNLISTED: &str = "(unlisted)";
/// Standard methods; any other is `_OTHER`, as OpenTelemetry defines.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];
const OTHER: &str = "_OTHER";

/// The span of a call; none if tracing is off.
#[derive(Clone, Default)]
pub struct RequestSpan(Option<Context>);

impl RequestSpan {
    /// A span that has started.
    pub(super) fn new(span: Context) -> Self {
        Self(Some(span))
    }

    /// Adds the decision of a single check.
    pub fn set_decision(&self, gate: &str, decision: &Decision) {
        if let Some(span) = self.recording() {
            let gate = if decision.unlisted { UNLISTED } else { gate };
            let mut attributes = vec![
                KeyValue::new("catraca.gate", gate.to_owned()),
                KeyValue::new("catraca.allowed", decision.allowed),
                KeyValue::new("catraca.reason", decision.reason.as_str()),
                KeyValue::new("catraca.mode", decision.mode.as_str()),
                KeyValue::new("catraca.degraded", decision.degraded),
                KeyValue::new("catraca.revision", decision.revision.to_string()),
            ];
            let policy = decision.policy.as_ref();
            attributes.extend(policy.map(|name| KeyValue::new("catraca.policy", name.to_string())));
            span.span().set_attributes(attributes);
        }
    }

    /// Adds the numbers of a list of checks: all, and denied.
    pub fn set_list_decisions(&self, checks: usize, denied: usize) {
        if let Some(span) = self.recording() {
            let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            span.span().set_attributes([
                KeyValue::new("catraca.checks", count(checks)),
                KeyValue::new("catraca.denied", count(denied)),
            ]);
        }
    }

    /// Ends the span with the status of the response.
    pub fn end(&self, status: StatusCode) {
        let Some(span) = &self.0 else { return };
        let span = span.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_status(Status::error(""));
        }
        span.end();
    }

    /// The span, if it is sampled; building attributes for others would be wasted.
    fn recording(&self) -> Option<&Context> {
        self.0.as_ref().filter(|span| span.span().is_recording())
    }
}

/// The name of a method in spans.
pub(super) fn method(method: &Method) -> &'static str {
    METHODS.iter().find(|known| **known == method.as_str()).unwrap_or(&OTHER)
}
