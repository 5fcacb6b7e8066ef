//! Decisions as responses: statuses, headers, bodies, and what the handler sees.

use catraca::tower::{RateLimitLayer, Rejection};
use catraca::{Decision, Span};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};

use crate::helpers::{
    CLIENT, body_of, call, engine, header, json_of, remaining, request, request_from, respond,
    send, send_to,
};

const LOGIN: &str = "[policy.login]\n by = ['ip']\n window = '2 per 1m'\n message = 'Slow down.'";

#[tokio::test]
async fn admitted_and_denied_requests_get_the_headers() {
    let (engine, clock) = engine(LOGIN);
    let layer = RateLimitLayer::new(engine, "login").by_peer_address();

    let admitted = send(&layer, request()).await;
    assert_eq!(admitted.status(), StatusCode::OK);
    assert_eq!(header(&admitted, "ratelimit-policy"), Some("\"login\";q=2;w=60"));
    assert_eq!(header(&admitted, "ratelimit"), Some("\"login\";r=1;t=60"));
    assert_eq!(header(&admitted, "retry-after"), None);
    assert_eq!(body_of(admitted).await, "hello");

    send(&layer, request()).await;
    clock.advance(Span::from_millis(500));
    let denied = send(&layer, request()).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&denied, "ratelimit"), Some("\"login\";r=0;t=60"));
    assert_eq!(header(&denied, "retry-after"), Some("60"), "59.5 seconds are rounded up");
    assert_eq!(header(&denied, "cache-control"), Some("no-store"));
    assert_eq!(header(&denied, "content-type"), Some("application/problem+json"));
    let problem = json_of(denied).await;
    assert_eq!(problem["detail"], "Slow down.");
    assert_eq!(problem["violated-policies"][0], "login");
    assert_eq!(problem["retry_after"], 60);

    let other = send(&layer, request_from("203.0.113.9")).await;
    assert_eq!(other.status(), StatusCode::OK, "another address has a counter of its own");
}

#[tokio::test]
async fn a_denied_request_does_not_reach_the_service() {
    let (engine, _clock) = engine("[policy.login]\n by = ['ip']\n window = '1 per 1m'");
    let layer = RateLimitLayer::new(engine, "login").by_peer_address();
    send(&layer, request()).await;
    let denied = send_to(&layer, request(), || -> Response<Full<_>> { panic!("called") }).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn lists_blocks_and_missing_attributes_have_their_statuses() {
    let catalog = r#"
        [policy.pay]
        by  = ["ip"]
        ban = [ { when = "status == 402", for = "10m", status = 451, message = "Wait." } ]

        [policy.strict]
        by         = ["account"]
        window     = "1 per 1m"
        on_missing = "deny"

        [policy.plain]
        by     = ["account"]
        window = "1 per 1m"

        [policy.lenient]
        by         = ["account"]
        window     = "1 per 1m"
        on_missing = "skip"

        [[blocklist]]
        range = "203.0.113.9/32"
    "#;
    let (engine, _clock) = engine(catalog);
    let layer = |gate: &str| RateLimitLayer::new(engine.clone(), gate).by_peer_address();

    let listed = send(&layer("pay"), request_from("203.0.113.9")).await;
    assert_eq!(listed.status(), StatusCode::FORBIDDEN);
    let unlisted = send(&layer("pay").without_lists(), request_from("203.0.113.9")).await;
    assert_eq!(unlisted.status(), StatusCode::OK);

    body_of(send_to(&layer("pay"), request(), || respond(402, "declined")).await).await;
    let banned = send(&layer("pay"), request()).await;
    assert_eq!(banned.status(), StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS);
    assert_eq!(header(&banned, "retry-after"), Some("600"));
    assert_eq!(json_of(banned).await["detail"], "Wait.");

    let denied = send(&layer("strict"), request()).await;
    assert_eq!(denied.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(denied).await["reason"], "missing");
    let refused = send(&layer("plain"), request()).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_of(refused).await["code"], "missing-attribute");
    let skipped = send(&layer("lenient"), request()).await;
    assert_eq!(skipped.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_handler_sees_the_decision() {
    let (engine, _clock) = engine(LOGIN);
    let layer = RateLimitLayer::new(engine, "login").by_peer_address();
    let service = service_fn(|request: Request<()>| async move {
        let decision = request.extensions().get::<Decision>().unwrap();
        let text = format!("{:?} left", decision.remaining);
        Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from(text)))
    });
    let response = call(&layer, service, request()).await.unwrap();
    assert_eq!(body_of(response).await, "Some(1) left");
}

