//! Headers and query parameters that must be sent at most once.
//!
//! A value that is sent twice is refused: Catraca might count one of them, and the upstream use the
//! other.

use hyper::http::HeaderMap;

use crate::http::bodies::problem::Problem;

/// The value of a header that must be sent at most once.
pub fn header_once(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    match (line.to_str(), lines.next()) {
        (Ok(text), None) => Ok(Some(text.to_owned())),
        _ => Err(Problem::bad(
            "ambiguous-request",
            format!(
                "`{name}` must be sent once and in ASCII; configure the proxy to replace what the \
                 client sends"
            ),
        )),
    }
}

/// The value of a query parameter that must be sent at most once.
pub fn query_once(query: Option<&str>, wanted: &str) -> Result<Option<String>, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut values = pairs.filter(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    let value = values.next();
    match values.next() {
        None => Ok(value),
        Some(_) => Err(Problem::bad(
            "ambiguous-request",
            format!("the query has `{wanted}` more than once, and a route reads it; send it once"),
        )),
    }
}
