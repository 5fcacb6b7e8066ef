//! Authorize calls of reverse proxies: a decision as a status, headers and a body.
//!
//! `/v1/gates/{gate}/authorize` names the gate in its path, ahead of anything that a client can
//! influence. `/v1/authorize` takes the gate of the `[[route]]` that matches the client's request,
//! which only trusted proxies may describe. The query of a call never chooses a gate: some proxies
//! keep the client's query on the call.

mod described_request;
mod values;

use std::borrow::Cow;

use catraca::core::catalog::{Catalog, Route};
use catraca::core::route::{AmbiguousPath, CanonicalPath, RouteRequest, UNROUTED, decode};
use catraca::http_request::{RequestParts, RouteValues};
use catraca::{Check, CheckMode, Decision, Error, Refusal};
use hyper::http::{HeaderName, HeaderValue, StatusCode};

use crate::http::bodies::problem::{HttpResponse, Problem, bad_path};
use crate::http::bodies::{cors, denial};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;
use described_request::{CallPath, DescribedRequest};
use values::unreadable_request;

/// The header that carries the ticket to the upstream, which settles with it.
const TICKET: HeaderName = HeaderName::from_static("catraca-ticket");

/// The gate of a call, and what a route read from the client's request.
struct GateSelection {
    gate: String,
    values: RouteValues,
    /// The client's request, if no route matches it.
    unrouted: Option<String>,
}

/// Decides an authorize call.
pub async fn authorize(request: &ApiRequest) -> ApiResult {
    let decision = decide(request).await?;
    Ok(render(request, &decision))
}

async fn decide(request: &ApiRequest) -> Result<Decision, Problem> {
    let address = request.client().address.to_string();
    let catalog = request.app().catalog();
    let selection = select_gate(request, &catalog)?;
    let attributes = selection.values.attributes.iter().map(|(name, value)| (&**name, &**value));
    // A route cannot replace the client's address.
    let attributes = attributes.filter(|(name, _)| *name != "ip");
    let subject = attributes.chain([("ip", address.as_str())]).collect();
    let subject = request.caller.with_fixed_attributes(subject)?;
    let mut check = Check::new(&selection.gate, subject).namespace(request.namespace());
    check.cost = selection.values.cost;
    check.reference = selection.values.reference.as_deref();
    check.lists = !selection.values.skips_lists;
    match request.context().decide(&check, CheckMode::Check).await {
        Err(Error::Refused(Refusal::UnknownGate(_))) if selection.unrouted.is_some() => {
            Err(unknown_route(selection.unrouted))
        }
        result => {
            let decision = result?;
            request.span.set_decision(&selection.gate, &decision);
            Ok(decision)
        }
    }
}

/// The gate and the attributes of a call.
fn select_gate(request: &ApiRequest, catalog: &Catalog) -> Result<GateSelection, Problem> {
    let head = &request.head;
    let described = match request.context().reloadable.load().is_trusted_proxy(request.peer()) {
        true => DescribedRequest::read(&head.method, &head.uri, &head.headers)?,
        false => None,
    };
    let gate = CallPath::split(head.uri.path()).and_then(|path| path.gate);
    match (gate, described) {
        (Some(gate), described) => {
            select_named_gate(request, &decode_gate(gate)?, described, catalog)
        }
        (None, Some(described)) => select_by_route(request, &described, catalog),
        (None, None) => Err(no_gate()),
    }
}

/// For a call that names its gate: only the values of the check come from the client's request.
fn select_named_gate(
    call: &ApiRequest,
    gate: &str,
    described: Option<DescribedRequest>,
    catalog: &Catalog,
) -> Result<GateSelection, Problem> {
    let mut selection =
        GateSelection { gate: gate.to_owned(), values: RouteValues::default(), unrouted: None };
    let Some(described) = described else { return Ok(selection) };
    let request = RouteRequest { method: &described.method, target: &described.target };
    if let Some((route, path)) = catalog.route_of_gate(gate, &request).map_err(ambiguous_path)? {
        selection.values = read_values(call, &request, route, &path)?;
    }
    Ok(selection)
}

/// For a call that names no gate: the first `[[route]]` that matches the client's request does.
fn select_by_route(
    call: &ApiRequest,
    described: &DescribedRequest,
    catalog: &Catalog,
) -> Result<GateSelection, Problem> {
    let request = RouteRequest { method: &described.method, target: &described.target };
    let Some((route, path)) = catalog.route(&request).map_err(ambiguous_path)? else {
        let unrouted = Some(format!("{} {}", request.method, request.target.escape_debug()));
        let values = RouteValues::default();
        return Ok(GateSelection { gate: UNROUTED.to_owned(), values, unrouted });
    };
    let values = read_values(call, &request, route, &path)?;
    let gate = values.gate(catalog, route)?.to_string();
    Ok(GateSelection { gate, values, unrouted: None })
}

/// What a route reads from the client's request. A proxy passes the headers of the client on.
fn read_values(
    call: &ApiRequest,
    request: &RouteRequest<'_>,
    route: &Route,
    path: &CanonicalPath,
) -> Result<RouteValues, Problem> {
    let headers = &call.head.headers;
    let claims = call.context().reloadable.load().claims_for(route, headers)?;
    let parts = RequestParts::new(request.target, headers).with_claims(claims.as_ref());
    parts.read(route, path).map_err(unreadable_request)
}

fn decode_gate(gate: &str) -> Result<String, Problem> {
    decode(gate).map(Cow::into_owned).map_err(|_| bad_path())
}

fn ambiguous_path(why: AmbiguousPath) -> Problem {
    let detail = format!("servers read the path of the client's request in different ways: {why}");
    Problem::bad("ambiguous-path", detail)
}

fn unknown_route(request: Option<String>) -> Problem {
    let request = request.unwrap_or_default();
    let detail = format!(
        "no `[[route]]` matches {request}, and the catalog names no `default` policy; add one of \
         them"
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-route", detail)
}

fn no_gate() -> Problem {
    Problem::bad(
        "no-gate",
        "call /v1/gates/NAME/authorize, or describe the client's request with X-Forwarded-Method \
         and X-Forwarded-Uri from an address in `[network] trusted_proxies`, so that a `[[route]]` \
         chooses the gate",
    )
}

fn render(request: &ApiRequest, decision: &Decision) -> HttpResponse {
    let config = request.context().reloadable.load();
    let settings = &config.process.server;
    let mut response = denial::decision_response(settings, decision);
    if !decision.allowed {
        let origin = cors::origin(&request.head.headers);
        cors::write(settings, origin.as_ref(), response.headers_mut());
    }
    let ticket = decision.ticket.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(ticket)) = ticket {
        response.headers_mut().insert(TICKET, ticket);
    }
    response
}
