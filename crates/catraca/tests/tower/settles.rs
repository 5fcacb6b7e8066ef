//! When a check is settled: at the end of the body, and however the request ends before it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use catraca::tower::RateLimitLayer;
use catraca::{Decision, Engine, ManualClock, Span};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use tower::{Layer, ServiceExt, service_fn};

use crate::helpers::{body_of, call, engine, remaining, request, respond, send, send_to};
use crate::log_lines::LogLines;

const LOOKUP: &str = r#"
[policy.lookup]
by     = ["ip"]
bucket = { size = 100, refill = "1 per 1h" }
cost   = { "200" = 3, "404" = 20, none = 7, default = 0 }
"#;

/// A body of several frames that does not know its end in advance.
struct StreamedBody(VecDeque<Result<Bytes, io::ErrorKind>>);

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = io::ErrorKind;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::ErrorKind>>> {
        Poll::Ready(self.0.pop_front().map(|part| part.map(Frame::data)))
    }
}

fn streamed(parts: &[&'static str]) -> Response<StreamedBody> {
    let parts = parts.iter().map(|part| Ok(Bytes::from(*part)));
    Response::new(StreamedBody(parts.collect()))
}

fn lookup() -> (Arc<Engine>, ManualClock, RateLimitLayer<Arc<Engine>>) {
    let (engine, clock) = engine(LOOKUP);
    let layer = RateLimitLayer::new(engine.clone(), "lookup").by_peer_address();
    (engine, clock, layer)
}

/// A ticket that stays in the process is not sealed, which is most of the time of a settle.
#[tokio::test]
async fn the_ticket_stays_with_the_layer() {
    let (engine, _clock, layer) = lookup();
    let service = layer.layer(service_fn(|request: Request<()>| async move {
        let decision = request.extensions().get::<Decision>().unwrap();
        assert_eq!((decision.allowed, &decision.ticket), (true, &None));
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    }));
    body_of(service.oneshot(request()).await.unwrap()).await;
    assert_eq!(remaining(&engine, "lookup"), Some(97));
}

#[tokio::test]
async fn the_status_decides_the_price() {
    let (engine, _clock, layer) = lookup();
    body_of(send_to(&layer, request(), || respond(404, "no")).await).await;
    assert_eq!(remaining(&engine, "lookup"), Some(80));
    body_of(send_to(&layer, request(), || respond(500, "oh")).await).await;
    assert_eq!(remaining(&engine, "lookup"), Some(80));
}

#[tokio::test]
async fn a_check_is_settled_when_the_body_ends_and_not_before() {
    let (engine, _clock, layer) = lookup();
    let mut response = send_to(&layer, request(), || streamed(&["a", "b"])).await;
    assert_eq!(remaining(&engine, "lookup"), Some(99), "one unit is held");
    let body = response.body_mut();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
    assert_eq!(remaining(&engine, "lookup"), Some(99));
    assert!(body.frame().await.is_none());
    assert_eq!(remaining(&engine, "lookup"), Some(97), "200 costs 3");
    drop(response);
    assert_eq!(remaining(&engine, "lookup"), Some(97), "once");
}

#[tokio::test]
async fn the_last_frame_of_a_known_length_settles() {
    let (engine, _clock, layer) = lookup();
    let mut response = send(&layer, request()).await;
    response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(remaining(&engine, "lookup"), Some(97), "before the client has the last byte");
    let empty = send_to(&layer, request(), || Response::new(Empty::<Bytes>::new())).await;
    assert_eq!(remaining(&engine, "lookup"), Some(94));
    drop(empty);
}

#[tokio::test]
async fn a_client_that_goes_away_pays_for_the_status() {
    let (engine, _clock, layer) = lookup();
    let mut response = send_to(&layer, request(), || streamed(&["a", "b"])).await;
    response.body_mut().frame().await.unwrap().unwrap();
    // A thread without a runtime.
    std::thread::spawn(move || drop(response)).join().unwrap();
    assert_eq!(remaining(&engine, "lookup"), Some(97));
}

#[tokio::test]
async fn a_body_that_fails_is_settled_with_its_status() {
    let (engine, _clock, layer) = lookup();
    let broken = || Response::new(StreamedBody([Err(io::ErrorKind::BrokenPipe)].into()));
    let mut response = send_to(&layer, request(), broken).await;
    assert!(response.body_mut().frame().await.unwrap().is_err());
    assert_eq!(remaining(&engine, "lookup"), Some(97));
}

#[tokio::test]
async fn an_error_of_the_service_has_no_status() {
    let (engine, _clock, layer) = lookup();
    let failing = service_fn(|_: Request<()>| async {
        Err::<Response<Full<Bytes>>, _>(io::Error::other("no"))
    });
    assert!(call(&layer, failing, request()).await.is_err());
    assert_eq!(remaining(&engine, "lookup"), Some(93), "`none` costs 7");
}

#[tokio::test]
async fn a_panic_of_the_service_has_no_status() {
    let (engine, _clock, layer) = lookup();
    let panicking = service_fn(|_: Request<()>| async { panic!("expected by the test") });
    let service = layer.layer(panicking);
    let task = tokio::spawn(async move {
        let _: Result<_, Infallible> = service.oneshot(request()).await.map(body_of_full);
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(remaining(&engine, "lookup"), Some(93));
}

/// States the type of a response that never comes.
fn body_of_full(_: Response<catraca::tower::LimitedBody<Full<Bytes>>>) {}

#[tokio::test]
async fn a_request_that_is_cancelled_has_no_status() {
    let (engine, _clock, layer) = lookup();
    let waiting = service_fn(|_: Request<()>| {
        std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>()
    });
    let service = layer.layer(waiting);
    {
        let future = pin!(service.clone().oneshot(request()));
        assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(remaining(&engine, "lookup"), Some(99));
    }
    assert_eq!(remaining(&engine, "lookup"), Some(93));
    drop(service.oneshot(request()));
    assert_eq!(remaining(&engine, "lookup"), Some(93), "a future that is not polled is free");
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_body_ends() {
    let (engine, _clock) = engine("[policy.busy]\n by = ['ip']\n inflight = 1");
    let layer = RateLimitLayer::new(engine, "busy").by_peer_address();
    let first = send_to(&layer, request(), || streamed(&["a"])).await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = send(&layer, request()).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(first.into_body().collect().await.is_ok());
    assert_eq!(send(&layer, request()).await.status(), StatusCode::OK);
    // That response was dropped, and its lease is back too.
    assert_eq!(send(&layer, request()).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_response_that_outlives_its_ticket_is_reported_once() {
    let (log, _guard) = LogLines::capture();
    let (engine, clock, layer) = lookup();
    let service =
        layer.layer(service_fn(|_: Request<()>| async { Ok::<_, Infallible>(respond(404, "no")) }));
    for _ in 0..2 {
        let response = service.clone().oneshot(request()).await.unwrap();
        clock.advance(Span::from_secs(61));
        drop(response);
    }
    assert_eq!(remaining(&engine, "lookup"), Some(98), "what was held is kept");
    let text = log.text();
    assert_eq!(text.matches("set `hold` of the policy").count(), 1, "{text}");
}
