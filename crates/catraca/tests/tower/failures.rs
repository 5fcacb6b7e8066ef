//! A limiter that fails, and layers that are not set up correctly.

use std::sync::Arc;

use catraca::memory::{Memory, MemoryOptions};
use catraca::settlement::{CreditResult, Settlement};
use catraca::store::{Store, StoreError, When};
use catraca::tower::{FailureMode, RateLimitLayer};
use catraca::{
    Catalog, Check, Credit, Decision, Engine, Error, Limiter, ManualClock, Refusal, Settle,
};
use catraca_core::batch::{Batch, Reply};
use http::{Request, Response, StatusCode};

use crate::helpers::{engine, header, json_of, request, send};
use crate::log_lines::LogLines;

const LOGIN: &str = "[policy.login]\n by = ['ip']\n window = '2 per 1m'";

/// A store without a connection.
struct FailingStore;

impl Store for FailingStore {
    fn apply(&self, _: &Batch, _: When) -> Result<Reply, StoreError> {
        Err(StoreError::unavailable("connection to db.internal lost"))
    }
}

fn failing_engine() -> Engine<FailingStore> {
    Engine::builder(Catalog::parse(LOGIN).unwrap()).build_with_store(FailingStore)
}

#[tokio::test]
async fn a_failing_limiter_closes_the_gate_unless_it_is_set_to_open() {
    // A thread without a subscriber could turn the log line off for the tests that read it.
    let (_lines, _guard) = LogLines::capture();
    let layer = RateLimitLayer::new(failing_engine(), "login").by_peer_address();
    let closed = send(&layer, request()).await;
    assert_eq!(closed.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&closed, "retry-after"), Some("1"));
    assert_eq!(header(&closed, "cache-control"), Some("no-store"));
    assert_eq!(header(&closed, "content-type"), Some("application/problem+json"));
    let problem = json_of(closed).await;
    assert_eq!(problem, unchecked_problem());
    assert!(!problem.to_string().contains("db.internal"), "clients see no name of a server");

    let open = send(&layer.clone().on_failure(FailureMode::Open), request()).await;
    assert_eq!((open.status(), header(&open, "ratelimit")), (StatusCode::OK, None));
}

/// Regression: while the limiter failed, every request wrote a line.
#[tokio::test]
async fn a_limiter_that_keeps_failing_writes_one_line_of_each_kind() {
    let (lines, _guard) = LogLines::capture();
    let layer = RateLimitLayer::new(failing_engine(), "login").by_peer_address();
    let open = layer.clone().on_failure(FailureMode::Open);
    for _ in 0..100 {
        send(&layer, request()).await;
        send(&open, request()).await;
    }
    let text = lines.text();
    let count = |message: &str| text.lines().filter(|line| line.contains(message)).count();
    assert_eq!((count("was rejected"), count("passed unchecked")), (1, 1), "{text}");
    assert!(text.contains("connection to db.internal lost"), "{text}");
}

/// Regression: a misspelt name was left out without a word, and the rules that read it never
/// matched.
#[tokio::test]
async fn a_name_that_no_response_can_have_is_a_warning() {
    let (lines, _guard) = LogLines::capture();
    let layer = RateLimitLayer::new(failing_engine(), "login").by_peer_address();
    let layer = layer.outcome_headers(["x-score", "x score"]);
    drop(layer.outcome_event_fields(["body.usage.total_tokens", "usage.total_tokens"]));
    let text = lines.text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("x score") && text.contains("usage.total_tokens"), "{text}");
}

/// The guards of all clients respond with this problem.
fn unchecked_problem() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../../sdk/testdata/unchecked.json")).unwrap()
}

#[cfg(feature = "client")]
#[tokio::test]
async fn a_server_that_does_not_answer_is_a_503_unless_a_fail_mode_decides() {
    use catraca::{Client, FailMode};

    // No server listens there.
    let client = Client::builder("http://127.0.0.1:1").build().unwrap();
    let layer = |client: Client| RateLimitLayer::new(client, "login").by_peer_address();
    let unchecked = send(&layer(client.clone()), request()).await;
    assert_eq!(unchecked.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&unchecked, "retry-after"), Some("1"));
    assert_eq!(json_of(unchecked).await, unchecked_problem());
    let open = send(&layer(client.with_fail_mode(FailMode::Open)), request()).await;
    assert_eq!((open.status(), header(&open, "catraca-degraded")), (StatusCode::OK, Some("?1")));
    let closed = send(&layer(client.with_fail_mode(FailMode::Closed)), request()).await;
    assert_eq!(closed.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json_of(closed).await["reason"], "unavailable");
}

