//! The layer: its settings, as methods that can be chained.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use catraca_core::address::AddressRange;
use catraca_core::address::forwarded::AddressSource;
use catraca_core::catalog::Catalog;
use catraca_core::outcome::Outcome;
use http::request::Parts;
use http::{Response, response};
use tower_layer::Layer;

use super::error_log::ErrorLog;
use super::extract::{AttributeExtractor, Header, PathSegment};
use super::grpc;
use super::peer_address::{ForwardedAddress, ForwardedAddressError, PeerAddress};
use super::rejection::Rejection;
use super::service::RateLimit;
use super::settings::{Attribute, FailureMode, GateSource, Options, Settings};
use crate::engine::GateError;
use crate::limiter::Limiter;

/// Checks every request of a service, and settles its response. Clones share the limiter.
///
/// ```
/// use catraca::tower::RateLimitLayer;
/// use catraca::{Catalog, Engine};
/// # use std::convert::Infallible;
/// # use http::{Request, Response, StatusCode};
/// # use http_body_util::Empty;
/// # use tower::{Layer, ServiceExt, service_fn};
/// # async fn handle(_: Request<()>) -> Result<Response<Empty<bytes::Bytes>>, Infallible> {
/// #     Ok(Response::default())
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.upload]\n by = ['account']\n window = '10 per 1m'")?;
/// let layer = RateLimitLayer::new(Engine::new(catalog), "upload")
///     .by_header("account", "x-account")
///     .cost(|request| request.headers.contains_key("x-large").then_some(10));
/// let service = layer.layer(service_fn(handle));
///
/// let large = Request::put("/").header("x-account", "7").header("x-large", "1").body(())?;
/// assert_eq!(service.clone().oneshot(large).await?.status(), StatusCode::OK);
/// let small = Request::put("/").header("x-account", "7").body(())?;
/// assert_eq!(service.oneshot(small).await?.status(), StatusCode::TOO_MANY_REQUESTS);
/// # Ok(())
/// # }
/// ```
pub struct RateLimitLayer<L> {
    limiter: Arc<L>,
    options: Options,
    error_log: Arc<ErrorLog>,
}

