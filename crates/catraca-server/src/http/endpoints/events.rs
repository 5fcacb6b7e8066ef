//! `GET /v1/events`: the live feed as server-sent events.
//!
//! A listener that falls behind receives the number of events that it missed, and its stream
//! ends. One that does not read at all runs into the timeout of any response. A stream ends when
//! the client disconnects, which frees its slot, and when the server stops, so that it never delays
//! the stop.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either};
use hyper::body::Frame;
use hyper::http::{HeaderValue, Response, StatusCode, header};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Interval;

use crate::feed::{FeedEvent, LISTENERS_MAX, NAMESPACE_LISTENERS_MAX, Subscription};
use crate::http::bodies::problem::Problem;
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;
use crate::listener::{Connection, Phase};

/// The longest time without a byte: then a comment is sent, which keeps the connection from
/// looking idle and reveals a client that is gone.
const HEARTBEAT_MAX: Duration = Duration::from_secs(15);
/// How often the connection of a listener is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// `GET /v1/events`.
pub async fn events(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let namespace = request.caller.bound_namespace();
    let subscription = request.context().feed.subscribe(namespace).ok_or_else(|| {
        let detail = format!(
            "{LISTENERS_MAX} listeners are connected already, or {NAMESPACE_LISTENERS_MAX} of this \
             namespace; retry later"
        );
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-listeners", detail)
    })?;
    let connection = Arc::clone(request.connection());
    connection.begin_stream();
    connection.watch_peer(true);
    // Well below the idle timeout, so that a healthy stream never reaches it.
    let heartbeat = (connection.timeouts().idle / 3).min(HEARTBEAT_MAX);
    let first = Bytes::from_static(b": listening\n\n");
    let next = Box::pin(next_frame(subscription, heartbeat));
    let probes = tokio::time::interval(PROBE_INTERVAL);
    let stream = EventStream { connection, first: Some(first), next, heartbeat, probes };
    let mut response = Response::new(Either::Right(stream.boxed_unsync()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The connection ends with the feed, so a client sees the end without parsing chunks.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

/// The next bytes to send, and the subscription to the events after them; without one, the stream
/// ends after these bytes.
type NextFrame = (Bytes, Option<Subscription>);

/// The body of the response.
struct EventStream {
    connection: Arc<Connection>,
    first: Option<Bytes>,
    next: Pin<Box<dyn Future<Output = NextFrame> + Send>>,
    heartbeat: Duration,
    probes: Interval,
}

impl hyper::body::Body for EventStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // hyper flushes after every poll, and then `TrackedStream` looks at the socket. The timer
        // causes a poll soon after a disconnect; it is polled until it is pending, so that it wakes
        // this task again.
        while self.probes.poll_tick(cx).is_ready() {}
        if self.connection.is_stopping() || self.connection.has_peer_closed() {
            return Poll::Ready(None);
        }
        let bytes = match self.first.take() {
            Some(first) => first,
            None => match self.next.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready((bytes, subscription)) => {
                    let heartbeat = self.heartbeat;
                    self.next = match subscription {
                        Some(subscription) => Box::pin(next_frame(subscription, heartbeat)),
                        None => Box::pin(std::future::ready((Bytes::new(), None))),
                    };
                    bytes
                }
            },
        };
        if bytes.is_empty() {
            return Poll::Ready(None);
        }
        // Restarts the timeout of the response: the client has as long to read this frame.
        self.connection.enter(Phase::Answer);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

async fn next_frame(mut subscription: Subscription, heartbeat: Duration) -> NextFrame {
    match tokio::time::timeout(heartbeat, subscription.recv()).await {
        Ok(Ok(FeedEvent { name, data })) => {
            let event = format!("event: {name}\ndata: {data}\n\n");
            (Bytes::from(event), Some(subscription))
        }
        Err(_) => (Bytes::from_static(b": still here\n\n"), Some(subscription)),
        Ok(Err(RecvError::Closed)) => (Bytes::new(), None),
        Ok(Err(RecvError::Lagged(missed))) => {
            let event = format!("event: missed\ndata: {{\"missed\":{missed}}}\n\n");
            (Bytes::from(event), None)
        }
    }
}
