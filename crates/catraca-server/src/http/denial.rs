//! How a gateway hands on a denial: one decision, in the shape that its clients expect.
//!
//! `[server] denial` in the catalog chooses one; headers are the same in all of them. Must not
//! decide anything, nor show what the decision does not say.

use axum::http::StatusCode;
use catraca::{Decision, Reason};
use serde_json::{Value, json};

use super::{fields, problem, words, xml};

/// What a denial looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// problem+json, with the problem types of the rate-limit headers draft.
    #[default]
    Problem,
    /// problem+xml, as the DICT answers.
    ProblemXml,
    /// A message for people, as storefronts show it.
    Message,
    /// A fixed error and the wait.
    Error,
    /// The same with a flag that says conflict.
    Conflict,
    /// Headers alone.
    Empty,
}

/// Every shape by the word of the catalog.
pub const SHAPES: [(&str, Shape); 6] = [
    ("problem", Shape::Problem),
    ("problem_xml", Shape::ProblemXml),
    ("message", Shape::Message),
    ("error", Shape::Error),
    ("conflict", Shape::Conflict),
    ("empty", Shape::Empty),
];

const JSON: &str = "application/json";
const RATE_LIMITED: &str = "Rate limit exceeded";

/// The body of a denial with its media type; none is an empty one.
pub fn body(
    shape: Shape,
    decision: &Decision,
    status: StatusCode,
) -> Option<(&'static str, Vec<u8>)> {
    let wait = fields::retry_after(decision);
    let (kind, body) = match shape {
        Shape::Problem => (problem::KIND, as_problem(decision, status)),
        Shape::ProblemXml => return Some((xml::PROBLEM, as_xml(decision, status))),
        Shape::Message => (
            JSON,
            json!({
                "success": false, "error": true, "errorMessage": message(decision),
                "retryAfter": wait,
            }),
        ),
        Shape::Error => (JSON, json!({ "error": RATE_LIMITED, "retryAfter": wait })),
        Shape::Conflict => {
            (JSON, json!({ "error": RATE_LIMITED, "conflict": true, "retryAfter": wait }))
        }
        Shape::Empty => return None,
    };
    Some((kind, serde_json::to_vec(&body).unwrap_or_default()))
}

fn as_problem(decision: &Decision, status: StatusCode) -> Value {
    let kind = match decision.reason {
        Reason::Blocked => {
            "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
        }
        Reason::Unavailable => {
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
        }
        _ => words::QUOTA_EXCEEDED,
    };
    let violated: Vec<&str> =
        decision.rows.iter().filter(|row| !row.allowed).map(|row| &*row.policy).collect();
    json!({
        "type": kind,
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": decision.message,
        "reason": decision.reason.as_str(),
        "policy": decision.policy.as_deref(),
        "violated-policies": violated,
        "retry_after": fields::retry_after(decision),
    })
}

/// The types and titles of the DICT's own errors.
fn as_xml(decision: &Decision, status: StatusCode) -> Vec<u8> {
    let (name, title) = match decision.reason {
        Reason::Blocklisted => ("Forbidden", "Forbidden"),
        Reason::Missing => ("BadRequest", "Bad request"),
        Reason::Unavailable => ("ServiceUnavailable", "Service unavailable"),
        _ => ("RateLimited", "Rate limited"),
    };
    xml::problem(name, title, status.as_u16(), decision.message.as_deref())
}

/// The policy's message; a catalog without one still tells people something.
fn message(decision: &Decision) -> String {
    let told = decision.message.clone();
    told.unwrap_or_else(|| match fields::retry_after(decision) {
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

    fn rendered(shape: Shape) -> (&'static str, String) {
        let (kind, body) = body(shape, &denied(), StatusCode::TOO_MANY_REQUESTS).unwrap();
        (kind, String::from_utf8(body).unwrap())
    }

    /// covers: 000-40, 003-41, B-77
    #[test]
    fn one_decision_has_the_shape_that_each_source_gives_it() {
        let json = |shape| {
            let (kind, body) = rendered(shape);
            (kind, serde_json::from_str::<Value>(&body).unwrap())
        };
        let text = "Muitas tentativas falhas: aguarde <10> minutos & tente.";
        let message = json!({
            "success": false, "error": true, "errorMessage": text, "retryAfter": 600,
        });
        assert_eq!(json(Shape::Message), (JSON, message));
        let error = json!({ "error": "Rate limit exceeded", "retryAfter": 600 });
        assert_eq!(json(Shape::Error), (JSON, error));
        let conflict =
            json!({ "error": "Rate limit exceeded", "conflict": true, "retryAfter": 600 });
        assert_eq!(json(Shape::Conflict), (JSON, conflict));
        let (kind, problem) = json(Shape::Problem);
        assert_eq!((kind, &problem["retry_after"]), ("application/problem+json", &600.into()));
        let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
                   <problem xmlns=\"urn:ietf:rfc:7807\">\
                   <type>https://dict.pi.rsfn.net.br/api/v2/error/RateLimited</type>\
                   <title>Rate limited</title><status>429</status>\
                   <detail>Muitas tentativas falhas: aguarde &lt;10&gt; minutos &amp; tente.\
                   </detail></problem>";
        assert_eq!(rendered(Shape::ProblemXml), ("application/problem+xml", xml.to_owned()));
        assert!(body(Shape::Empty, &denied(), StatusCode::TOO_MANY_REQUESTS).is_none());
    }

    #[test]
    fn the_catalog_takes_the_words_of_every_shape_and_no_other() {
        let catalog =
            |word: &str| Catalog::parse(&format!("{CATALOG}\n[server]\ndenial = \"{word}\"\n"));
        for (word, _) in SHAPES {
            assert!(catalog(word).is_ok(), "{word}");
        }
        let said = catalog("json").unwrap_err().to_string();
        assert!(SHAPES.iter().all(|(word, _)| said.contains(word)), "{said}");
    }
}
