//! Reads from an HTTP request what decides about it: who the caller is, and which gate it passes.
//!
//! A client must not be able to choose by a second or an unreadable value what is counted: the
//! limiter might count one of two values, and the application use the other.

mod request_error;
mod request_parts;
mod route_values;
#[cfg(test)]
mod tests;

use http::HeaderMap;

pub use request_error::RequestError;
pub use request_parts::{Claims, ClientCertificate, RequestBody, RequestParts};
pub use route_values::RouteValues;

/// A value that must be sent once is ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmbiguousValue {
    /// A header was sent twice, or is not ASCII.
    #[error("`{name}` must be sent once and in ASCII")]
    Header {
        /// The name of the header.
        name: String,
    },
    /// Servers could read different values of a cookie, or a line of cookies is not ASCII.
    #[error(
        "the cookie `{name}` must be sent once, with its name in these letters and without spaces \
         or commas in cookies, and in ASCII"
    )]
    Cookie {
        /// The name of the cookie.
        name: String,
    },
    /// Servers could read different values of a query parameter.
    #[error(
        "the query has `{name}` more than once, in another spelling or with a `;`, and a route \
         reads it; send it once, as `{name}=…`"
    )]
    Query {
        /// The name of the parameter.
        name: String,
    },
}

/// The value of a header that must be sent at most once.
///
/// ```
/// use catraca::http_request::header_once;
/// use http::{HeaderMap, HeaderValue};
///
/// let mut headers = HeaderMap::new();
/// headers.append("x-tenant", HeaderValue::from_static("acme"));
/// assert_eq!(header_once(&headers, "X-Tenant"), Ok(Some("acme")));
/// headers.append("x-tenant", HeaderValue::from_static("other"));
/// assert!(header_once(&headers, "x-tenant").is_err());
/// ```
pub fn header_once<'h>(
    headers: &'h HeaderMap,
    name: &str,
) -> Result<Option<&'h str>, AmbiguousValue> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    match (line.to_str(), lines.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(AmbiguousValue::Header { name: name.to_owned() }),
    }
}

/// All lines of a header with the addresses of proxies, for
/// [`find_client`](catraca_core::address::forwarded::find_client).
pub fn header_lines<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // An unreadable line is replaced, not skipped: it must stop the walk over the hops, because the
    // hops before it cannot be trusted.
    headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?")).collect()
}
