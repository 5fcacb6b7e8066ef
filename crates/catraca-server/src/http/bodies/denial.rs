//! Bodies of denials in authorize responses, which a gateway forwards to its client.
//!
//! `[server] denial` in the catalog chooses the format; the headers are the same in all of them.

use axum::http::StatusCode;
use catraca::{Decision, Reason};
use serde_json::{Value, json};

use super::{dict_xml, problem, ratelimit_headers};
use crate::config::DenialFormat;
use crate::http::bodies::schema_values;

const JSON: &str = "application/json";
const RATE_LIMITED: &str = "Rate limit exceeded";

/// The media type and the body of a denial; `None` if the body is empty.
pub fn body(
    format: DenialFormat,
    decision: &Decision,
    status: StatusCode,
) -> Option<(&'static str, Vec<u8>)> {
    let wait = ratelimit_headers::retry_after(decision);
    let (media_type, body) = match format {
        DenialFormat::Problem => (problem::PROBLEM_JSON, problem_body(decision, status)),
        DenialFormat::ProblemXml => {
            return Some((dict_xml::PROBLEM_XML, xml_body(decision, status)));
        }
        DenialFormat::Message => (
            JSON,
            json!({
                "success": false, "error": true, "errorMessage": message(decision),
                "retryAfter": wait,
            }),
        ),
        DenialFormat::Error => (JSON, json!({ "error": RATE_LIMITED, "retryAfter": wait })),
        DenialFormat::Conflict => {
            (JSON, json!({ "error": RATE_LIMITED, "conflict": true, "retryAfter": wait }))
        }
        DenialFormat::Empty => return None,
    };
    Some((media_type, serde_json::to_vec(&body).unwrap_or_default()))
}

/// The denial with the problem types of the IANA registry.
fn problem_body(decision: &Decision, status: StatusCode) -> Value {
    let problem_type = match decision.reason {
        Reason::Blocked => {
            "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
        }
        Reason::Unavailable => {
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
        }
        _ => schema_values::QUOTA_EXCEEDED,
    };
    let violated: Vec<&str> =
        decision.rows.iter().filter(|row| !row.allowed).map(|row| &*row.policy).collect();
    json!({
        "type": problem_type,
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": decision.message,
        "reason": decision.reason.as_str(),
        "policy": decision.policy.as_deref(),
        "violated-policies": violated,
        "retry_after": ratelimit_headers::retry_after(decision),
    })
}

/// The denial with the error names and titles of the DICT.
fn xml_body(decision: &Decision, status: StatusCode) -> Vec<u8> {
    let (name, title) = match decision.reason {
        Reason::Blocklisted => ("Forbidden", "Forbidden"),
        Reason::Missing => ("BadRequest", "Bad request"),
        Reason::Unavailable => ("ServiceUnavailable", "Service unavailable"),
        _ => ("RateLimited", "Rate limited"),
    };
    dict_xml::problem(name, title, status.as_u16(), decision.message.as_deref())
}

/// The policy's message, or a generic one if the catalog has none.
fn message(decision: &Decision) -> String {
    let message = decision.message.clone();
    message.unwrap_or_else(|| match ratelimit_headers::retry_after(decision) {
        Some(seconds) => format!("Too many requests: try again in {seconds} s."),
        None => "This request is not allowed.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use catraca::{Catalog, Check, Engine, ManualClock};

    use super::*;

    const CATALOG: &str = r#"
        [policy.login]
        by      = ["ip"]
        window  = "1 per 1m"
        block   = "10m"
        message = "Muitas tentativas falhas: aguarde <10> minutos & tente."
    "#;

    fn denied() -> Decision {
        let catalog = Catalog::parse(CATALOG).unwrap();
        let engine = Engine::builder(catalog).clock(ManualClock::default()).build();
        let ask = || engine.check(&Check::new("login", [("ip", "192.0.2.1")])).unwrap();
        assert!(ask().allowed);
        ask()
    }

    fn rendered(format: DenialFormat) -> (&'static str, String) {
        let (kind, body) = body(format, &denied(), StatusCode::TOO_MANY_REQUESTS).unwrap();
        (kind, String::from_utf8(body).unwrap())
    }

    /// covers: 000-40, 003-41, B-77
    #[test]
    fn one_decision_is_rendered_in_every_format() {
        let json = |format| {
            let (kind, body) = rendered(format);
            (kind, serde_json::from_str::<Value>(&body).unwrap())
        };
        let text = "Muitas tentativas falhas: aguarde <10> minutos & tente.";
        let message = json!({
            "success": false, "error": true, "errorMessage": text, "retryAfter": 600,
        });
        assert_eq!(json(DenialFormat::Message), (JSON, message));
        let error = json!({ "error": "Rate limit exceeded", "retryAfter": 600 });
        assert_eq!(json(DenialFormat::Error), (JSON, error));
        let conflict =
            json!({ "error": "Rate limit exceeded", "conflict": true, "retryAfter": 600 });
        assert_eq!(json(DenialFormat::Conflict), (JSON, conflict));
        let (kind, problem) = json(DenialFormat::Problem);
        assert_eq!((kind, &problem["retry_after"]), ("application/problem+json", &600.into()));
        let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
                   <problem xmlns=\"urn:ietf:rfc:7807\">\
                   <type>https://dict.pi.rsfn.net.br/api/v2/error/RateLimited</type>\
                   <title>Rate limited</title><status>429</status>\
                   <detail>Muitas tentativas falhas: aguarde &lt;10&gt; minutos &amp; tente.\
                   </detail></problem>";
        assert_eq!(rendered(DenialFormat::ProblemXml), ("application/problem+xml", xml.to_owned()));
        assert!(body(DenialFormat::Empty, &denied(), StatusCode::TOO_MANY_REQUESTS).is_none());
    }
}
