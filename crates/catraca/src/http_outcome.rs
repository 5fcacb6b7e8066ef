//! The outcome of a request, read from its HTTP response: the status, headers, a bounded copy of a
//! JSON body, the costs in an event stream. For the tower layer and the reverse proxy.

mod event_scanner;
mod stream_costs;

use std::sync::Arc;

use catraca_core::catalog::Catalog;
use catraca_core::json_path::JsonPath;
use catraca_core::outcome::{BodySize, Outcome, OutcomeBody};
use catraca_core::policy::Policy;
use catraca_core::request::STATUSES;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use stream_costs::StreamCosts;

/// The media type of event streams.
const EVENT_STREAM: &str = "text/event-stream";

/// The parts of a response that the rules of a gate read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeNeeds {
    /// A rule reads the body.
    pub body: bool,
    /// A cost is in the body, which may be an event stream.
    pub cost: bool,
    /// A rule reads headers.
    pub headers: bool,
    /// A ban may replace the response that triggers it, because the ban has a `status`.
    pub replaces: bool,
    /// The rule of such a ban reads the body, so the head does not decide whether it matches.
    pub replaces_by_body: bool,
}

impl OutcomeNeeds {
    /// What the rules of a gate read, with those of the policies that take over for them.
    pub fn of_gate(catalog: &Catalog, gate: &str) -> Self {
        let mut needs = Self::default();
        catalog.policies_of_gate(gate).for_each(|policy| needs.add(policy));
        needs
    }

    fn add(&mut self, policy: &Policy) {
        self.body |= policy.reads_outcome_body();
        self.cost |= policy.cost_fields().next().is_some();
        for ban in &policy.bans {
            self.headers |= ban.when.reads_headers();
            let replaces = ban.status_of_answer().is_some();
            self.replaces |= replaces;
            self.replaces_by_body |= replaces && ban.when.reads_body();
        }
    }
}

/// The outcome of a response with this status. An outcome has a status up to 599; servers may send
/// larger ones, which clients treat as a 5xx.
pub fn outcome_of_status(status: StatusCode) -> Outcome {
    Outcome::status(status.as_u16().min(*STATUSES.end()))
}

/// Adds all lines of a header to an outcome as one value, unless one of them is not ASCII.
pub fn add_header(outcome: &mut Outcome, headers: &HeaderMap, name: &HeaderName) {
    if let Some(value) = joined_lines(headers, name) {
        outcome.headers.push((name.as_str().to_owned(), value));
    }
}

/// What the rules can read of a body, copied while it is sent: the start of a JSON body, or the
/// costs in the events of a stream.
pub struct BodyCopy {
    bytes_max: usize,
    is_empty: bool,
    kind: CopyKind,
}

enum CopyKind {
    Json(Vec<u8>),
    JsonOverLimit,
    Events(Box<StreamCosts>),
    Unreadable,
}

impl BodyCopy {
    /// An empty copy of the body of a response with these headers. `cost_paths` are the fields that
    /// are read from the events of a stream.
    pub fn new(headers: &HeaderMap, bytes_max: usize, cost_paths: &Arc<[JsonPath]>) -> Self {
        let kind = match headers.get(header::CONTENT_TYPE) {
            Some(own) if is_json(own) => CopyKind::Json(Vec::new()),
            Some(own) if media_type(own) == EVENT_STREAM && !cost_paths.is_empty() => {
                CopyKind::Events(Box::new(StreamCosts::new(Arc::clone(cost_paths), bytes_max)))
            }
            _ => CopyKind::Unreadable,
        };
        Self { bytes_max, is_empty: true, kind }
    }

    /// Adds the next part of the body.
    pub fn push(&mut self, data: &[u8]) {
        self.is_empty &= data.is_empty();
        match &mut self.kind {
            CopyKind::Json(bytes) if bytes.len() + data.len() > self.bytes_max => {
                self.kind = CopyKind::JsonOverLimit;
            }
            CopyKind::Json(bytes) => bytes.extend_from_slice(data),
            CopyKind::Events(costs) => costs.push(data),
            CopyKind::JsonOverLimit | CopyKind::Unreadable => {}
        }
    }

    /// The body has reached its end. Without this call it broke off.
    pub fn on_end(&mut self) {
        if let CopyKind::Events(costs) = &mut self.kind {
            costs.on_end();
        }
    }

    /// Whether more of the body would change the copy: it is JSON below the limit, or a stream.
    pub fn awaits_more(&self) -> bool {
        match &self.kind {
            CopyKind::Json(_) => true,
            CopyKind::Events(costs) => costs.awaits_more(),
            CopyKind::JsonOverLimit | CopyKind::Unreadable => false,
        }
    }

    /// The copy as the body of an outcome.
    pub fn into_body(self) -> OutcomeBody {
        match self.kind {
            _ if self.is_empty => OutcomeBody::default(),
            CopyKind::Json(bytes) => OutcomeBody::from_json(&bytes, self.bytes_max),
            CopyKind::JsonOverLimit => {
                OutcomeBody { size: BodySize::OverLimit, ..OutcomeBody::default() }
            }
            CopyKind::Events(costs) => costs.into_body(),
            CopyKind::Unreadable => OutcomeBody { is_invalid: true, ..OutcomeBody::default() },
        }
    }
}

/// All lines of a header as one value; absent if one of them is not ASCII.
fn joined_lines(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter();
    let mut value = lines.next()?.to_str().ok()?.to_owned();
    for line in lines {
        value.push_str(", ");
        value.push_str(line.to_str().ok()?);
    }
    Some(value)
}

/// `application/json` or `application/…+json`, with or without parameters.
pub fn is_json(content_type: &HeaderValue) -> bool {
    let media_type = media_type(content_type);
    media_type == "application/json" || media_type.ends_with("+json")
}

/// In lower case and without parameters.
fn media_type(content_type: &HeaderValue) -> String {
    let text = content_type.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(all(test, feature = "cel"))]
mod tests {
    use super::*;

    #[test]
    fn a_gate_needs_what_the_rules_of_its_policies_read() {
        let ban = |when: &str, status: &str| {
            format!("[[policy.a.ban]]\nwhen = '{when}'\nfor = '1m'\nreason = 'r'\n{status}\n")
        };
        let needs = |ban: &str| {
            let text = format!(
                "[policy.a]\nby = ['ip']\nwindow = '9 per 1m'\n{ban}\n\
                 [policy.b]\nby = ['user']\nwindow = '9 per 1m'\notherwise = 'a'\n"
            );
            let catalog = Catalog::parse(&text).unwrap_or_else(|error| panic!("{error:?}"));
            let direct = OutcomeNeeds::of_gate(&catalog, "a");
            assert_eq!(OutcomeNeeds::of_gate(&catalog, "b"), direct);
            (direct.body, direct.headers, direct.replaces, direct.replaces_by_body)
        };
        assert_eq!(needs(""), (false, false, false, false));
        assert_eq!(needs(&ban("status == 401", "")), (false, false, false, false));
        assert_eq!(needs(&ban("status == 401", "status = 400")), (false, false, true, false));
        assert_eq!(needs(&ban("body.reject_id == 5", "")), (true, false, false, false));
        assert_eq!(needs(&ban("body_truncated", "status = 400")), (true, false, true, true));
        assert_eq!(needs(&ban("body_invalid", "answer_status = 400")), (true, false, true, true));
        assert_eq!(needs(&ban("headers[\"x\"] == \"1\"", "")), (false, true, false, false));
        let both = ban("status == 401", "status = 400") + &ban("body_invalid", "");
        assert_eq!(needs(&both), (true, false, true, false));
    }
}
