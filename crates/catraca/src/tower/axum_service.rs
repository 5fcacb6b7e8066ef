//! The service that axum serves, with the limits of a layer and the addresses of its peers.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;

use super::layer::RateLimitLayer;
use crate::limiter::Limiter;

impl<L: Limiter + 'static> RateLimitLayer<L> {
    /// Limits every route of a router, and makes the service for `axum::serve`. It passes on the
    /// address of each peer, which `by_peer_address` and `by_forwarded_address` need.
    ///
    /// ```
    /// use std::net::SocketAddr;
    ///
    /// use axum::{Router, body::Body, routing::get};
    /// use catraca::{Catalog, Engine, tower::RateLimitLayer};
    /// use http::{Request, StatusCode};
    /// use tower::ServiceExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '1 per 1m'")?;
    /// let limit = RateLimitLayer::new(Engine::new(catalog), "api").by_peer_address();
    /// let service = limit.make_service(Router::new().route("/", get(|| async { "welcome" })));
    ///
    /// // As `axum::serve` does for each connection:
    /// let connection = service.oneshot(SocketAddr::from(([198, 51, 100, 7], 50_000))).await?;
    /// let request = || Request::new(Body::empty());
    /// assert_eq!(connection.clone().oneshot(request()).await?.status(), StatusCode::OK);
    /// let denied = connection.oneshot(request()).await?;
    /// assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    /// # Ok(())
    /// # }
    /// ```
    pub fn make_service(
        self,
        router: Router,
    ) -> IntoMakeServiceWithConnectInfo<Router, SocketAddr> {
        router.layer(self).into_make_service_with_connect_info::<SocketAddr>()
    }
}
