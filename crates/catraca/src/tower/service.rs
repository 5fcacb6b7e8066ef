//! The service that a layer wraps around another one.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::LimitedBody;
use super::future::ResponseFuture;
use super::settings::Settings;
use crate::limiter::Limiter;

/// Checks every request before the inner service gets it, and settles the response.
pub struct RateLimit<S, L> {
    inner: S,
    settings: Arc<Settings<L>>,
}

impl<S, L> RateLimit<S, L> {
    pub(super) fn new(inner: S, settings: Settings<L>) -> Self {
        Self { inner, settings: Arc::new(settings) }
    }
}

impl<S, L, B, R> Service<Request<B>> for RateLimit<S, L>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    L: Limiter + 'static,
    R: Body<Data = Bytes>,
{
    type Response = Response<LimitedBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B, L>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        // The service that is ready must get this request, and the clone may not be ready yet.
        let ready = std::mem::replace(&mut self.inner, clone);
        let (parts, body) = request.into_parts();
        let input = self.settings.options.read(&parts);
        ResponseFuture::new(&self.settings, input, Request::from_parts(parts, body), ready)
    }
}

impl<S: Clone, L> Clone for RateLimit<S, L> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: Arc::clone(&self.settings) }
    }
}

impl<S: fmt::Debug, L> fmt::Debug for RateLimit<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
