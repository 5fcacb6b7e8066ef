//! Errors as problem+json (RFC 9457), with a stable code for programs.
//!
//! A detail must not contain a private value of the request.

use std::convert::Infallible;

use bytes::Bytes;
use catraca::{AppError, Error, Refusal};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Either, Full};
use hyper::http::{HeaderValue, Method, Response, StatusCode, Uri, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::error_codes::find_error_code;
use crate::jwt::JwtError;

pub use catraca::http_response::PROBLEM_JSON;

/// The body of a response: complete, or a stream of events.
pub type ResponseBody = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;
/// A response.
pub type HttpResponse = Response<ResponseBody>;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// A stable code for programs.
    pub code: &'static str,
    /// The error in this request, and how to fix it.
    pub detail: String,
    /// The value of `Retry-After`, in seconds, at least one.
    pub retry_after: Option<i64>,
    /// Line and column of the body, counted from one.
    pub position: Option<(usize, usize)>,
    /// The invalid entries of a list: their positions, counted from one, and their errors.
    pub entries: Vec<(usize, String)>,
}

/// An error (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemBody<'a> {
    /// The page about this error code.
    #[schemars(extend("format" = "uri-reference"))]
    r#type: String,
    title: &'a str,
    status: u16,
    /// A stable code for programs.
    code: &'a str,
    /// The error in this request, and how to fix it.
    detail: &'a str,
    /// Line of the body, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Column of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// The invalid entries of a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<WrongEntry<'a>>,
}

/// An invalid entry of a list.
#[derive(Serialize, JsonSchema)]
pub struct WrongEntry<'a> {
    /// Its position in the list, counted from one.
    #[schemars(example = 3)]
    entry: usize,
    /// The error in it.
    detail: &'a str,
}

impl Problem {
    /// A 400.
    pub fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// A problem with any status, which must be that of the code in `docs/errors.md`.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let documented = || find_error_code(code).map(|known| known.status);
        debug_assert_eq!(documented(), Some(status.as_u16()), "docs/errors.md on {code}");
        let detail = detail.into();
        Self { status, code, detail, retry_after: None, position: None, entries: Vec::new() }
    }

    /// The same problem with a `Retry-After` of at least one second: zero would ask for a retry at
    /// once.
    pub fn retry_after(self, seconds: i64) -> Self {
        Self { retry_after: Some(seconds.max(1)), ..self }
    }

    /// `bad-json` for a body that is not JSON, `bad-field` for JSON that this call does not take.
    pub fn from_json_error(error: &serde_json::Error) -> Self {
        let code = if error.is_data() { "bad-field" } else { "bad-json" };
        // Line 0 means that the error has no position.
        let position = Some((error.line(), error.column())).filter(|(line, _)| *line > 0);
        Self { position, ..Self::bad(code, json_words(&error.to_string())) }
    }

    /// A 500 for an error of the server itself.
    pub fn internal(error: &impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }

    /// The body of the problem, also for lists of results.
    pub fn body(&self) -> ProblemBody<'_> {
        let title = self.status.canonical_reason().unwrap_or("error");
        let entries = self.entries.iter();
        let errors = entries.map(|(entry, detail)| WrongEntry { entry: *entry, detail });
        ProblemBody {
            r#type: format!("/docs/errors/{}", self.code),
            title,
            status: self.status.as_u16(),
            code: self.code,
            detail: &self.detail,
            line: self.position.map(|(line, _)| line),
            column: self.position.map(|(_, column)| column),
            errors: errors.collect(),
        }
    }

    /// The body of the problem as JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body()).unwrap_or_default()
    }

    /// The problem as a response.
    pub fn to_response(&self) -> HttpResponse {
        let mut response = typed_response(PROBLEM_JSON, self.to_json());
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The text of an error in the words of JSON: serde says `map` and `sequence`, and names types of
/// Rust.
fn json_words(text: &str) -> String {
    let Some(rest) = text.strip_prefix("invalid type: ") else { return text.to_owned() };
    // The last one: what was found may quote the request.
    let Some((found, expected)) = rest.rsplit_once(", expected ") else { return text.to_owned() };
    let found = match found {
        "map" => "an object",
        "sequence" => "an array",
        other => other,
    };
    const EXPECTED: [(&str, &str); 7] = [
        ("a map", "an object"),
        ("a sequence", "an array"),
        ("i64", "an integer"),
        ("u64", "an integer that is not negative"),
        ("u32", "an integer that is not negative"),
        ("u16", "an integer that is not negative"),
        ("usize", "an integer that is not negative"),
    ];
    let known = EXPECTED.iter().find_map(|(of_serde, ours)| {
        let place = expected.strip_prefix(of_serde)?;
        (place.is_empty() || place.starts_with(' ')).then(|| format!("{ours}{place}"))
    });
    let expected = known.unwrap_or_else(|| expected.to_owned());
    format!("invalid type: {found}, expected {expected}")
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Call(error) => error.into(),
            AppError::Invalid { code, detail } => Self::bad(code, detail),
            AppError::NotFound { code, detail } => Self::new(StatusCode::NOT_FOUND, code, detail),
            AppError::NoRecords => {
                let detail = "this server has no records: start it with --catalog FILE, and \
                              without `[records] url = \"none\"`";
                Self::new(StatusCode::CONFLICT, "no-records", detail)
            }
            AppError::Records(error) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "records-failed", error.to_string())
            }
            error @ AppError::UnknownNamespaces => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "records-failed", error.to_string())
            }
            AppError::Locks(error) => error.into(),
            other => Self::internal(&other),
        }
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

