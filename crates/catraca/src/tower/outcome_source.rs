//! The outcome of a request, read from its response: status, chosen headers, a small JSON body.

use std::sync::Arc;

use catraca_core::json_path::JsonPath;
use catraca_core::outcome::Outcome;
use http::{HeaderMap, HeaderName, header, response};

use super::grpc;
use crate::http_outcome::{BodyCopy, add_header, outcome_of_status};

/// The largest body of a response that ban rules see.
pub const OUTCOME_BODY_BYTES_MAX: usize = 64 * 1024;

/// Changes an outcome when the head of the response is known.
type ChangeFn = Arc<dyn Fn(&mut Outcome, &response::Parts) + Send + Sync>;

/// Which parts of a response are in the outcome.
#[derive(Clone, Default)]
pub(super) struct OutcomeSource {
    headers: Vec<HeaderName>,
    pub reads_json_body: bool,
    event_fields: Arc<[JsonPath]>,
    pub reads_grpc_status: bool,
    pub change: Option<ChangeFn>,
}

impl OutcomeSource {
    /// Adds headers. A text that is not the name of a header is left out, with a warning: no
    /// response has it.
    pub fn add_headers<N: Into<String>>(&mut self, names: impl IntoIterator<Item = N>) {
        let name = |name: N| {
            let name = name.into();
            let parsed = HeaderName::try_from(&name).ok();
            if parsed.is_none() {
                tracing::warn!(name, "not the name of a header: no outcome will contain it");
            }
            parsed
        };
        self.headers.extend(names.into_iter().filter_map(name));
    }

    /// Reads fields such as `body.usage.total_tokens` of event streams. A text that is not a field
    /// of a body is left out, with a warning: no event has it.
    pub fn add_event_fields<T: AsRef<str>>(&mut self, fields: impl IntoIterator<Item = T>) {
        let path = |field: T| {
            let field = field.as_ref();
            let parsed = field.strip_prefix("body.").and_then(JsonPath::parse);
            if parsed.is_none() {
                tracing::warn!(
                    field,
                    "not a field of a body: write it as `body.usage.total_tokens`"
                );
            }
            parsed
        };
        let added = fields.into_iter().filter_map(path);
        self.event_fields = self.event_fields.iter().cloned().chain(added).collect();
    }

    /// The outcome of a response, as far as its head shows it.
    pub fn read(&self, response: &response::Parts) -> Outcome {
        let mut outcome = outcome_of_status(response.status);
        let chosen = self.headers.iter().filter(|name| **name != header::RETRY_AFTER);
        for name in chosen.chain([&header::RETRY_AFTER]) {
            add_header(&mut outcome, &response.headers, name);
        }
        if self.reads_grpc_status {
            // A response without a body has the status in its head, any other one in its trailers.
            outcome.status = grpc::outcome_status(&response.headers);
        }
        if let Some(change) = &self.change {
            change(&mut outcome, response);
        }
        outcome
    }

    /// A copy of the response's body, if ban rules shall see it.
    pub fn body_copy(&self, headers: &HeaderMap) -> Option<BodyCopy> {
        self.reads_json_body
            .then(|| BodyCopy::new(headers, OUTCOME_BODY_BYTES_MAX, &self.event_fields))
    }
}
