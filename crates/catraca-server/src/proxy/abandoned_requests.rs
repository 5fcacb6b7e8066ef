//! Requests that go on without their clients, because a rule reads the response.
//!
//! Such a request uses a connection to an upstream, and no stream of its client: a client that
//! opens and cancels requests could have any number of them. They are counted by the address of
//! the client (of IPv6, by its network), and one that has too many gets no further request of this
//! kind until some have ended.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::http::StatusCode;
use parking_lot::Mutex;

use crate::http_wire::problem::Problem;

/// The most requests that go on without their client, for one address.
pub const ABANDONED_MAX: usize = 100;

/// The requests that go on without their clients.
#[derive(Debug, Default)]
pub struct AbandonedRequests {
    /// Only addresses that have some.
    counts: Mutex<HashMap<IpAddr, usize>>,
    /// The sum of the counts, for metrics.
    total: Arc<AtomicUsize>,
}

impl AbandonedRequests {
    /// None so far; `total` is the number for metrics.
    pub fn new(total: Arc<AtomicUsize>) -> Self {
        Self { counts: Mutex::default(), total }
    }

    /// Begins a request that goes on without its client, unless its address has too many.
    pub fn begin(self: &Arc<Self>, client: IpAddr) -> Result<Arc<ClientPresence>, Problem> {
        let count = self.counts.lock().get(&client).copied().unwrap_or(0);
        if count >= ABANDONED_MAX {
            return Err(too_many_abandoned());
        }
        let requests = Arc::clone(self);
        let abandoned = Mutex::default();
        Ok(Arc::new(ClientPresence { requests, client, abandoned }))
    }

    fn add(self: &Arc<Self>, client: IpAddr) -> AbandonedRequest {
        *self.counts.lock().entry(client).or_default() += 1;
        self.total.fetch_add(1, Ordering::Relaxed);
        AbandonedRequest { requests: Arc::clone(self), client }
    }
}

/// Counts one request until it is dropped.
#[derive(Debug)]
struct AbandonedRequest {
    requests: Arc<AbandonedRequests>,
    client: IpAddr,
}

impl Drop for AbandonedRequest {
    fn drop(&mut self) {
        self.requests.total.fetch_sub(1, Ordering::Relaxed);
        let mut counts = self.requests.counts.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// Whether the client of a request waits for its response. Shared by everything that works on the
/// request, which counts as abandoned from `on_gone` until the last of them has ended.
#[derive(Debug)]
pub struct ClientPresence {
    requests: Arc<AbandonedRequests>,
    client: IpAddr,
    /// Present when the client has gone.
    abandoned: Mutex<Option<AbandonedRequest>>,
}

impl ClientPresence {
    /// Notes that the client has gone.
    pub fn on_gone(&self) {
        let mut abandoned = self.abandoned.lock();
        if abandoned.is_none() {
            *abandoned = Some(self.requests.add(self.client));
        }
    }

    /// Whether the client has gone.
    pub fn is_gone(&self) -> bool {
        self.abandoned.lock().is_some()
    }
}

/// Notes that the client has gone if it is dropped before `end` is called.
pub struct ResponseWait(Option<Arc<ClientPresence>>);

impl ResponseWait {
    /// The client waits from now on.
    pub fn begin(presence: &Arc<ClientPresence>) -> Self {
        Self(Some(Arc::clone(presence)))
    }

    /// The response is there.
    pub fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for ResponseWait {
    fn drop(&mut self) {
        if let Some(presence) = &self.0 {
            presence.on_gone();
        }
    }
}

fn too_many_abandoned() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too-many-abandoned",
        "your address has cancelled too many requests that are still in progress; wait for \
         responses, or try again later",
    )
    .retry_after(1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn requests_count_by_address_from_the_hang_up_to_their_end() {
        let requests = Arc::new(AbandonedRequests::default());
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let begin = |last| requests.begin(address(last));
        let mut open: Vec<_> = (0..ABANDONED_MAX).map(|_| begin(1).unwrap()).collect();
        assert!(begin(1).is_ok());
        for presence in &open {
            let wait = ResponseWait::begin(presence);
            drop(wait);
            presence.on_gone();
        }
        assert!(begin(1).is_err());
        assert!(begin(2).is_ok());
        open.pop();
        assert!(begin(1).is_ok());
        open.clear();
        assert!(requests.counts.lock().is_empty());
        let presence = begin(1).unwrap();
        ResponseWait::begin(&presence).end();
        assert!(!presence.is_gone());
    }
}