/// The token of the client is refused.
impl From<JwtError> for Problem {
    fn from(error: JwtError) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, error.code(), error.to_string())
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

/// A 200 with a JSON body.
pub fn json_response(body: Vec<u8>) -> HttpResponse {
    typed_response("application/json", body)
}

/// A 200 with a value as its JSON body.
pub fn respond_json<T: Serialize>(body: &T) -> Result<HttpResponse, Problem> {
    let bytes = serde_json::to_vec(body).map_err(|error| Problem::internal(&error))?;
    Ok(json_response(bytes))
}

/// A complete body.
pub fn full_body(bytes: impl Into<Bytes>) -> ResponseBody {
    Either::Left(Full::new(bytes.into()))
}

/// A 200 with a body of this media type.
pub fn typed_response(media_type: &'static str, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(full_body(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// 400: a path segment cannot be percent-decoded.
pub fn bad_path() -> Problem {
    Problem::bad(
        "bad-path",
        "a segment of the path has a `%` without two hexadecimal digits, or is not UTF-8 after \
         percent-decoding; encode the value as UTF-8, and `%` as `%25`",
    )
}

/// 404: there is no such call.
pub fn unknown_call(method: &Method, target: &Uri) -> Problem {
    let detail = match target.authority().filter(|_| method == Method::CONNECT) {
        // The target of a tunnel has no path.
        Some(authority) => {
            format!("there is no call CONNECT {authority}: this server opens no tunnels")
        }
        None => {
            let path = target.path();
            format!("there is no call {path}; see /docs or /openapi.json for all calls")
        }
    };
    Problem::new(StatusCode::NOT_FOUND, "unknown-call", detail)
}

/// 405: the path exists, but not with this method.
pub fn wrong_method(method: &Method, path: &str) -> Problem {
    let detail = format!("{path} does not support {method}; the header `Allow` lists its methods");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_type_is_named_as_json_does() {
        for (serde, ours) in [
            ("map, expected a string at line 1 column 8", "an object, expected a string at line 1"),
            ("sequence, expected a map at line 1 column 9", "an array, expected an object at line"),
            ("map, expected a sequence", "an object, expected an array"),
            ("map, expected i64 at line 1 column 2", "an object, expected an integer at line 1"),
            (
                "string \", expected a map\", expected i64",
                "string \", expected a map\", expected an",
            ),
        ] {
            let said = json_words(&format!("invalid type: {serde}"));
            assert!(said.contains(ours), "{said}");
        }
        assert_eq!(json_words("unknown field `map`"), "unknown field `map`");
    }
}
