//! Forward-auth for reverse proxies: a decision as a status, headers and a body.
//!
//! The gate is `?gate=`, else the route of the request that the proxy describes; only proxies that
//! are trusted may describe one.
//! Must not believe a forwarding header of anybody else.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use bytes::Bytes;
use catraca::core::address::forwarded::{Source, client};
use catraca::core::catalog::Catalog;
use catraca::core::route::{Request, pick};
use catraca::{Check, Decision, Reason};
use http_body_util::Full;

use super::problem::{Answer, Problem};
use super::{Front, fields};

/// The gate of a request that no route takes: the catalog's default policy stands in.
const UNROUTED: &str = "unrouted";

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
}

/// Answers a proxy.
pub fn answer(front: &Front, asking: &Asking<'_>) -> Answer {
    match decide(front, asking) {
        Ok(decision) => render(front, &decision),
        Err(problem) => problem.answer(),
    }
}

fn decide(front: &Front, asking: &Asking<'_>) -> Result<Decision, Problem> {
    let lines = header_lines(asking.headers, "x-forwarded-for");
    let who = client(asking.peer, &lines, &Source::XForwardedFor, &front.settings.trusted_proxies);
    let address = who.address.to_string();
    let catalog = front.engine.catalog();
    let (gate, mut attributes) = asked(front, asking, &catalog)?;
    attributes.retain(|(name, _)| name != "ip");
    attributes.push(("ip".to_owned(), address));
    let subject = attributes.iter().map(|(name, value)| (&**name, &**value)).collect();
    let check = Check { subject, ..Check::new(&gate, []) };
    Ok(front.engine.check(&check)?)
}

/// The gate and the attributes that its route takes from the request.
fn asked(
    front: &Front,
    asking: &Asking<'_>,
    catalog: &Catalog,
) -> Result<(String, Vec<(String, String)>), Problem> {
    if let Some(gate) = query(asking.uri.query(), "gate") {
        return Ok((gate, Vec::new()));
    }
    let described = described(front, asking).ok_or_else(no_gate)?;
    let request = Request { method: &described.0, target: &described.1 };
    let Some((route, path)) = catalog.route(&request) else {
        return Ok((UNROUTED.to_owned(), Vec::new()));
    };
    let target_query = described.1.split_once('?').map(|(_, query)| query.to_owned());
    let picked = route.set.iter().filter_map(|(name, from)| {
        let header = |wanted: &str| header_text(asking.headers, wanted);
        let value = pick(from, &path, header, |wanted| query(target_query.as_deref(), wanted));
        Some((name.to_string(), value?))
    });
    Ok((route.gate.to_string(), picked.collect()))
}

/// The method and target that a trusted proxy describes.
fn described(front: &Front, asking: &Asking<'_>) -> Option<(String, String)> {
    let peer = catraca::core::address::Address::from_ip(asking.peer);
    let trusted = front.settings.trusted_proxies.iter().any(|range| range.contains(&peer));
    let first = |names: [&str; 2]| names.iter().find_map(|n| header_text(asking.headers, n));
    let target = first(["x-forwarded-uri", "x-original-uri"]).filter(|_| trusted)?;
    let method = first(["x-forwarded-method", "x-original-method"]);
    Some((method.unwrap_or_else(|| asking.method.to_string()), target))
}

fn no_gate() -> Problem {
    Problem::bad(
        "no-gate",
        "name a gate with `?gate=NAME`, or send X-Forwarded-Method and X-Forwarded-Uri from an \
         address in `[network] trusted_proxies` so that a `[[route]]` can be found",
    )
}

fn render(front: &Front, decision: &Decision) -> Answer {
    let status = status(decision);
    let body = if decision.allowed { Vec::new() } else { denial(decision, status) };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    fields::write(decision, front.settings.x_ratelimit, headers);
    if !decision.allowed {
        let kind = axum::http::HeaderValue::from_static("application/problem+json");
        headers.insert(axum::http::header::CONTENT_TYPE, kind);
        let store = axum::http::HeaderValue::from_static("no-store");
        headers.insert(axum::http::header::CACHE_CONTROL, store);
    }
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

/// The denial as problem+json, with the problem types of the rate-limit headers draft.
fn denial(decision: &Decision, status: StatusCode) -> Vec<u8> {
    let kind = match decision.reason {
        Reason::Blocked => {
            "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
        }
        Reason::Unavailable => {
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
        }
        _ => "https://iana.org/assignments/http-problem-types#quota-exceeded",
    };
    let violated: Vec<&str> =
        decision.rows.iter().filter(|row| !row.allowed).map(|row| &*row.policy).collect();
    let body = serde_json::json!({
        "type": kind,
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": decision.message,
        "reason": decision.reason.as_str(),
        "policy": decision.policy.as_deref(),
        "violated-policies": violated,
        "retry_after": fields::retry_after(decision),
    });
    serde_json::to_vec(&body).unwrap_or_default()
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
