//! Authorize calls of reverse proxies: a decision as a status, headers and a body.
//!
//! `/v1/gates/{gate}/authorize` names the gate in its path, ahead of anything that a client can
//! influence. `/v1/authorize` takes the gate of the `[[route]]` that matches the client's request,
//! which only trusted proxies may describe. The query of a call never chooses a gate: some proxies
//! keep the client's query on the call.

mod described_request;
mod values;

use std::borrow::Cow;

use bytes::Bytes;
use catraca::core::catalog::{AttributeSource, Catalog, Route};
use catraca::core::route::{
    AmbiguousPath, CanonicalPath, RouteRequest, UNROUTED, attribute_value, decode,
};
use catraca::{Check, CheckMode, Decision, Error, Reason, Refusal};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::context::ServerContext;
use crate::http::bodies::problem::{HttpResponse, Problem, bad_path, full_body, typed_response};
use crate::http::bodies::{denial, ratelimit_headers};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;
use described_request::{CallPath, DescribedRequest};
use values::{header_once, query_once};

/// The header that carries the ticket to the upstream, which settles with it.
const TICKET: HeaderName = HeaderName::from_static("catraca-ticket");

/// The gate of a call, and the attributes that a route read from the client's request.
struct GateSelection {
    gate: String,
    attributes: Vec<(String, String)>,
    /// The client's request, if no route matches it.
    unrouted: Option<String>,
}

/// Decides an authorize call.
pub async fn authorize(request: &ApiRequest) -> ApiResult {
    let decision = decide(request).await?;
    Ok(render(request.context(), &decision))
}

async fn decide(request: &ApiRequest) -> Result<Decision, Problem> {
    let address = request.client().address.to_string();
    let catalog = request.app().catalog();
    let selection = select_gate(request, &catalog)?;
    let attributes = selection.attributes.iter().map(|(name, value)| (&**name, &**value));
    // A route cannot replace the client's address.
    let attributes = attributes.filter(|(name, _)| *name != "ip");
    let subject = attributes.chain([("ip", address.as_str())]).collect();
    let subject = request.caller.with_fixed_attributes(subject)?;
    let check = Check::new(&selection.gate, subject).namespace(request.namespace());
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
            select_named_gate(&decode_gate(gate)?, described, &head.headers, catalog)
        }
        (None, Some(described)) => select_by_route(&described, &head.headers, catalog),
        (None, None) => Err(no_gate()),
    }
}

/// For a call that names its gate: only attributes come from the client's request.
fn select_named_gate(
    gate: &str,
    described: Option<DescribedRequest>,
    headers: &HeaderMap,
    catalog: &Catalog,
) -> Result<GateSelection, Problem> {
    let mut selection =
        GateSelection { gate: gate.to_owned(), attributes: Vec::new(), unrouted: None };
    let Some(described) = described else { return Ok(selection) };
    let request = RouteRequest { method: &described.method, target: &described.target };
    if let Some((route, path)) = catalog.route_of_gate(gate, &request).map_err(ambiguous_path)? {
        selection.attributes = attributes(route, &path, request.target, headers)?;
    }
    Ok(selection)
}

/// For a call that names no gate: the first `[[route]]` that matches the client's request does.
fn select_by_route(
    described: &DescribedRequest,
    headers: &HeaderMap,
    catalog: &Catalog,
) -> Result<GateSelection, Problem> {
    let request = RouteRequest { method: &described.method, target: &described.target };
    let Some((route, path)) = catalog.route(&request).map_err(ambiguous_path)? else {
        let unrouted = Some(format!("{} {}", request.method, request.target.escape_debug()));
        return Ok(GateSelection { gate: UNROUTED.to_owned(), attributes: Vec::new(), unrouted });
    };
    let attributes = attributes(route, &path, request.target, headers)?;
    Ok(GateSelection { gate: route.gate.to_string(), attributes, unrouted: None })
}

/// The attributes that a route reads from a request.
fn attributes(
    route: &Route,
    path: &CanonicalPath,
    target: &str,
    headers: &HeaderMap,
) -> Result<Vec<(String, String)>, Problem> {
    let query = target.split_once('?').map(|(_, query)| query);
    let mut attributes = Vec::new();
    for (name, from) in &route.set {
        let value = match from {
            AttributeSource::Header(wanted) => header_once(headers, wanted)?,
            AttributeSource::Query(wanted) => query_once(query, wanted)?,
            other => attribute_value(other, path, |_| None, |_| None),
        };
        attributes.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(attributes)
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

fn render(context: &ServerContext, decision: &Decision) -> HttpResponse {
    let status = status(decision);
    let settings = &context.reloadable.load().process.server;
    let denial = || denial::body(settings.denial, decision, status);
    let mut response = match (!decision.allowed).then(denial).flatten() {
        Some((media_type, body)) => typed_response(media_type, body),
        None => Response::new(full_body(Bytes::new())),
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    ratelimit_headers::write(decision, settings.x_ratelimit, headers);
    let ticket = decision.ticket.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(ticket)) = ticket {
        headers.insert(TICKET, ticket);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn status(decision: &Decision) -> StatusCode {
    let ban_status = decision.status.and_then(|status| StatusCode::from_u16(status).ok());
    match decision.reason {
        // Envoy's ext_authz lets a request pass on 200 alone.
        _ if decision.allowed => StatusCode::OK,
        Reason::Blocklisted => StatusCode::FORBIDDEN,
        Reason::Missing => StatusCode::BAD_REQUEST,
        Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => ban_status.unwrap_or(StatusCode::TOO_MANY_REQUESTS),
    }
}