#[tokio::test]
async fn an_own_response_to_a_failure_gets_retry_after_too() {
    let layer = RateLimitLayer::new(failing_engine(), "login")
        .by_peer_address()
        .respond(|rejection, _| Response::new(rejection.code().into()));
    let own = send(&layer, request()).await;
    assert_eq!(header(&own, "retry-after"), Some("1"));
    let mut call = request();
    let kind = http::HeaderValue::from_static("application/grpc");
    call.headers_mut().insert("content-type", kind);
    let call = send(&layer.grpc(), call).await;
    assert_eq!(header(&call, "grpc-status"), Some("14"));
    assert_eq!(header(&call, "grpc-retry-pushback-ms"), Some("1000"));
}

#[tokio::test]
async fn an_invalid_check_never_opens_the_gate() {
    let (engine, _clock) = engine(LOGIN);
    let layer = |gate: &str| {
        let layer = RateLimitLayer::new(engine.clone(), gate).on_failure(FailureMode::Open);
        layer.by_header("ip", "x-ip")
    };
    let unknown = send(&layer("lgoin"), request()).await;
    assert_eq!(unknown.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(json_of(unknown).await["code"], "unknown-gate");
    let mut bad = request();
    bad.headers_mut().insert("x-ip", http::HeaderValue::from_static("localhost"));
    let bad = send(&layer("login"), bad).await;
    assert_eq!(bad.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(bad).await["code"], "bad-attribute");
}

/// A server that refuses every call.
#[derive(Clone)]
struct RefusingServer {
    code: &'static str,
}

impl RefusingServer {
    fn refuse<T>(&self) -> Result<T, Error> {
        let detail = "the server refuses the key of this client".to_owned();
        Err(Refusal::ByServer { code: self.code.to_owned(), detail }.into())
    }
}

impl Limiter for RefusingServer {
    async fn check(&self, _: &Check<'_>) -> Result<Decision, Error> {
        self.refuse()
    }

    async fn peek(&self, _: &Check<'_>) -> Result<Decision, Error> {
        self.refuse()
    }

    async fn settle(&self, _: &Settle<'_>) -> Result<Settlement, Error> {
        self.refuse()
    }

    async fn credit(&self, _: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        self.refuse()
    }
}

/// Regression: a wrong API key, or a gate that the server does not have, was a 400 for the client,
/// and nothing was logged.
#[tokio::test]
async fn what_a_server_refuses_is_a_mistake_of_the_program_unless_it_is_about_values() {
    for (code, status) in [
        ("unauthorized", StatusCode::INTERNAL_SERVER_ERROR),
        ("unknown-gate", StatusCode::INTERNAL_SERVER_ERROR),
        ("", StatusCode::INTERNAL_SERVER_ERROR),
        ("bad-attribute", StatusCode::BAD_REQUEST),
    ] {
        let (lines, _guard) = LogLines::capture();
        let layer = RateLimitLayer::new(RefusingServer { code }, "login").by_peer_address();
        let response = send(&layer.on_failure(FailureMode::Open), request()).await;
        assert_eq!(response.status(), status, "{code}");
        let problem = json_of(response).await;
        assert_eq!(problem["code"], "refused-by-server");
        let is_logged = lines.text().contains("refuses the key");
        let is_shown = problem["detail"].as_str().unwrap().contains("refuses the key");
        let is_client = status == StatusCode::BAD_REQUEST;
        assert_eq!((is_logged, is_shown), (!is_client, is_client), "{code}");
    }
}

#[tokio::test]
async fn a_missing_peer_address_is_named_with_its_fix() {
    let (engine, _clock) = engine(LOGIN);
    let layer = RateLimitLayer::new(engine, "login").by_peer_address();
    let response = send(&layer, Request::new(())).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let problem = json_of(response).await;
    assert_eq!(problem["code"], "no-peer-address");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("into_make_service_with_connect_info::<SocketAddr>()"), "{detail}");
}

#[tokio::test]
async fn memory_without_room_follows_the_policy() {
    let catalog = Catalog::parse(&format!("{LOGIN}\n on_failure = 'closed'")).unwrap();
    let clock = ManualClock::default();
    let options = MemoryOptions { shards: 1, budget_bytes: 64 << 10, ..MemoryOptions::default() };
    let memory = Memory::new(options, Arc::new(clock.clone()));
    let engine = Engine::builder(catalog).clock(clock).build_with_store(memory);
    let has_room = |index: &u32| {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + index).to_string();
        !engine.check(&Check::new("login", [("ip", address.as_str())])).unwrap().degraded
    };
    assert!((0..100_000).take_while(has_room).count() < 100_000);
    let layer = RateLimitLayer::new(engine, "login").by_peer_address();
    let denied = send(&layer, request()).await;
    assert_eq!(denied.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(json_of(denied).await["reason"], "unavailable");
}
