//! Reads the attributes of a caller from a request.

use catraca_core::catalog::Network;
use catraca_core::route::{AmbiguousPath, CanonicalPath};
use http::StatusCode;
use http::request::Parts;

use crate::http_request::{RequestError, header_once};

/// Reads the value of one attribute from a request. Closures from `&Parts` to `Option<String>` are
/// extractors too.
///
/// ```
/// use catraca::tower::AttributeExtractor;
/// use http::request::Parts;
///
/// fn tenant(request: &Parts) -> Option<String> {
///     Some(request.uri.host()?.split_once('.')?.0.to_owned())
/// }
///
/// let (request, ()) = http::Request::get("https://acme.example.org/").body(())?.into_parts();
/// assert_eq!(tenant.extract(&request)?, Some("acme".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A type of its own can refuse a request:
///
/// ```
/// use catraca::tower::{AttributeExtractor, ExtractError};
/// use http::StatusCode;
/// use http::request::Parts;
///
/// struct Session;
///
/// impl AttributeExtractor for Session {
///     fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
///         let cookie = request.headers.get("cookie").ok_or_else(|| ExtractError::Custom {
///             status: StatusCode::UNAUTHORIZED,
///             code: "no-session",
///             detail: "log in first".to_owned(),
///         })?;
///         Ok(cookie.to_str().ok().map(str::to_owned))
///     }
/// }
///
/// let (request, ()) = http::Request::get("/").body(())?.into_parts();
/// assert_eq!(Session.extract(&request).unwrap_err().to_string(), "log in first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AttributeExtractor: Send + Sync + 'static {
    /// The value. If the request has none, the policy's `on_missing` decides what happens.
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError>;
}

/// Why the value of an attribute cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The server does not pass on the address of its peer.
    #[error(
        "the request has no peer address: serve axum's router with \
         `into_make_service_with_connect_info::<SocketAddr>()` and the feature `axum`, or insert \
         `catraca::tower::PeerAddr` into the extensions of every request"
    )]
    NoPeerAddress,
    /// A value is sent twice or invalid, or no gate is chosen for it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Servers read the path in different ways.
    #[error("servers read the path of the request in different ways: {0}")]
    AmbiguousPath(#[from] AmbiguousPath),
    /// An extractor of the program refuses the request.
    #[error("{detail}")]
    Custom {
        /// The status of the response; of those from 500 on, the log has a line.
        status: StatusCode,
        /// A stable code for programs.
        code: &'static str,
        /// What is wrong, for the client.
        detail: String,
    },
}

impl<F> AttributeExtractor for F
where
    F: Fn(&Parts) -> Option<String> + Send + Sync + 'static,
{
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        Ok(self(request))
    }
}

/// The value of a header, which must be sent at most once.
#[derive(Clone, Debug)]
pub struct Header(String);

impl Header {
    /// The header with this name, in any case.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl AttributeExtractor for Header {
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        let value = header_once(&request.headers, &self.0).map_err(RequestError::from)?;
        Ok(value.map(str::to_owned))
    }
}

/// A segment of the path, decoded. Inside a nested axum router, the path begins after its prefix.
#[derive(Clone, Copy, Debug)]
pub struct PathSegment(usize);

impl PathSegment {
    /// The segment with this number, counted from one: the first of `/accounts/7` is `accounts`.
    pub const fn new(number: usize) -> Self {
        Self(number)
    }
}

impl AttributeExtractor for PathSegment {
    fn extract(&self, request: &Parts) -> Result<Option<String>, ExtractError> {
        let path = CanonicalPath::canonical(request.uri.path(), &Network::default())?;
        let index = self.0.checked_sub(1);
        Ok(index.and_then(|index| path.segments.into_iter().nth(index)))
    }
}
