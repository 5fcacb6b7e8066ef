//! Forward-auth for reverse proxies: a decision as a status, headers and a body.
//!
//! The gate is `?gate=`, else the route of the request that the proxy describes; only proxies that
//! are trusted may describe one.
//! Must not believe a forwarding header of anybody else.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use catraca::core::address::Address;
use catraca::core::address::forwarded::{Client, client};
use catraca::core::catalog::Catalog;
use catraca::core::route::{Request, pick};
use catraca::{Check, Decision, Error, Reason, Refusal};
use http_body_util::Full;

use super::auth::Caller;
use super::decide::Verb;
use super::problem::{Answer, Problem, typed};
use super::{Front, denial, fields};
use crate::observe::traces::Span;

/// The gate of a request that no route takes: the catalog's default policy stands in.
const UNROUTED: &str = "unrouted";

/// Where proxies put the target of the request they ask about, and its method.
const TARGETS: [&str; 3] = ["x-forwarded-uri", "x-original-uri", "x-original-url"];
const METHODS: [&str; 2] = ["x-forwarded-method", "x-original-method"];

/// What a proxy tells of the request it asks about.
pub struct Asking<'a> {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// The method of the question itself.
    pub method: &'a Method,
    /// Its target.
    pub uri: &'a Uri,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Whose key it came with.
    pub caller: &'a Caller,
    /// The call's span.
    pub span: &'a Span,
}

/// Answers a proxy.
pub async fn answer(front: &Front, asking: &Asking<'_>) -> Answer {
    match decide(front, asking).await {
        Ok(decision) => render(front, &decision),
        Err(problem) => problem.answer(),
    }
}

async fn decide(front: &Front, asking: &Asking<'_>) -> Result<Decision, Problem> {
    let address = caller(front, asking.peer, asking.headers).address.to_string();
    let catalog = front.engine.catalog();
    let asked = asked(front, asking, &catalog)?;
    let attributes = asked.attributes.iter().map(|(name, value)| (&**name, &**value));
    let attributes = attributes.filter(|(name, _)| *name != "ip");
    let subject = attributes.chain([("ip", address.as_str())]).collect();
    let subject = asking.caller.subject(subject)?;
    let check = Check::new(&asked.gate, subject).namespace(asking.caller.namespace());
    match front.decide(&check, Verb::Check).await {
        Err(Error::Refused(Refusal::UnknownGate(_))) if asked.unrouted.is_some() => {
            Err(no_route(asked.unrouted))
        }
        decided => {
            let decision = decided?;
            asking.span.decided(&asked.gate, &decision);
            Ok(decision)
        }
    }
}

/// Who calls, by the connection and what trusted proxies say.
pub fn caller(front: &Front, peer: IpAddr, headers: &HeaderMap) -> Client {
    let settings = &front.live.load().settings;
    let lines = settings.source.header().map(|name| header_lines(headers, name));
    client(peer, &lines.unwrap_or_default(), &settings.source, &settings.trusted_proxies)
}

/// What a proxy's question comes to.
struct Asked {
    gate: String,
    /// Taken from the request by its route.
    attributes: Vec<(String, String)>,
    /// The request, when no route takes it.
    unrouted: Option<String>,
}

/// The gate and the attributes that its route takes from the request.
fn asked(front: &Front, asking: &Asking<'_>, catalog: &Catalog) -> Result<Asked, Problem> {
    if let Some(gate) = query(asking.uri.query(), "gate") {
        return Ok(Asked { gate, attributes: Vec::new(), unrouted: None });
    }
    let (method, target) = described(front, asking)?.ok_or_else(no_gate)?;
    let request = Request { method: &method, target: &target };
    let Some((route, path)) = catalog.route(&request) else {
        let unrouted = Some(format!("{method} {}", request.target.escape_debug()));
        return Ok(Asked { gate: UNROUTED.to_owned(), attributes: Vec::new(), unrouted });
    };
    let asked_for = target.split_once('?').map(|(_, query)| query);
    let picked = route.set.iter().filter_map(|(name, from)| {
        let header = |wanted: &str| header_text(asking.headers, wanted);
        let value = pick(from, &path, header, |wanted| query(asked_for, wanted));
        Some((name.to_string(), value?))
    });
    Ok(Asked { gate: route.gate.to_string(), attributes: picked.collect(), unrouted: None })
}

/// The method and target that a trusted proxy describes.
fn described(front: &Front, asking: &Asking<'_>) -> Result<Option<(String, String)>, Problem> {
    let peer = Address::from_ip(asking.peer);
    if !front.live.load().settings.trusted_proxies.iter().any(|range| range.contains(&peer)) {
        return Ok(None);
    }
    let Some(target) = single(asking.headers, &TARGETS)? else { return Ok(None) };
    let method = single(asking.headers, &METHODS)?;
    Ok(Some((method.unwrap_or_else(|| asking.method.to_string()), path_of(&target).to_owned())))
}

/// The first of these headers that is there; one that is there twice is not believed.
fn single(headers: &HeaderMap, names: &[&str]) -> Result<Option<String>, Problem> {
    let Some(name) = names.iter().find(|name| headers.contains_key(**name)) else {
        return Ok(None);
    };
    let twice = headers.get_all(*name).iter().nth(1).is_some();
    match header_text(headers, name).filter(|_| !twice) {
        Some(text) => Ok(Some(text)),
        None => Err(Problem::bad(
            "ambiguous-request",
            format!("`{name}` must be there once and readable; let the proxy replace it"),
        )),
    }
}

/// Some proxies send a whole address where others send its path.
fn path_of(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    if target.starts_with('/') {
        return target;
    }
    rest.find('/').map_or("/", |at| &rest[at..])
}

fn no_route(request: Option<String>) -> Problem {
    let request = request.unwrap_or_default();
    let detail = format!(
        "no `[[route]]` takes {request}, and the catalog names no `default` policy; add one of them"
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-route", detail)
}

fn no_gate() -> Problem {
    Problem::bad(
        "no-gate",
        "name a gate with `?gate=NAME`, or send X-Forwarded-Method and X-Forwarded-Uri from an \
         address in `[network] trusted_proxies`, so that a `[[route]]` can be found",
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
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn status(decision: &Decision) -> StatusCode {
    let named = decision.status.and_then(|status| StatusCode::from_u16(status).ok());
    match decision.reason {
        _ if decision.allowed => StatusCode::NO_CONTENT,
        Reason::Blocklisted => StatusCode::FORBIDDEN,
        Reason::Missing => StatusCode::BAD_REQUEST,
        Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => named.unwrap_or(StatusCode::TOO_MANY_REQUESTS),
    }
}

fn query(query: Option<&str>, wanted: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query?.as_bytes());
    pairs.into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

fn header_lines<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // An unreadable line must stop the walk, not vanish from it.
    headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?")).collect()
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
