//! What carries a request to its upstream: a connection of HTTP/1.1, or a stream of one of HTTP/2.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::http::{Request, Response};

use super::idle_timer::IdleTimer;
use super::upload_body::UploadBody;
use super::upstream_connection::{SendError, UpstreamConnection};
use super::upstream_stream::UpstreamStream;

/// What carries a request.
pub enum RequestChannel {
    /// A connection that the request has for itself.
    Http1(UpstreamConnection),
    /// A stream of a shared connection.
    Http2(UpstreamStream),
}

/// A response that is waited for, of one or the other protocol.
enum PendingResponse<A, B> {
    Http1(A),
    Http2(B),
}

impl RequestChannel {
    /// Begins to send a request; the result must be polled together with the channel.
    pub fn send(
        &mut self,
        request: Request<UploadBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError>> + use<> {
        let pending = match self {
            Self::Http1(connection) => PendingResponse::Http1(connection.send(request)),
            Self::Http2(stream) => PendingResponse::Http2(stream.send(request)),
        };
        async move {
            match pending {
                PendingResponse::Http1(response) => response.await,
                PendingResponse::Http2(response) => response.await,
            }
        }
    }

    /// Moves bytes, if this task has to do it.
    pub fn poll_driver(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Http1(connection) => connection.poll_driver(cx),
            Self::Http2(stream) => stream.wake_at_next_part(cx),
        }
    }

    /// The next part of the body of a response.
    pub fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self {
            Self::Http1(connection) => connection.poll_body(body, cx),
            // Another task drives the connection, and wakes this one.
            Self::Http2(stream) => {
                stream.wake_at_next_part(cx);
                Pin::new(body).poll_frame(cx)
            }
        }
    }

    /// Waits for the head of the response.
    pub fn timer(&mut self) -> &mut IdleTimer {
        match self {
            Self::Http1(connection) => &mut connection.timer,
            Self::Http2(stream) => &mut stream.timer,
        }
    }

    /// The upstream did not answer in time.
    pub fn on_timeout(&self) {
        if let Self::Http2(stream) = self {
            // A request that is late must not stop the next ones: they get another connection.
            stream.retire();
        }
    }

    /// The exchange is over. Returns a connection of HTTP/1.1 that can take the next request. It
    /// cannot if the upstream closed it, or answered before it got the whole request.
    pub fn into_idle(self) -> Option<UpstreamConnection> {
        let Self::Http1(mut connection) = self else { return None };
        connection.is_idle().then_some(connection)
    }
}
