//! Bounds of what the requests in progress use: how many one client has, and how many bytes of
//! bodies are in memory.
//!
//! A request uses a connection to an upstream, also while its body is uploaded or its response is
//! read, and both may be slow. Without a bound, one client could have all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::http::StatusCode;
use parking_lot::Mutex;

use crate::http_wire::problem::Problem;

/// The most bytes of bodies that are collected for routes, over all requests.
const BODY_BYTES_MAX: usize = 256 << 20;

/// What the requests in progress use.
#[derive(Debug, Default)]
pub struct RequestLimits {
    /// Only addresses that have some.
    counts: Mutex<HashMap<IpAddr, usize>>,
    body_bytes: AtomicUsize,
}

impl RequestLimits {
    /// Counts a request of a client, unless it has `max` in progress, which is at
    /// least one.
    pub fn begin(self: &Arc<Self>, client: IpAddr, max: usize) -> Result<OpenRequest, Problem> {
        let mut counts = self.counts.lock();
        let count = counts.entry(client).or_default();
        if *count >= max {
            return Err(too_many_open());
        }
        *count += 1;
        Ok(OpenRequest { limits: Arc::clone(self), client })
    }

    /// Memory for a body, none of it used.
    pub fn memory(self: &Arc<Self>) -> BodyMemory {
        BodyMemory { limits: Arc::clone(self), bytes: 0 }
    }
}

/// Counts a request of a client until it is dropped.
#[derive(Debug)]
pub struct OpenRequest {
    limits: Arc<RequestLimits>,
    client: IpAddr,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut counts = self.limits.counts.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// The memory of a body that was collected, until it is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    limits: Arc<RequestLimits>,
    bytes: usize,
}

impl BodyMemory {
    /// Takes more bytes; false if too many are in use.
    pub fn try_take(&mut self, bytes: usize) -> bool {
        let used = self.limits.body_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        used + bytes <= BODY_BYTES_MAX
    }
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        self.limits.body_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn too_many_open() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too-many-open-requests",
        "your address has too many requests in progress; wait for responses, or try again later",
    )
    .retry_after(1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn requests_in_progress_count_by_address() {
        let limits = Arc::new(RequestLimits::default());
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let first = limits.begin(address(1), 2).unwrap();
        let second = limits.begin(address(1), 2).unwrap();
        assert!(limits.begin(address(1), 2).is_err());
        let other = limits.begin(address(2), 2).unwrap();
        drop(first);
        let third = limits.begin(address(1), 2).unwrap();
        drop((second, third, other));
        assert!(limits.counts.lock().is_empty());
    }

    #[test]
    fn bodies_share_their_memory() {
        let limits = Arc::new(RequestLimits::default());
        let mut large = limits.memory();
        assert!(large.try_take(BODY_BYTES_MAX - 10));
        let mut small = limits.memory();
        assert!(small.try_take(10));
        assert!(!small.try_take(1));
        drop(small);
        assert!(limits.memory().try_take(10));
        drop(large);
        assert_eq!(limits.body_bytes.load(Ordering::Relaxed), 0);
    }
}
