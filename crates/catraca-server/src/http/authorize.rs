//! Forward-auth for reverse proxies: a decision as a status, headers and a body.
//!
//! The gate is `?gate=`, else the route of the request that the proxy describes; only proxies that
//! are trusted may describe one. What decides and is there twice is refused: the upstream may read
//! the other one.
//! Must not believe a forwarding header of anybody else.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use catraca::core::address::Address;
use catraca::core::address::forwarded::{Client, client};
use catraca::core::catalog::{Catalog, Pick, Route};
use catraca::core::route::{Path, Request, pick};
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

/// Where whoever stands behind the proxy finds what to settle with.
const TICKET: HeaderName = HeaderName::from_static("catraca-ticket");

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
    if let Some(gate) = query(asking.uri.query(), "gate")? {
        return Ok(Asked { gate, attributes: Vec::new(), unrouted: None });
    }
    let (method, target) = described(front, asking)?.ok_or_else(no_gate)?;
    let request = Request { method: &method, target: &target };
    let Some((route, path)) = catalog.route(&request) else {
        let unrouted = Some(format!("{method} {}", request.target.escape_debug()));
        return Ok(Asked { gate: UNROUTED.to_owned(), attributes: Vec::new(), unrouted });
    };
    let attributes = picked(route, &path, &target, asking.headers)?;
    Ok(Asked { gate: route.gate.to_string(), attributes, unrouted: None })
}

/// The attributes that a route takes from a request.
fn picked(
    route: &Route,
    path: &Path,
    target: &str,
    headers: &HeaderMap,
) -> Result<Vec<(String, String)>, Problem> {
    let asked = target.split_once('?').map(|(_, query)| query);
    let mut attributes = Vec::new();
    for (name, from) in &route.set {
        let value = match from {
            Pick::Header(wanted) => header_once(headers, wanted)?,
            Pick::Query(wanted) => query(asked, wanted)?,
            other => pick(other, path, |_| None, |_| None),
        };
        attributes.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(attributes)
}

/// The method and target that a trusted proxy describes.
fn described(front: &Front, asking: &Asking<'_>) -> Result<Option<(String, String)>, Problem> {
    let peer = Address::from_ip(asking.peer);
    if !front.live.load().settings.trusted_proxies.iter().any(|range| range.contains(&peer)) {
        return Ok(None);
    }
    let target = single(asking.headers, &TARGETS, |target| path_of(target).to_owned())?;
    let method = single(asking.headers, &METHODS, str::to_owned)?;
    Ok(target.map(|target| (method.unwrap_or_else(|| asking.method.to_string()), target)))
}

/// What these headers say, of which a proxy sends one; the others may be the caller's own, so they
/// must not say anything else.
fn single(
    headers: &HeaderMap,
    names: &[&str],
    read: impl Fn(&str) -> String,
) -> Result<Option<String>, Problem> {
    let mut found: Option<(&str, String)> = None;
    for name in names {
        let Some(text) = header_once(headers, name)?.map(|text| read(&text)) else { continue };
        match &found {
            Some((first, said)) if *said != text => {
                let detail = format!(
                    "`{first}` and `{name}` do not agree; let the proxy send one of them and take \
                     the other out of what callers send"
                );
                return Err(Problem::bad("ambiguous-request", detail));
            }
            Some(_) => {}
            None => found = Some((name, text)),
        }
    }
    Ok(found.map(|(_, text)| text))
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
        _ if decision.allowed => StatusCode::NO_CONTENT,
        Reason::Blocklisted => StatusCode::FORBIDDEN,
        Reason::Missing => StatusCode::BAD_REQUEST,
        Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => named.unwrap_or(StatusCode::TOO_MANY_REQUESTS),
    }
}

/// What a query says once; said twice, nobody knows which one the upstream believes.
fn query(query: Option<&str>, wanted: &str) -> Result<Option<String>, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut values = pairs.filter(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    let value = values.next();
    match values.next() {
        None => Ok(value),
        Some(_) => Err(Problem::bad(
            "ambiguous-request",
            format!("`{wanted}` is in the query more than once, and decides; send it once"),
        )),
    }
}

fn header_lines<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    // An unreadable line must stop the walk, not vanish from it.
    headers.get_all(name).iter().map(|line| line.to_str().unwrap_or("?")).collect()
}

/// What a header says on its one line.
fn header_once(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    match (line.to_str(), lines.next()) {
        (Ok(text), None) => Ok(Some(text.to_owned())),
        _ => Err(Problem::bad(
            "ambiguous-request",
            format!("`{name}` must be there once and readable; let the proxy replace it"),
        )),
    }
}
