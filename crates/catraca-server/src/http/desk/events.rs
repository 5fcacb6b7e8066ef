//! The live feed as server-sent events.
//!
//! A listener that falls behind is told how much it missed and sent away; one that does not read
//! is cut off like any other. Must not keep the process from stopping.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::super::Front;
use super::super::feed::LISTENERS_MAX;
use super::super::problem::Problem;
use super::super::visit::{Phase, Visit};
use super::unknown_parameter;

/// A comment this often shows both ends that the other is there; well within any idle timeout.
const BEAT_MAX: Duration = Duration::from_secs(15);

/// `GET /v1/events`.
pub async fn events(
    State(front): State<Front>,
    Extension(visit): Extension<Arc<Visit>>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let query = query.unwrap_or_default();
    if let Some((name, _)) = form_urlencoded::parse(query.as_bytes()).next() {
        return unknown_parameter(&name, &[]).answer().map(Body::new);
    }
    let Some(receiver) = front.feed.listen() else {
        let detail = format!("{LISTENERS_MAX} listen already; come back later");
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-listeners", detail);
        return problem.answer().map(Body::new);
    };
    visit.begin_stream();
    let beat = (visit.shared.crowd.patience().idle / 3).min(BEAT_MAX);
    let first = Bytes::from_static(b": listening\n\n");
    let next = Box::pin(next(receiver, beat));
    let mut answer = Response::new(Body::new(Stream { visit, first: Some(first), next, beat }));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Where the feed ends, so does the connection: nobody has to look for the last chunk.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// What comes next, and the receiver for what comes after it, unless that was the last.
type Next = (Bytes, Option<Receiver<Bytes>>);

struct Stream {
    visit: Arc<Visit>,
    first: Option<Bytes>,
    next: Pin<Box<dyn Future<Output = Next> + Send>>,
    beat: Duration,
}

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.visit.is_stopping() {
            return Poll::Ready(None);
        }
        let bytes = match self.first.take() {
            Some(first) => first,
            None => match self.next.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready((bytes, after)) => {
                    let beat = self.beat;
                    self.next = match after {
                        Some(receiver) => Box::pin(next(receiver, beat)),
                        None => Box::pin(std::future::ready((Bytes::new(), None))),
                    };
                    bytes
                }
            },
        };
        if bytes.is_empty() {
            return Poll::Ready(None);
        }
        // The connection is at work again: it has as long to take this as any answer.
        self.visit.enter(Phase::Answer);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

async fn next(mut receiver: Receiver<Bytes>, beat: Duration) -> Next {
    match tokio::time::timeout(beat, receiver.recv()).await {
        Ok(Ok(event)) => (event, Some(receiver)),
        Err(_) => (Bytes::from_static(b": still here\n\n"), Some(receiver)),
        Ok(Err(RecvError::Closed)) => (Bytes::new(), None),
        Ok(Err(RecvError::Lagged(missed))) => {
            let told = format!("event: missed\ndata: {{\"missed\":{missed}}}\n\n");
            (Bytes::from(told), None)
        }
    }
}
