//! The settings of a layer, and what they read from a request.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use catraca_core::catalog::Catalog;
use catraca_core::request::{Check, DEFAULT_NAMESPACE};
use catraca_core::route::{RouteRequest, UNROUTED};
use catraca_core::subject::Subject;
use http::Response;
use http::request::Parts;
use smallvec::SmallVec;

use super::error_log::ErrorLog;
use super::extract::{AttributeExtractor, ExtractError};
use super::outcome_source::OutcomeSource;
use super::rejection::Rejection;
use crate::error::Error;
use crate::http_request::{RequestError, RequestParts, RouteValues};
use crate::limiter::{HeldCheck, Limiter};

/// What happens to a request if the limiter fails, so that there is no decision. An invalid check
/// never passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureMode {
    /// It gets a 503.
    #[default]
    Closed,
    /// It passes without a decision.
    Open,
}

/// A function of the request.
pub(super) type RequestFn<T> = Arc<dyn Fn(&Parts) -> T + Send + Sync>;
/// The current catalog.
pub(super) type CatalogFn = Arc<dyn Fn() -> Arc<Catalog> + Send + Sync>;
/// Makes the response to a request that is rejected.
pub(super) type RespondFn = Arc<dyn Fn(&Rejection, &Parts) -> Response<Bytes> + Send + Sync>;

/// The settings of a layer, without its limiter.
#[derive(Clone)]
pub(super) struct Options {
    pub gate: GateSource,
    pub namespace: Arc<str>,
    pub attributes: Vec<Attribute>,
    pub cost: Option<RequestFn<Option<i64>>>,
    pub lists: bool,
    pub outcome: OutcomeSource,
    pub on_failure: FailureMode,
    pub respond: Option<RespondFn>,
    pub x_ratelimit: bool,
}

/// Where the gate of a request comes from.
#[derive(Clone)]
pub(super) enum GateSource {
    Fixed(Arc<str>),
    /// A request without a gate is not checked.
    Request(RequestFn<Option<String>>),
    /// The first route that matches, which also reads attributes.
    Routes(CatalogFn),
}

/// An attribute of the caller.
#[derive(Clone)]
pub(super) struct Attribute {
    pub name: Arc<str>,
    pub extractor: Arc<dyn AttributeExtractor>,
}

/// The limiter and the settings, shared by all requests of a service.
pub(super) struct Settings<L> {
    pub limiter: Arc<L>,
    pub options: Options,
    /// Whether a settle that came too late was reported. Clients can read slowly on purpose, so the
    /// others are not.
    pub has_reported_late_settle: AtomicBool,
    pub error_log: Arc<ErrorLog>,
}

/// What a request is checked with.
pub(super) struct CheckInput {
    gate: Arc<str>,
    /// The attributes and their values.
    values: SmallVec<[(Arc<str>, String); 2]>,
    cost: Option<i64>,
    reference: Option<String>,
    lists: bool,
}

impl Options {
    pub fn new(gate: GateSource) -> Self {
        Self {
            gate,
            namespace: DEFAULT_NAMESPACE.into(),
            attributes: Vec::new(),
            cost: None,
            lists: true,
            outcome: OutcomeSource::default(),
            on_failure: FailureMode::default(),
            respond: None,
            x_ratelimit: false,
        }
    }

    /// Reads a request; `None` if it has no gate.
    pub fn read(&self, request: &Parts) -> Result<Option<CheckInput>, ExtractError> {
        let mut values = SmallVec::new();
        for attribute in &self.attributes {
            if let Some(value) = attribute.extractor.extract(request)? {
                values.push((Arc::clone(&attribute.name), value));
            }
        }
        let mut cost = None;
        let mut reference = None;
        let mut lists = self.lists;
        let gate = match &self.gate {
            GateSource::Fixed(gate) => Arc::clone(gate),
            GateSource::Request(gate) => match gate(request) {
                Some(gate) => gate.into(),
                None => return Ok(None),
            },
            GateSource::Routes(catalog) => {
                let (gate, mut read) = read_route(&catalog(), request)?;
                // A route cannot replace an attribute of the layer, such as the client's address.
                let is_own = |name: &str| self.attributes.iter().any(|own| *own.name == *name);
                read.attributes.retain(|(name, _)| !is_own(name));
                values.extend(read.attributes);
                cost = read.cost;
                reference = read.reference;
                lists &= !read.skips_lists;
                gate
            }
        };
        let own_cost = self.cost.as_ref().and_then(|cost| cost(request));
        Ok(Some(CheckInput { gate, values, cost: own_cost.or(cost), reference, lists }))
    }
}

impl<L: Limiter> Settings<L> {
    /// Checks a request.
    pub async fn check(&self, input: &CheckInput) -> Result<HeldCheck, Error> {
        let pairs = input.values.iter().map(|(name, value)| (&**name, value.as_str()));
        let subject: Subject<'_> = pairs.collect();
        let mut check = Check::new(&input.gate, subject).namespace(&self.options.namespace);
        check.cost = input.cost;
        check.reference = input.reference.as_deref();
        check.lists = input.lists;
        self.limiter.check_held(&check).await
    }
}

/// The gate of the first route that matches a request, and what the route reads.
fn read_route(catalog: &Catalog, request: &Parts) -> Result<(Arc<str>, RouteValues), ExtractError> {
    let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
    let request_line = RouteRequest { method: request.method.as_str(), target };
    let Some((route, path)) = catalog.route(&request_line)? else {
        return Ok((UNROUTED.into(), RouteValues::default()));
    };
    let parts = RequestParts::new(target, &request.headers)
        .with_claims(request.extensions.get())
        .with_certificate(request.extensions.get());
    let values = parts.read(route, &path)?;
    let gate = values.gate(catalog, route).map_err(RequestError::from)?;
    Ok((gate.clone(), values))
}