impl<L: Limiter + 'static> RateLimitLayer<L> {
    /// Checks all requests at one gate, which may be the name of a policy.
    pub fn new(limiter: L, gate: impl Into<Arc<str>>) -> Self {
        Self::with_gate_source(limiter, GateSource::Fixed(gate.into()))
    }

    /// Like [`Self::new`], and an error if the catalog of an engine or an `App` declares no such
    /// gate, so that a misspelt name is an error when the program starts and not of its first
    /// request. The client of a server does not know the catalog: `Client::verify` asks for it.
    ///
    /// ```
    /// use catraca::tower::RateLimitLayer;
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1m'")?;
    /// let error = RateLimitLayer::try_new(Engine::new(catalog), "logn").unwrap_err();
    /// assert!(error.to_string().ends_with("did you mean `login`?"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_new(limiter: L, gate: impl Into<Arc<str>>) -> Result<Self, GateError> {
        let gate = gate.into();
        limiter.find_gate(&gate)?;
        Ok(Self::new(limiter, gate))
    }

    /// Checks each request at the gate that `gate` returns. A request without a gate passes.
    pub fn with_gate(
        limiter: L,
        gate: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::with_gate_source(limiter, GateSource::Request(Arc::new(gate)))
    }

    /// Checks each request at the gate of the first `[[route]]` of the catalog that matches it,
    /// with the attributes that the route reads. `catalog` returns the current one, so that a
    /// reload takes effect. A request that no route matches is checked at the catalog's `default`.
    pub fn with_routes(
        limiter: L,
        catalog: impl Fn() -> Arc<Catalog> + Send + Sync + 'static,
    ) -> Self {
        Self::with_gate_source(limiter, GateSource::Routes(Arc::new(catalog)))
    }

    fn with_gate_source(limiter: L, gate: GateSource) -> Self {
        let error_log = Arc::new(ErrorLog::new());
        Self { limiter: Arc::new(limiter), options: Options::new(gate), error_log }
    }

    /// Reads the attribute `name` with an extractor or a closure. Can be called several times.
    #[must_use]
    pub fn by(mut self, name: impl Into<Arc<str>>, extractor: impl AttributeExtractor) -> Self {
        let extractor = Arc::new(extractor);
        self.options.attributes.push(Attribute { name: name.into(), extractor });
        self
    }

    /// Reads the attribute `ip` from the address of the connection.
    #[must_use]
    pub fn by_peer_address(self) -> Self {
        self.by("ip", PeerAddress::default())
    }

    /// Reads the attribute `ip` from a header of trusted proxies, such as `X-Forwarded-For`. Each
    /// range of proxies is a text such as `10.0.0.0/8`, or one address.
    ///
    /// ```
    /// use catraca::tower::{AddressSource, RateLimitLayer};
    /// use catraca::{Catalog, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1m'")?;
    /// let layer = RateLimitLayer::new(Engine::new(catalog), "login")
    ///     .by_forwarded_address(AddressSource::XForwardedFor, ["10.0.0.0/8"])?;
    /// # drop(layer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_forwarded_address<R>(
        self,
        source: AddressSource,
        trusted: impl IntoIterator<Item = R>,
    ) -> Result<Self, ForwardedAddressError>
    where
        R: TryInto<AddressRange, Error: Into<ForwardedAddressError>>,
    {
        Ok(self.by("ip", ForwardedAddress::new(source, trusted)?))
    }

    /// Reads an attribute from a header, which must be sent at most once.
    #[must_use]
    pub fn by_header(self, name: impl Into<Arc<str>>, header: impl Into<String>) -> Self {
        self.by(name, Header::new(header))
    }

    /// Reads an attribute from a segment of the path, counted from one.
    #[must_use]
    pub fn by_path_segment(self, name: impl Into<Arc<str>>, number: usize) -> Self {
        self.by(name, PathSegment::new(number))
    }

    /// Requests this many units for each request. Without a cost, the policy's default applies.
    #[must_use]
    pub fn cost(mut self, cost: impl Fn(&Parts) -> Option<i64> + Send + Sync + 'static) -> Self {
        self.options.cost = Some(Arc::new(cost));
        self
    }

    /// Counts in another namespace, apart from all others.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.options.namespace = namespace.into();
        self
    }

    /// Ignores the allowlist and the blocklist.
    #[must_use]
    pub fn without_lists(mut self) -> Self {
        self.options.lists = false;
        self
    }

    /// Shows these headers of the response to ban rules. `Retry-After` is always shown.
    #[must_use]
    pub fn outcome_headers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.options.outcome.add_headers(names);
        self
    }

    /// Shows JSON bodies of responses to ban rules, if they have at most 64 KiB. The body is copied
    /// while it is sent, and not delayed.
    #[must_use]
    pub fn outcome_json_body(mut self) -> Self {
        self.options.outcome.reads_json_body = true;
        self
    }

    /// Reads a cost from responses that are event streams (`text/event-stream`): the `from` fields
    /// of the catalog, such as `body.usage.total_tokens`, each from the last event that has it as a
    /// whole number. Shows JSON bodies too. The stream is not delayed. A stream that breaks off
    /// keeps what its check holds.
    #[must_use]
    pub fn outcome_event_fields<T: AsRef<str>>(
        mut self,
        fields: impl IntoIterator<Item = T>,
    ) -> Self {
        self.options.outcome.add_event_fields(fields);
        self.outcome_json_body()
    }

    /// Changes the outcome when the head of the response is known, such as its status or its cost.
    #[must_use]
    pub fn outcome(
        mut self,
        change: impl Fn(&mut Outcome, &response::Parts) + Send + Sync + 'static,
    ) -> Self {
        self.options.outcome.change = Some(Arc::new(change));
        self
    }

    /// Protects a gRPC service. Rejections of calls have a gRPC status, such as
    /// `RESOURCE_EXHAUSTED` with `grpc-retry-pushback-ms`. The status of an outcome is the HTTP
    /// status that corresponds to the gRPC status; a call that ends without one has no status.
    #[must_use]
    pub fn grpc(mut self) -> Self {
        self.options.outcome.reads_grpc_status = true;
        self.respond(grpc::reject_call)
    }

    /// Decides whether requests pass while the limiter fails. By default they get a 503 with
    /// `Retry-After: 1`.
    #[must_use]
    pub fn on_failure(mut self, mode: FailureMode) -> Self {
        self.options.on_failure = mode;
        self
    }

    /// Makes the responses to rejected requests. The rate-limit headers are added to them.
    #[must_use]
    pub fn respond(
        mut self,
        respond: impl Fn(&Rejection, &Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.options.respond = Some(Arc::new(respond));
        self
    }

    /// Also sends `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    #[must_use]
    pub fn x_ratelimit_headers(mut self) -> Self {
        self.options.x_ratelimit = true;
        self
    }
}

impl<S, L> Layer<S> for RateLimitLayer<L> {
    type Service = RateLimit<S, L>;

    fn layer(&self, inner: S) -> RateLimit<S, L> {
        let limiter = Arc::clone(&self.limiter);
        let options = self.options.clone();
        let has_reported_late_settle = AtomicBool::new(false);
        let error_log = Arc::clone(&self.error_log);
        RateLimit::new(inner, Settings { limiter, options, has_reported_late_settle, error_log })
    }
}

impl<L> Clone for RateLimitLayer<L> {
    fn clone(&self) -> Self {
        let error_log = Arc::clone(&self.error_log);
        Self { limiter: Arc::clone(&self.limiter), options: self.options.clone(), error_log }
    }
}

impl<L> fmt::Debug for RateLimitLayer<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.options.attributes.iter().map(|attribute| &attribute.name);
        let attributes: Vec<_> = names.collect();
        f.debug_struct("RateLimitLayer").field("attributes", &attributes).finish_non_exhaustive()
    }
}
