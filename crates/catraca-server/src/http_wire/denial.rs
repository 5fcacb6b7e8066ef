//! Denials as responses: of authorize calls, which a gateway forwards to its client, and of the
//! proxy.
//!
//! `[server] denial` in the catalog chooses the format; the headers are the same in all of them.

use std::borrow::Cow;

use bytes::Bytes;
use catraca::Decision;
use catraca::http_response::{
    DenialKind, PROBLEM_JSON, ProblemDenial, ratelimit_headers, response_status, retry_after_secs,
};
use hyper::http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::dict_xml;
use super::problem::{HttpResponse, Problem, full_body, typed_response};
use crate::config::{DenialFormat, ServerSection};

const JSON: &str = "application/json";
const RATE_LIMITED: &str = "Rate limit exceeded";

/// A denial in the formats `message`, `error` and `conflict` of `[server] denial`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum JsonDenial {
    /// `message`.
    Message(DenialMessage),
    /// `error` and `conflict`.
    Error(DenialError),
}

/// A denial for people.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DenialMessage {
    #[schemars(example = false)]
    success: bool,
    error: bool,
    /// The policy's message.
    #[schemars(example = &"Slow down: try again in 1 minute.")]
    error_message: String,
    /// Whole seconds; null if the request will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// A denial for programs.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DenialError {
    /// In the format `conflict`, the policy's message if it has one.
    #[schemars(example = &RATE_LIMITED)]
    error: Cow<'static, str>,
    /// True in the format `conflict`; absent in `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<bool>,
    /// Whole seconds; null if the request will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// The response that carries only a decision: the body of a denial, and the rate-limit headers.
pub fn decision_response(settings: &ServerSection, decision: &Decision) -> HttpResponse {
    let status = response_status(decision);
    let denial = || body(settings.denial, decision, status);
    let mut response = match (!decision.allowed).then(denial).flatten() {
        Some((media_type, body)) => typed_response(media_type, body),
        None => Response::new(full_body(Bytes::new())),
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    ratelimit_headers::write(decision, settings.x_ratelimit, headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The media type and the body of a denial; `None` if the body is empty.
fn body(
    format: DenialFormat,
    decision: &Decision,
    status: StatusCode,
) -> Option<(&'static str, Vec<u8>)> {
    let retry_after = retry_after_secs(decision);
    let denial = match format {
        DenialFormat::Problem => {
            return Some((PROBLEM_JSON, ProblemDenial::new(decision, status).to_json()));
        }
        DenialFormat::ProblemXml => {
            return Some((dict_xml::PROBLEM_XML, xml_body(decision, status)));
        }
        DenialFormat::Message => JsonDenial::Message(DenialMessage {
            success: false,
            error: true,
            error_message: message(decision),
            retry_after,
        }),
        DenialFormat::Error => {
            let error = RATE_LIMITED.into();
            JsonDenial::Error(DenialError { error, conflict: None, retry_after })
        }
        DenialFormat::Conflict => {
            let message = decision.message.clone();
            let error = message.map_or(RATE_LIMITED.into(), Cow::Owned);
            JsonDenial::Error(DenialError { error, conflict: Some(true), retry_after })
        }
        DenialFormat::Empty => return None,
    };
    Some((JSON, serde_json::to_vec(&denial).unwrap_or_default()))
}

/// The denial with the error names and titles of the DICT: those of a status that the reason has of
/// its own, else those of a limit.
fn xml_body(decision: &Decision, status: StatusCode) -> Vec<u8> {
    let own_status = DenialKind::of(decision.reason).status;
    let words = own_status.and_then(|status| status.canonical_reason()).unwrap_or("Rate Limited");
    let name = words.replace(' ', "");
    // Only the first word has a capital: `Bad request`.
    let (first, rest) = words.split_at(1);
    let title = first.to_owned() + &rest.to_lowercase();
    dict_xml::problem(&name, &title, status.as_u16(), decision.message.as_deref())
}

/// A problem in the XML of the DICT, whose error names are the reasons of statuses without spaces.
pub fn problem_xml(problem: &Problem) -> HttpResponse {
    let title = problem.status.canonical_reason().unwrap_or("Error");
    let name = title.replace(' ', "");
    let body = dict_xml::problem(&name, title, problem.status.as_u16(), Some(&problem.detail));
    let mut response = problem.to_response();
    let media_type = HeaderValue::from_static(dict_xml::PROBLEM_XML);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    *response.body_mut() = full_body(body);
    response
}

/// The policy's message, or a generic one if the catalog has none.
fn message(decision: &Decision) -> String {
    let message = decision.message.clone();
    message.unwrap_or_else(|| match retry_after_secs(decision) {
        Some(seconds) => format!("Too many requests: try again in {seconds} s."),
        None => "This request is not allowed.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use catraca::{Catalog, Check, Engine, ManualClock};

    use serde_json::{Value, json};

    use super::*;

    const CATALOG: &str = r#"
        [policy.login]
        by      = ["ip"]
        window  = "1 per 1m"
        block   = "10m"
        message = "Tentativas demais: espere <10> minutos & tente."
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
        let text = "Tentativas demais: espere <10> minutos & tente.";
        let message = json!({
            "success": false, "error": true, "errorMessage": text, "retryAfter": 600,
        });
        assert_eq!(json(DenialFormat::Message), (JSON, message));
        let error = json!({ "error": "Rate limit exceeded", "retryAfter": 600 });
        assert_eq!(json(DenialFormat::Error), (JSON, error));
        let conflict = json!({ "error": text, "conflict": true, "retryAfter": 600 });
        assert_eq!(json(DenialFormat::Conflict), (JSON, conflict));
        let (kind, problem) = json(DenialFormat::Problem);
        assert_eq!((kind, &problem["retry_after"]), ("application/problem+json", &600.into()));
        let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
                   <problem xmlns=\"urn:ietf:rfc:7807\">\
                   <type>https://dict.pi.rsfn.net.br/api/v2/error/RateLimited</type>\
                   <title>Rate limited</title><status>429</status>\
                   <detail>Tentativas demais: espere &lt;10&gt; minutos &amp; tente.\
                   </detail></problem>";
        assert_eq!(rendered(DenialFormat::ProblemXml), ("application/problem+xml", xml.to_owned()));
        assert!(body(DenialFormat::Empty, &denied(), StatusCode::TOO_MANY_REQUESTS).is_none());
    }
}
