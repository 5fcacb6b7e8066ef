//! A limiter whose answers take time: checks and settles that were started are finished.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use catraca::settlement::{CreditResult, Settlement};
use catraca::tower::RateLimitLayer;
use catraca::{Check, Credit, Decision, Engine, Error, Limiter, Settle};
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::Notify;
use tower::{Layer, ServiceExt, service_fn};

use crate::helpers::{engine, remaining, request, send};

const LOOKUP: &str = r#"
[policy.lookup]
by     = ["ip"]
bucket = { size = 100, refill = "1 per 1h" }
cost   = { "200" = 3, none = 7, default = 0 }
"#;

/// Takes a second for every operation, as over a network.
#[derive(Clone)]
struct WaitingLimiter {
    engine: Arc<Engine>,
    settled: Arc<Notify>,
}

async fn wait() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

impl Limiter for WaitingLimiter {
    async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let decision = self.engine.check(check).await;
        wait().await;
        decision
    }

    async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.engine.peek(check).await
    }

    async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        wait().await;
        let settlement = self.engine.settle(call).await;
        self.settled.notify_one();
        settlement
    }

    async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        self.engine.credit(call).await
    }
}

fn limiter() -> WaitingLimiter {
    WaitingLimiter { engine: engine(LOOKUP).0, settled: Arc::default() }
}

/// Waits for a settle, in virtual time.
async fn wait_settled(limiter: &WaitingLimiter) {
    let settled = limiter.settled.notified();
    tokio::time::timeout(Duration::from_secs(5), settled).await.expect("a settle");
}

#[tokio::test(start_paused = true)]
async fn a_settle_that_waits_goes_on_after_the_body() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone(), "lookup").by_peer_address();
    let response = send(&layer, request()).await;
    // As a server does it whose threads are not of the runtime.
    std::thread::spawn(move || drop(response)).join().unwrap();
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(99), "the settle waits");
    wait_settled(&limiter).await;
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(97));
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_cancelled_is_finished_and_settled() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone(), "lookup").by_peer_address();
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
    }));
    {
        let future = pin!(service.oneshot(request()));
        assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(99), "the store has charged it");
    wait_settled(&limiter).await;
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(93), "an outcome without a status");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_cancelled_outside_the_runtime_is_settled_too() {
    let limiter = limiter();
    let layer = RateLimitLayer::new(limiter.clone(), "lookup").by_peer_address();
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
    }));
    let mut future = Box::pin(service.oneshot(request()));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    std::thread::spawn(move || drop(future)).join().unwrap();
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(99), "the store has charged it");
    wait_settled(&limiter).await;
    assert_eq!(remaining(&limiter.engine, "lookup"), Some(93), "an outcome without a status");
}
