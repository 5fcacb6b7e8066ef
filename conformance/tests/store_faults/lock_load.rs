//! Workers that acquire, hold and release locks: a kind with `failover_grace` and one without.
//!
//! Every second lease is held for most of its TTL, so that a lease that the store has lost is still
//! held when another caller gets the name.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::http_client::HttpClient;
use super::load::{LoadState, NodeWorker};
use super::lock_history::{LockHistory, ObservedGrant, RefusedLock};
use super::node::TTL_MS;

/// Names of each kind.
pub const NAMES: usize = 4;
/// Workers of each kind on each node.
const WORKERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(80);
const SHORT_HOLD: Duration = Duration::from_millis(150);
/// The end of a long hold, after the request was sent.
const LONG_HOLD: Duration = Duration::from_millis(TTL_MS * 9 / 10);

type Worker = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All workers over these nodes.
pub fn workers(state: &Arc<LoadState>, addresses: &[String]) -> Vec<Worker> {
    let mut workers: Vec<Worker> = Vec::new();
    for (node, address) in addresses.iter().enumerate() {
        for kind in ["payment", "resource"] {
            for number in 0..WORKERS {
                let first = node * WORKERS + number;
                workers.push(Box::pin(work(
                    (Arc::clone(state), address.clone(), node),
                    kind,
                    first,
                )));
            }
        }
    }
    workers
}

fn history<'s>(state: &'s LoadState, kind: &str) -> &'s Mutex<LockHistory> {
    if kind == "payment" { &state.payment } else { &state.resource }
}

async fn work((state, address, node): NodeWorker, kind: &'static str, first: usize) {
    let mut client = HttpClient::new(&address);
    let mut turn = first;
    while !state.is_stopped() {
        turn += 1;
        let name = format!("{kind}-{}", turn % NAMES);
        let sent = state.now();
        let body = json!({ "kind": kind, "key": name, "ttl_ms": TTL_MS }).to_string();
        let answer = client.call("POST /v1/locks/acquire", &body).await;
        let received = state.now();
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        match answer {
            Ok(granted) if status == 200 || status == 201 => {
                let end = sent + if turn.is_multiple_of(2) { SHORT_HOLD } else { LONG_HOLD };
                sleep(end.saturating_sub(received)).await;
                let until = state.now().min(sent + Duration::from_millis(TTL_MS));
                let fence = granted.body["fence"].as_u64().unwrap_or_default();
                let grant = ObservedGrant { name, sent, received, until, fence };
                history(&state, kind).lock().unwrap().grants.push(grant);
                let lease = json!({ "lease_id": granted.body["lease_id"] }).to_string();
                // A release that fails changes nothing: the lease ends with its TTL.
                let _ = client.call("POST /v1/locks/release", &lease).await;
            }
            _ if status == 409 => sleep(PAUSE).await,
            _ => {
                let is_answered = status != 0;
                let refused = RefusedLock { node, at: received, is_answered };
                history(&state, kind).lock().unwrap().refused.push(refused);
                sleep(PAUSE).await;
            }
        }
    }
}
