//! Errors as problem+json (RFC 9457): what, where, how to fix it, and a code for programs.
//!
//! Must not echo a private value or an internal detail.

use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use catraca::{Error, Refusal};
use http_body_util::Full;
use serde::Serialize;

use super::api;

/// The media type of problems.
pub const KIND: &str = "application/problem+json";

/// An answer whose body is whole.
pub type Answer = Response<Full<Bytes>>;

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable code for programs.
    pub code: &'static str,
    /// What is wrong, and how to fix it.
    pub detail: String,
    /// Line and column of the body, counted from one.
    pub place: Option<(usize, usize)>,
    /// Which entries of a list are wrong, counted from one, and why.
    pub entries: Vec<(usize, String)>,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Wrong<'a>>,
}

#[derive(Serialize)]
struct Wrong<'a> {
    entry: usize,
    detail: &'a str,
}

impl Problem {
    /// A problem of the caller's making.
    pub fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Any problem.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let told = || api::code(code).map(|known| known.status);
        debug_assert_eq!(told(), Some(status.as_u16()), "docs/errors.md on {code}");
        Self { status, code, detail: detail.into(), place: None, entries: Vec::new() }
    }

    /// A problem with a body that cannot be read as JSON, or not as this call's.
    pub fn of_json(error: &serde_json::Error) -> Self {
        let code = if error.is_data() { "bad-field" } else { "bad-json" };
        let place = Some((error.line(), error.column())).filter(|(line, _)| *line > 0);
        Self { place, ..Self::bad(code, error.to_string()) }
    }

    /// A problem with a part of a request's JSON that was read on its own: its place is told as
    /// that in the whole request.
    pub fn of_json_in(error: &serde_json::Error, part: &str, request: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(request.as_ptr() as usize);
        let before = request.get(..start).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let last_line = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
        let indent = if error.line() == 1 { last_line } else { 0 };
        let (line, column) = (error.line() + lines, error.column() + indent);
        let text = error.to_string();
        let own_place = format!(" at line {} column {}", error.line(), error.column());
        let what = text.strip_suffix(&own_place).unwrap_or(&text);
        let detail = format!("{what} at line {line} column {column}");
        Self { place: Some((line, column)), detail, ..Self::of_json(error) }
    }

    /// A problem of our own making.
    pub fn internal(error: &impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }

    /// The problem as an object, for lists of answers.
    pub fn to_json(&self) -> Vec<u8> {
        let title = self.status.canonical_reason().unwrap_or("error");
        let wrong = self.entries.iter();
        let wrong = wrong.map(|(entry, detail)| Wrong { entry: *entry, detail });
        let body = Body {
            r#type: format!("/docs/errors/{}", self.code),
            title,
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            line: self.place.map(|(line, _)| line),
            column: self.place.map(|(_, column)| column),
            errors: wrong.collect(),
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        let mut answer = typed(KIND, self.to_json());
        *answer.status_mut() = self.status;
        answer
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Store(error) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-failed", error.to_string())
            }
            other => Self::internal(&other),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::UnknownGate(_) | Refusal::UnknownPolicy(_) | Refusal::UnknownReference => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, refusal.code(), refusal.to_string())
    }
}

/// A JSON answer.
pub fn json(body: Vec<u8>) -> Answer {
    typed("application/json", body)
}

/// An answer of this media type.
pub fn typed(kind: &'static str, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
