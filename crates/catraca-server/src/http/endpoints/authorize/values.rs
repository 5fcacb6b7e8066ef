//! Headers and query parameters that must be sent at most once.

use catraca::http_request::{self, AmbiguousValue, RequestError};
use hyper::http::HeaderMap;

use crate::http::bodies::problem::Problem;

/// The value of a header that must be sent at most once.
pub fn header_once(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let value = http_request::header_once(headers, name).map_err(ambiguous_request)?;
    Ok(value.map(str::to_owned))
}

/// The client's request cannot be checked as its route says.
pub fn unreadable_request(error: RequestError) -> Problem {
    match error {
        RequestError::Ambiguous(error) => ambiguous_request(error),
        error => Problem::new(error.status(), error.code(), error.to_string()),
    }
}

/// 400: a value that must be sent once is ambiguous.
fn ambiguous_request(error: AmbiguousValue) -> Problem {
    let remedy = match &error {
        AmbiguousValue::Header { .. } => "; configure the proxy to replace what the client sends",
        _ => "",
    };
    Problem::bad("ambiguous-request", format!("{error}{remedy}"))
}
