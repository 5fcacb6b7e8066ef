//! A decision as an HTTP response: its status, its headers and its problem body.
//!
//! The server's authorize calls and the tower layer respond alike, because both use this module.
//!
//! ```
//! use catraca::http_response::{ProblemDenial, ratelimit_headers, response_status};
//! use catraca::{Catalog, Check, Engine};
//! use http::{HeaderMap, StatusCode};
//!
//! let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '1 per 1m'")?);
//! let check = Check::new("api", [("ip", "198.51.100.7")]);
//! engine.check(&check)?;
//! let decision = engine.check(&check)?;
//! let status = response_status(&decision);
//! let mut headers = HeaderMap::new();
//! ratelimit_headers::write(&decision, false, &mut headers);
//! assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
//! assert_eq!(headers["ratelimit-policy"], "\"api\";q=1;w=60");
//! let body = ProblemDenial::new(&decision, status).to_json(); // application/problem+json
//! # assert!(String::from_utf8(body)?.contains("429"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod denial_kind;
mod problem_denial;
pub mod ratelimit_headers;

use catraca_core::decision::Decision;
use http::StatusCode;

pub use denial_kind::DenialKind;
pub use problem_denial::ProblemDenial;

/// The media type of problems (RFC 9457).
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The status of a response that carries only the decision: 200 if it is allowed.
pub fn response_status(decision: &Decision) -> StatusCode {
    // Envoy's ext_authz lets a request pass on 200 alone.
    if decision.allowed {
        return StatusCode::OK;
    }
    let ban_status = || decision.status.and_then(|status| StatusCode::from_u16(status).ok());
    let own_status = DenialKind::of(decision.reason).status;
    own_status.or_else(ban_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS)
}

/// `Retry-After` in whole seconds, rounded up, at least one; none when allowed, or when waiting
/// never helps.
pub fn retry_after_secs(decision: &Decision) -> Option<i64> {
    // At least one: zero would ask for a retry at once.
    decision.retry_after.filter(|_| !decision.allowed).map(|wait| wait.ceil_secs().max(1))
}