#[tokio::test]
async fn gate_cost_and_namespace_depend_on_the_settings() {
    let catalog = "[policy.read]\n by = ['ip']\n window = '9 per 1m'\n\
                   [policy.write]\n by = ['ip']\n window = '9 per 1m'";
    let (engine, _clock) = engine(catalog);
    let gate = |request: &Parts| match request.method.as_str() {
        "GET" => Some("read".to_owned()),
        "POST" => Some("write".to_owned()),
        _ => None,
    };
    let cost = |request: &Parts| request.headers.get("cost")?.to_str().ok()?.parse().ok();
    let layer = RateLimitLayer::with_gate(engine.clone(), gate).by_peer_address().cost(cost);
    let with = |method: &str, cost: &'static str| {
        let mut request = request();
        *request.method_mut() = method.parse().unwrap();
        request.headers_mut().insert("cost", http::HeaderValue::from_static(cost));
        request
    };
    send(&layer, with("GET", "2")).await;
    send(&layer, with("POST", "5")).await;
    let unchecked = send(&layer, with("OPTIONS", "9")).await;
    assert_eq!(header(&unchecked, "ratelimit"), None, "a request without a gate is not checked");
    assert_eq!((remaining(&engine, "read"), remaining(&engine, "write")), (Some(7), Some(4)));
    let invalid = send(&layer, with("GET", "-1")).await;
    assert_eq!(invalid.status(), StatusCode::BAD_REQUEST);

    send(&layer.clone().namespace("other"), with("GET", "9")).await;
    assert_eq!(remaining(&engine, "read"), Some(7), "namespaces count apart");
}

#[tokio::test]
async fn a_responder_replaces_the_response_and_the_headers_stay() {
    let (engine, _clock) = engine("[policy.login]\n by = ['ip']\n window = '1 per 1m'");
    let layer = RateLimitLayer::new(engine, "login").by_peer_address().x_ratelimit_headers();
    let layer = layer.respond(|rejection: &Rejection, request: &Parts| {
        let reason = rejection.decision().unwrap().reason;
        let text = format!("{} {reason}", request.uri.path());
        Response::builder().status(StatusCode::CONFLICT).body(text.into()).unwrap()
    });
    let admitted = send(&layer, request()).await;
    assert_eq!(header(&admitted, "x-ratelimit-remaining"), Some("0"));
    let denied = send(&layer, request()).await;
    assert_eq!(denied.status(), StatusCode::CONFLICT);
    assert_eq!(header(&denied, "retry-after"), Some("60"));
    assert_eq!(body_of(denied).await, "/ over_limit");
}

#[tokio::test]
async fn the_headers_of_two_layers_are_one_list() {
    let catalog = "[policy.site]\n by = ['ip']\n window = '9 per 1m'\n\
                   [policy.login]\n by = ['ip']\n window = '2 per 1m'";
    let (engine, _clock) = engine(catalog);
    let layer = |gate: &str| RateLimitLayer::new(engine.clone(), gate).by_peer_address();
    let respond = service_fn(|_: Request<()>| async {
        Ok::<_, std::convert::Infallible>(respond(200, "hello"))
    });
    let service = layer("site").layer(layer("login").layer(respond));
    let response = service.oneshot(request()).await.unwrap();
    let lines = response.headers().get_all("ratelimit").iter();
    let lines: Vec<_> = lines.map(|line| line.to_str().unwrap()).collect();
    assert_eq!(lines, ["\"login\";r=1;t=60", "\"site\";r=8;t=60"]);
    assert_eq!(remaining(&engine, "login"), Some(1), "{CLIENT}");
}
