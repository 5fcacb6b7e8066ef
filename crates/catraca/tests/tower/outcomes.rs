//! What ban rules and prices see of a response.

use std::sync::Arc;

use bytes::Bytes;
use catraca::tower::{OUTCOME_BODY_BYTES_MAX, OutcomeReport, RateLimitLayer};
use catraca::{Engine, Outcome};
use http::{Request, Response, StatusCode, header, response};
use http_body_util::Full;
use tower::service_fn;

use crate::helpers::{body_of, call, engine, remaining, request, respond, send, send_to};

fn layer(catalog: &str) -> (Arc<Engine>, RateLimitLayer<Arc<Engine>>) {
    let (engine, _clock) = engine(catalog);
    (engine.clone(), RateLimitLayer::new(engine, "p").by_peer_address())
}

fn ban(when: &str) -> String {
    format!("[policy.p]\n by = ['ip']\n ban = [ {{ when = \"{when}\", for = '1h' }} ]")
}

/// Whether a response with these parts bans the client.
async fn bans(
    layer: &RateLimitLayer<Arc<Engine>>,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> bool {
    let body = body.into();
    let response = move || {
        let response = Response::builder().header(header::CONTENT_TYPE, content_type);
        response.header("x-abuse", "yes").body(Full::new(body.clone())).unwrap()
    };
    body_of(send_to(layer, request(), response).await).await;
    send(layer, request()).await.status() == StatusCode::TOO_MANY_REQUESTS
}

#[tokio::test]
async fn chosen_headers_are_part_of_the_outcome() {
    let (_, plain) = layer(&ban("headers['x-abuse'] == 'yes'"));
    assert!(!bans(&plain, "text/plain", "").await, "a header that was not chosen");
    assert!(bans(&plain.outcome_headers(["X-Abuse"]), "text/plain", "").await);
}

#[tokio::test]
async fn the_retry_after_of_the_service_blocks_its_caller() {
    let catalog = "[policy.p]\n by = ['ip']\n bucket = { size = 9, refill = '9 per 1s' }\n\
                   cost = { '429' = 'drain', default = 1 }";
    let (engine, layer) = layer(catalog);
    let busy = || {
        let mut response = respond(429, "busy");
        response.headers_mut().insert(header::RETRY_AFTER, 90.into());
        response
    };
    body_of(send_to(&layer, request(), busy).await).await;
    assert_eq!(remaining(&engine, "p"), Some(0));
    let denied = send(&layer, request()).await;
    assert_eq!(crate::helpers::header(&denied, "retry-after"), Some("90"));
}

#[tokio::test]
async fn a_json_body_is_read_while_it_passes() {
    let rule = ban("body.reject_id == 5");
    let (_, plain) = layer(&rule);
    assert!(!bans(&plain, "application/json", r#"{"reject_id":5}"#).await);
    for media_type in ["application/json; charset=utf-8", "application/problem+JSON"] {
        let (_, layer) = layer(&rule);
        let layer = layer.outcome_json_body();
        assert!(bans(&layer, media_type, r#"{"reject_id":5}"#).await, "{media_type}");
    }
    let layer = plain.outcome_json_body();
    assert!(!bans(&layer, "text/html", r#"{"reject_id":5}"#).await);
    assert!(!bans(&layer, "application/json", r#"{"reject_id":4}"#).await);
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_json_is_marked() {
    let text = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    let (_, truncated) = layer(&ban("body_truncated"));
    let truncated = truncated.outcome_json_body();
    assert!(!bans(&truncated, "application/json", text(OUTCOME_BODY_BYTES_MAX)).await);
    assert!(bans(&truncated, "application/json", text(OUTCOME_BODY_BYTES_MAX + 1)).await);
    for (media_type, body) in [("text/html", "<p>"), ("application/json", "{")] {
        let (_, invalid) = layer(&ban("body_invalid"));
        let invalid = invalid.outcome_json_body();
        assert!(!bans(&invalid, media_type, "").await, "an empty body is not invalid");
        assert!(bans(&invalid, media_type, body).await, "{media_type} {body}");
    }
}

#[tokio::test]
async fn a_handler_reports_cost_and_status() {
    let catalog = "[policy.p]\n by = ['ip']\n bucket = { size = 900, refill = '1 per 1h' }\n\
                   cost = 'reported'\n reserve = 100\n\
                   ban = [ { when = 'status == 401', for = '1h' } ]";
    let (engine, layer) = layer(catalog);
    let service = |report: fn(&OutcomeReport)| {
        service_fn(move |request: Request<()>| async move {
            report(request.extensions().get().unwrap());
            Ok::<_, std::convert::Infallible>(respond(200, "hello"))
        })
    };
    let held = call(&layer, service(|report| report.cost(30)), request()).await.unwrap();
    assert_eq!(remaining(&engine, "p"), Some(800), "the reserve is held");
    body_of(held).await;
    assert_eq!(remaining(&engine, "p"), Some(870));
    let login = call(&layer, service(|report| report.status(401)), request()).await.unwrap();
    assert_eq!(login.status(), StatusCode::OK);
    body_of(login).await;
    assert_eq!(send(&layer, request()).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_function_changes_the_outcome() {
    let catalog = "[policy.p]\n by = ['ip']\n bucket = { size = 900, refill = '1 per 1h' }\n\
                   cost = 'reported'";
    let (engine, layer) = layer(catalog);
    let layer = layer.outcome(|outcome: &mut Outcome, response: &response::Parts| {
        let cost = response.headers.get("x-cost").and_then(|cost| cost.to_str().ok());
        outcome.cost = cost.and_then(|cost| cost.parse().ok());
    });
    let costly = || {
        let mut response = respond(200, "hello");
        response.headers_mut().insert("x-cost", 45.into());
        response
    };
    body_of(send_to(&layer, request(), costly).await).await;
    assert_eq!(remaining(&engine, "p"), Some(855));
}

#[tokio::test]
async fn a_cost_is_read_from_the_events_of_a_complete_stream() {
    let catalog = "[policy.p]\n by = ['ip']\n bucket = { size = 1000, refill = '1 per 30d' }\n\
                   cost = { from = 'body.usage.total_tokens' }\n reserve = 100";
    let events = "data: {\"usage\":null}\n\ndata: {\"usage\":{\"total_tokens\":7}}\n\n";
    let stream = || {
        let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
        response.body(Full::new(Bytes::from(events))).unwrap()
    };
    let (engine, layer) = layer(catalog);
    let json_only = layer.clone().outcome_json_body();
    body_of(send_to(&json_only, request(), stream).await).await;
    assert_eq!(remaining(&engine, "p"), Some(900), "what was held");
    let reading = layer.outcome_event_fields(["body.usage.total_tokens"]);
    body_of(send_to(&reading, request(), stream).await).await;
    assert_eq!(remaining(&engine, "p"), Some(893));
    drop(send_to(&reading, request(), stream).await);
    assert_eq!(remaining(&engine, "p"), Some(793), "a stream that is not read to its end");
}
