//! The span of one call: what was decided, and how it ended.
//!
//! Must not be told anything that a caller wrote: a gate that nobody declared has no name here.

use axum::http::{Method, StatusCode};
use catraca::Decision;
use opentelemetry::trace::{Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

/// What stands for a gate that the catalog does not know.
const UNLISTED: &str = "(unlisted)";
/// The methods that have a name; any other is somebody's own word.
const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];
const OTHER: &str = "_OTHER";

/// The span of a call; none where nothing is traced.
#[derive(Clone, Default)]
pub struct Span(Option<Context>);

impl Span {
    /// A span that has begun.
    pub(super) fn of(begun: Context) -> Self {
        Self(Some(begun))
    }

    /// Notes the decision of a call that asked for one.
    pub fn decided(&self, gate: &str, decision: &Decision) {
        if let Some(span) = self.recording() {
            let gate = if decision.unlisted { UNLISTED } else { gate };
            let mut known = vec![
                KeyValue::new("catraca.gate", gate.to_owned()),
                KeyValue::new("catraca.allowed", decision.allowed),
                KeyValue::new("catraca.reason", decision.reason.as_str()),
                KeyValue::new("catraca.mode", decision.mode.as_str()),
                KeyValue::new("catraca.degraded", decision.degraded),
                KeyValue::new("catraca.revision", decision.revision.to_string()),
            ];
            let policy = decision.policy.as_ref();
            known.extend(policy.map(|name| KeyValue::new("catraca.policy", name.to_string())));
            span.span().set_attributes(known);
        }
    }

    /// Notes how many decisions a list asked for, and how many callers may not pass.
    pub fn decided_many(&self, checks: usize, denied: usize) {
        if let Some(span) = self.recording() {
            let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            span.span().set_attributes([
                KeyValue::new("catraca.checks", count(checks)),
                KeyValue::new("catraca.denied", count(denied)),
            ]);
        }
    }

    /// Ends it with what was answered.
    pub fn end(&self, status: StatusCode) {
        let Some(span) = &self.0 else { return };
        let span = span.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_status(Status::error(""));
        }
        span.end();
    }

    fn recording(&self) -> Option<&Context> {
        self.0.as_ref().filter(|span| span.span().is_recording())
    }
}

/// The name of a method.
pub(super) fn method(method: &Method) -> &'static str {
    METHODS.iter().find(|known| **known == method.as_str()).unwrap_or(&OTHER)
}
