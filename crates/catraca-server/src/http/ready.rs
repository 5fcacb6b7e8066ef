//! What probes and scrapers ask: is it alive, can it decide, and what did it do.
//!
//! Must not tell anything of a caller, nor, without a key, anything that is written in a catalog.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::Front;
use super::visit::Visit;
use crate::observe::scrape;

/// The text format that Prometheus and its kin read.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /healthz`: the process answers.
pub async fn healthy() -> Response<Body> {
    text("text/plain; charset=utf-8", "ok\n".to_owned())
}

/// `GET /readyz`: it can decide, by which catalog, and what somebody should look at.
pub async fn ready(Extension(visit): Extension<Arc<Visit>>, request: Request) -> Response<Body> {
    let front = &visit.shared.front;
    let (draining, catalog) = (visit.shared.is_draining(), front.engine.catalog());
    let body = json!({
        "ready": !draining,
        "revision": &*catalog.revision,
        "policies": catalog.policies.len(),
        "problems": problems(front, draining, request.headers()),
    });
    let mut answer = text("application/json", body.to_string());
    if draining {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}

/// `GET /metrics`.
pub async fn metrics(Extension(visit): Extension<Arc<Visit>>) -> Response<Body> {
    text(OPEN_METRICS, scrape::text(&visit.shared.listening()))
}

/// Everything that is not as it should be. Whoever asks may have no key; then it is only said
/// where a catalog is wrong, and not what is written there.
fn problems(front: &Front, draining: bool, headers: &HeaderMap) -> Vec<Value> {
    let known = front.live.load().guard.knows(headers);
    let mut found = Vec::new();
    if draining {
        found.push(json!({ "what": "stopping", "why": "the server was told to stop" }));
    }
    if let Some(trouble) = front.reloader.trouble() {
        let why = if known { trouble.why.as_str() } else { "ask with a key, or read the log" };
        found.push(json!({ "what": "catalog", "place": trouble.place, "why": why }));
    }
    let health = front.records.as_ref().map(|records| records.health());
    if let Some(down) = health.and_then(|health| health.down) {
        let why = if known { &*down } else { "ask with a key, or read the log" };
        found.push(json!({ "what": "records", "why": why }));
    }
    found
}

fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
