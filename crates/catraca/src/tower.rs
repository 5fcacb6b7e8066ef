//! A [tower](https://docs.rs/tower) layer that checks every request and settles its response.
//!
//! [`RateLimitLayer`] works with any service of HTTP requests, such as an axum router, and over any
//! [`Limiter`](crate::Limiter). Per request:
//!
//! 1. The attributes of the caller are read from the request, and the gate is checked.
//! 2. A denied request gets a response with the status, the headers and the body of the denial. The
//!    service is not called.
//! 3. An admitted request carries the [`Decision`](crate::Decision) and an [`OutcomeReport`] in its
//!    extensions. The layer keeps the ticket of the decision for its own settle. The response gets
//!    the rate-limit headers.
//! 4. When the body of the response ends, or is dropped, the check is settled with the outcome. If
//!    the service fails, panics or is cancelled, the outcome has no status.
//!
//! ```
//! use catraca::tower::{PeerAddr, RateLimitLayer};
//! use catraca::{Catalog, Engine};
//! use http::{Request, StatusCode};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! # use http::Response;
//! # use http_body_util::Empty;
//! # use std::convert::Infallible;
//! # async fn handle(_: Request<()>) -> Result<Response<Empty<bytes::Bytes>>, Infallible> {
//! #     Ok(Response::default())
//! # }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1m'")?;
//! let layer = RateLimitLayer::new(Engine::new(catalog), "login").by_peer_address();
//! let service = ServiceBuilder::new().layer(layer).service(service_fn(handle));
//!
//! let peer = PeerAddr(([198, 51, 100, 7], 50_000).into()); // inserted by the server
//! let request = || Request::post("/login").extension(peer).body(()).unwrap();
//! assert_eq!(service.clone().oneshot(request()).await?.status(), StatusCode::OK);
//! let denied = service.oneshot(request()).await?;
//! assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
//! assert_eq!(denied.headers()["retry-after"], "60");
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "axum")]
mod axum_service;
mod body;
mod error_log;
mod extract;
mod future;
mod grpc;
mod layer;
mod outcome_report;
mod outcome_source;
mod peer_address;
mod pending_check;
mod pending_settle;
mod rejection;
mod service;
mod settings;

pub use body::LimitedBody;
pub use catraca_core::address::forwarded::AddressSource;
pub use catraca_core::address::{AddressRange, RangeError};
pub use extract::{AttributeExtractor, ExtractError, Header, PathSegment};
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use outcome_report::OutcomeReport;
pub use outcome_source::OUTCOME_BODY_BYTES_MAX;
pub use peer_address::{ForwardedAddress, ForwardedAddressError, PeerAddr, PeerAddress};
pub use rejection::Rejection;
pub use service::RateLimit;
pub use settings::FailureMode;
