//! The outcome of a request, read from its HTTP response: the status, headers, a bounded copy of a
//! JSON body. For the tower layer and the reverse proxy.

use catraca_core::catalog::Catalog;
use catraca_core::outcome::{BodySize, Outcome, OutcomeBody};
use catraca_core::policy::Policy;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The parts of a response that the rules of a gate read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeNeeds {
    /// A rule reads the body.
    pub body: bool,
    /// A rule reads headers.
    pub headers: bool,
    /// A ban may replace the response that triggers it, because the ban has a `status`.
    pub replaces: bool,
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
        for ban in &policy.bans {
            self.headers |= ban.when.reads_headers();
            self.replaces |= ban.status.is_some();
        }
    }
}

/// Adds all lines of a header to an outcome as one value, unless one of them is not ASCII.
pub fn add_header(outcome: &mut Outcome, headers: &HeaderMap, name: &HeaderName) {
    if let Some(value) = joined_lines(headers, name) {
        outcome.headers.push((name.as_str().to_owned(), value));
    }
}

/// The start of a body, copied while it is sent.
pub struct BodyCopy {
    bytes_max: usize,
    is_json: bool,
    is_over_limit: bool,
    is_empty: bool,
    bytes: Vec<u8>,
}

impl BodyCopy {
    /// An empty copy of the body of a response with these headers.
    pub fn new(headers: &HeaderMap, bytes_max: usize) -> Self {
        let is_json = headers.get(header::CONTENT_TYPE).is_some_and(is_json);
        Self { bytes_max, is_json, is_over_limit: false, is_empty: true, bytes: Vec::new() }
    }

    /// Adds the next part of the body.
    pub fn push(&mut self, data: &[u8]) {
        self.is_empty &= data.is_empty();
        // A body that cannot be read is not copied.
        if !self.is_json || self.is_over_limit {
            return;
        }
        if self.bytes.len() + data.len() > self.bytes_max {
            self.is_over_limit = true;
            self.bytes = Vec::new();
            return;
        }
        self.bytes.extend_from_slice(data);
    }

    /// Whether more of the body would change the copy: it is JSON, and below the limit.
    pub fn awaits_more(&self) -> bool {
        self.is_json && !self.is_over_limit
    }

    /// The copy as the body of an outcome.
    pub fn into_body(self) -> OutcomeBody {
        if self.is_empty {
            OutcomeBody::default()
        } else if self.is_over_limit {
            OutcomeBody { size: BodySize::OverLimit, ..OutcomeBody::default() }
        } else if self.is_json {
            OutcomeBody::from_json(&self.bytes, self.bytes_max)
        } else {
            OutcomeBody { is_invalid: true, ..OutcomeBody::default() }
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
    let text = content_type.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
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
            (direct.body, direct.headers, direct.replaces)
        };
        assert_eq!(needs(""), (false, false, false));
        assert_eq!(needs(&ban("status == 401", "")), (false, false, false));
        assert_eq!(needs(&ban("body.reject_id == 5", "")), (true, false, false));
        assert_eq!(needs(&ban("body_truncated", "status = 400")), (true, false, true));
        assert_eq!(needs(&ban("headers[\"x\"] == \"1\"", "")), (false, true, false));
    }
}
