//! What probes and scrapers ask: is it alive, can it decide, and what did it do.
//!
//! Must not tell anything of a caller, nor, without a key, anything that is written in a catalog.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use catraca::memory::MemoryPool;
use schemars::JsonSchema;
use serde::Serialize;

use super::visit::Visit;
use super::{Front, words};
use crate::observe::scrape;

/// The text format that Prometheus and its kin read.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether it can decide.
#[derive(Serialize, JsonSchema)]
pub struct Readiness {
    ready: bool,
    /// The revision of the catalog in force.
    #[schemars(example = &words::REVISION)]
    revision: String,
    /// How many policies there are.
    #[schemars(example = 12)]
    policies: usize,
    /// What somebody should look at.
    problems: Vec<Ailment>,
}

/// Something that is not as it should be.
#[derive(Serialize, JsonSchema)]
pub struct Ailment {
    /// `stopping`, `catalog`, `restart`, `records`, `locks`, `store`, or a pool of memory that has
    /// no room: `counters`, `blocks`, `references` or `settled-markers`.
    #[schemars(example = &"catalog")]
    what: &'static str,
    /// Where in the catalog's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"shop.toml:7:10")]
    place: Option<String>,
    /// Why; in detail for those with a key.
    #[schemars(example = &"ask with a key, or read the log")]
    why: String,
}

/// `GET /healthz`: the process answers.
pub async fn healthy() -> Response<Body> {
    text("text/plain; charset=utf-8", "ok\n".to_owned())
}

/// `GET /readyz`: it can decide, by which catalog, and what somebody should look at.
pub async fn ready(Extension(visit): Extension<Arc<Visit>>, request: Request) -> Response<Body> {
    let front = &visit.shared.front;
    let (draining, catalog) = (visit.shared.is_draining(), front.engine.catalog());
    let body = Readiness {
        ready: !draining,
        revision: catalog.revision.to_string(),
        policies: catalog.policies.len(),
        problems: problems(front, draining, request.headers()),
    };
    let body = serde_json::to_value(&body).unwrap_or_default();
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
fn problems(front: &Front, draining: bool, headers: &HeaderMap) -> Vec<Ailment> {
    let known = front.live.load().guard.knows(headers);
    let told = |why| if known { why } else { "ask with a key, or read the log".to_owned() };
    let mut found = Vec::new();
    if draining {
        let why = "the server was told to stop".to_owned();
        found.push(Ailment { what: "stopping", place: None, why });
    }
    if let Some(trouble) = front.reloader.trouble() {
        let (place, why) = (Some(trouble.place.clone()), told(trouble.why.clone()));
        found.push(Ailment { what: "catalog", place, why });
    }
    let waiting = front.reloader.after_restart();
    if !waiting.is_empty() {
        let named = format!("these settings count from the next start on: {}", waiting.join(", "));
        found.push(Ailment { what: "restart", place: None, why: told(named) });
    }
    let health = front.records.as_ref().map(|records| records.health());
    if let Some(down) = health.and_then(|health| health.down) {
        found.push(Ailment { what: "records", place: None, why: told(down.to_string()) });
    }
    let left_out = front.blocks_left_out();
    if left_out > 0 {
        let why = format!(
            "{left_out} blocks of the records found no room at the start and do not count; raise \
             `[store] block_mib` and restart"
        );
        found.push(Ailment { what: "blocks", place: None, why });
    }
    let full = front.engine.store().full_pools();
    found.extend(full.into_iter().map(|pool| Ailment {
        what: pool.as_str(),
        place: None,
        why: full_pool(pool).to_owned(),
    }));
    if let Some(wait) = front.locks.starting() {
        let why = format!(
            "leases of the process before this one may be in force, so new ones are refused \
             (`locks-starting`) for {} s more; decisions are not concerned",
            wait.ceil_secs()
        );
        found.push(Ailment { what: "locks", place: None, why });
    }
    let shared = front.shared.as_ref().map(|shared| shared.stats());
    for why in shared.into_iter().flat_map(|stats| [stats.trouble, stats.danger]).flatten() {
        found.push(Ailment { what: "store", place: None, why: told(why) });
    }
    found
}

/// What a full pool of memory means for callers, and which setting gives it more room.
fn full_pool(pool: MemoryPool) -> &'static str {
    match pool {
        MemoryPool::Counters => {
            "the memory for counters was full within the last minute: new keys share one counter \
             per policy, and strikes and watched ratios of new keys are not counted; raise \
             `[store] counter_mib` and restart, or stop a flood of new keys"
        }
        MemoryPool::Blocks => {
            "the memory for blocks was full within the last minute: a block was not started; raise \
             `[store] block_mib` and restart, or release blocks"
        }
        MemoryPool::References => {
            "the memory for references was full within the last minute: the oldest were dropped \
             and can no longer be settled or credited; raise `[store] reference_mib` and restart, \
             or shorten `remember`"
        }
        MemoryPool::Marks => {
            "the memory for markers of settled tickets was full within the last minute: a settle \
             was refused; raise `[store] mark_mib` and restart, or shorten `hold`"
        }
    }
}

fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
