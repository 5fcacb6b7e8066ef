//! Authorize calls of reverse proxies: a decision as a status, headers and a body.
//!
//! `/v1/gates/{gate}/authorize` names the gate in its path, ahead of anything that a client can
//! influence. `/v1/authorize` takes the gate of the `[[route]]` that matches the client's request,
//! which only trusted proxies may describe. The query of a call never chooses a gate: some proxies
//! keep the client's query on the call.

mod described;
mod values;

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use catraca::core::address::forwarded::{Client, client};
use catraca::core::catalog::{Catalog, Pick, Route};
use catraca::core::route::{AmbiguousPath, Path, Request, UNROUTED, decode, pick};
use catraca::{Check, Decision, Error, Reason, Refusal};
use http_body_util::Full;

use super::auth::Caller;
use super::decide::Verb;
use super::problem::{Answer, Problem, typed};
use super::{Front, denial, fields, router};
use crate::observe::traces::Span;
use described::{CallPath, DescribedRequest};
use values::{header_once, query_once};

/// The header by which the upstream gets the ticket that it settles with.
const TICKET: HeaderName = HeaderName::from_static("catraca-ticket");

/// An authorize call.
pub struct AuthorizeCall<'a> {
    /// The address at the other end of the connection.
    pub peer: IpAddr,
    /// The method of the call.
    pub method: &'a Method,
    /// The target of the call.
    pub uri: &'a Uri,
    /// The headers of the call.
    pub headers: &'a HeaderMap,
    /// The caller, as its API key says.
    pub caller: &'a Caller,
    /// The call's span.
    pub span: &'a Span,
}

/// What a call asks: a gate, and the attributes that a route read from the client's request.
struct Question {
    gate: String,
    attributes: Vec<(String, String)>,
    /// The client's request, if no route matches it.
    unrouted: Option<String>,
}

/// Answers an authorize call.
pub async fn answer(front: &Front, call: &AuthorizeCall<'_>) -> Answer {
    match decide(front, call).await {
        Ok(decision) => render(front, &decision),
        Err(problem) => problem.answer(),
    }
}

async fn decide(front: &Front, call: &AuthorizeCall<'_>) -> Result<Decision, Problem> {
    let address = caller(front, call.peer, call.headers).address.to_string();
    let catalog = front.engine.catalog();
    let question = question(front, call, &catalog)?;
    let attributes = question.attributes.iter().map(|(name, value)| (&**name, &**value));
    let attributes = attributes.filter(|(name, _)| *name != "ip");
    let subject = attributes.chain([("ip", address.as_str())]).collect();
    let subject = call.caller.subject(subject)?;
    let check = Check::new(&question.gate, subject).namespace(call.caller.namespace());
    match front.decide(&check, Verb::Check).await {
        Err(Error::Refused(Refusal::UnknownGate(_))) if question.unrouted.is_some() => {
            Err(unknown_route(question.unrouted))
        }
        decided => {
            let decision = decided?;
            call.span.decided(&question.gate, &decision);
            Ok(decision)
        }
    }
}

/// The client, by the connection and the headers of trusted proxies.
pub fn caller(front: &Front, peer: IpAddr, headers: &HeaderMap) -> Client {
    let settings = &front.live.load().settings;
    let lines = settings.source.header().map(|name| header_lines(headers, name));
    client(peer, &lines.unwrap_or_default(), &settings.source, &settings.trusted_proxies)
}

fn question(
    front: &Front,
    call: &AuthorizeCall<'_>,
    catalog: &Catalog,
) -> Result<Question, Problem> {
    let described = match front.live.load().settings.trusts(call.peer) {
        true => DescribedRequest::read(call.method, call.uri, call.headers)?,
        false => None,
    };
    let gate = CallPath::split(call.uri.path()).and_then(|path| path.gate);
    match (gate, described) {
        (Some(gate), described) => of_gate(&decoded(gate)?, described, call.headers, catalog),
        (None, Some(described)) => of_routes(&described, call.headers, catalog),
        (None, None) => Err(no_gate()),
    }
}

/// The question of a call that names its gate: only attributes come from the client's request.
fn of_gate(
    gate: &str,
    described: Option<DescribedRequest>,
    headers: &HeaderMap,
    catalog: &Catalog,
) -> Result<Question, Problem> {
    let mut question = Question { gate: gate.to_owned(), attributes: Vec::new(), unrouted: None };
    let Some(described) = described else { return Ok(question) };
    let request = Request { method: &described.method, target: &described.target };
    if let Some((route, path)) = catalog.route_of_gate(gate, &request).map_err(ambiguous_path)? {
        question.attributes = attributes(route, &path, request.target, headers)?;
    }
    Ok(question)
}

/// The question of a call that leaves the gate to the routes.
fn of_routes(
    described: &DescribedRequest,
    headers: &HeaderMap,
    catalog: &Catalog,
) -> Result<Question, Problem> {
    let request = Request { method: &described.method, target: &described.target };
    let Some((route, path)) = catalog.route(&request).map_err(ambiguous_path)? else {
        let unrouted = Some(format!("{} {}", request.method, request.target.escape_debug()));
        return Ok(Question { gate: UNROUTED.to_owned(), attributes: Vec::new(), unrouted });
    };
    let attributes = attributes(route, &path, request.target, headers)?;
    Ok(Question { gate: route.gate.to_string(), attributes, unrouted: None })
}

/// The attributes that a route reads from a request.
fn attributes(
    route: &Route,
    path: &Path,
    target: &str,
    headers: &HeaderMap,
) -> Result<Vec<(String, String)>, Problem> {
    let query = target.split_once('?').map(|(_, query)| query);
    let mut attributes = Vec::new();
    for (name, from) in &route.set {
        let value = match from {
            Pick::Header(wanted) => header_once(headers, wanted)?,
            Pick::Query(wanted) => query_once(query, wanted)?,
            other => pick(other, path, |_| None, |_| None),
        };
        attributes.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(attributes)
}

fn decoded(gate: &str) -> Result<String, Problem> {
    decode(gate).map_err(|_| router::bad_path())
}

fn header_lines<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // An unreadable line must stop the walk over the hops, so it is not left out.
    headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?")).collect()
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

fn render(front: &Front, decision: &Decision) -> Answer {
    let status = status(decision);
    let settings = &front.live.load().settings;
    let denied = || denial::body(settings.denial, decision, status);
    let mut answer = match (!decision.allowed).then(denied).flatten() {
        Some((kind, body)) => typed(kind, body),
        None => Response::new(Full::new(Bytes::new())),
    };
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    fields::write(decision, settings.x_ratelimit, headers);
    let ticket = decision.ticket.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(ticket)) = ticket {
        headers.insert(TICKET, ticket);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn status(decision: &Decision) -> StatusCode {
    let named = decision.status.and_then(|status| StatusCode::from_u16(status).ok());
    match decision.reason {
        // Envoy's ext_authz lets a request pass on 200 alone.
        _ if decision.allowed => StatusCode::OK,
        Reason::Blocklisted => StatusCode::FORBIDDEN,
        Reason::Missing => StatusCode::BAD_REQUEST,
        Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => named.unwrap_or(StatusCode::TOO_MANY_REQUESTS),
    }
}
