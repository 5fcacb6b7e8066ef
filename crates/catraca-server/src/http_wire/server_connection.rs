//! One connection that hyper serves: its phases, its signals, and the errors that hyper sends.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;

use super::framing::FramingWatch;
use super::hyper_errors;
use super::watched_stream::WatchedStream;
use crate::listener::{Connection, ConnectionStream, Phase};

/// The largest head of a request in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The most that hyper buffers of a connection.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// hyper with the bounds of every HTTP front end.
pub fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // `Connections` enforces the timeout without a timer per head (ADR 0010).
    builder.header_read_timeout(None);
    // The most header lines are hyper's default, 100. If they were set, even to the same number,
    // hyper would fill and copy two tables of that length for every head.
    builder.max_header_size(HEAD_BYTES_MAX);
    builder.max_buf_size(BUFFER_BYTES_MAX);
    builder
}

/// The stream that hyper reads and writes; it sets the phases Head and Idle, which hyper does not
/// report.
pub struct TrackedStream {
    stream: TokioIo<WatchedStream>,
    connection: Arc<Connection>,
    /// The unsent rest of a response that replaces one of hyper's own.
    replacement: Option<&'static [u8]>,
}

impl TrackedStream {
    /// A stream that updates this connection.
    pub fn new(stream: ConnectionStream, connection: Arc<Connection>) -> Self {
        let stream = WatchedStream::new(stream, None);
        Self { stream: TokioIo::new(stream), connection, replacement: None }
    }

    /// The same, and notes which requests have an ambiguous length.
    pub fn watching(
        stream: ConnectionStream,
        connection: Arc<Connection>,
        framing: FramingWatch,
    ) -> Self {
        let stream = WatchedStream::new(stream, Some(framing));
        Self { stream: TokioIo::new(stream), connection, replacement: None }
    }
}

impl Read for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let connection = &self.connection;
        if connection.is_in(Phase::Idle) || connection.is_in(Phase::First) {
            if read.is_ready() {
                connection.enter(Phase::Head);
            } else if connection.is_stopping() {
                // A request that arrived before the stop must still be answered.
                connection.set_unread(self.stream.inner().stream.has_unread());
            }
        }
        read
    }
}

impl Write for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // While no request is in progress, hyper writes an error of its own.
        if !self.connection.is_in_request() && self.replacement.is_none() {
            self.replacement = hyper_errors::problem_for(bytes);
        }
        while let Some(rest) = self.replacement {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if sent == rest.len() {
                self.replacement = None;
                // To hyper it looks as if its own bytes were written.
                return Poll::Ready(Ok(bytes.len()));
            }
            self.replacement = Some(&rest[sent..]);
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A client that waits for a lock and hangs up must not be granted it.
        if self.connection.is_peer_watched() && self.stream.inner().stream.is_closed_by_peer() {
            self.connection.on_peer_closed();
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // hyper flushes after the last byte of a response.
        if flushed.is_ready() && self.connection.is_in(Phase::Answer) {
            self.connection.enter(Phase::Idle);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

/// Drives hyper's connection and obeys the signals; ready when the connection has ended.
pub struct StoppableConnection<S: HttpService<Incoming>> {
    http: http1::UpgradeableConnection<TrackedStream, S>,
    connection: Arc<Connection>,
    begun: bool,
    stopping: bool,
}

impl<S, B> StoppableConnection<S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Drives `http` by the signals of `connection`.
    pub fn new(http: http1::Connection<TrackedStream, S>, connection: Arc<Connection>) -> Self {
        Self { http: http.with_upgrades(), connection, begun: false, stopping: false }
    }
}

impl<S, B> Future for StoppableConnection<S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.begun {
            // The task keeps its waker for life, so it is stored once.
            self.begun = true;
            self.connection.set_waker(cx.waker());
        }
        if self.connection.is_closing() {
            return Poll::Ready(());
        }
        // Read before the poll, which notes unread bytes only if the signal was there.
        let stop = self.connection.is_stopping();
        // Errors are dropped: the peer hung up, and there is no response to send.
        let over = Pin::new(&mut self.http).poll(cx).map(drop);
        if over.is_ready() || !stop || self.stopping || !self.may_stop() {
            return over;
        }
        // Nothing has arrived, not even in the poll above: no request is lost. hyper's graceful
        // shutdown would wait for a first request.
        if self.connection.is_in(Phase::First) {
            return Poll::Ready(());
        }
        self.stopping = true;
        Pin::new(&mut self.http).graceful_shutdown();
        Pin::new(&mut self.http).poll(cx).map(drop)
    }
}

impl<S: HttpService<Incoming>> StoppableConnection<S> {
    /// Whether a graceful shutdown loses no request. hyper would drop a request whose head is not
    /// complete; its response gets `Connection: close` from `dispatch` instead, and then the
    /// connection ends.
    fn may_stop(&self) -> bool {
        match self.connection.phase().0 {
            Phase::Head => false,
            Phase::First | Phase::Idle => !self.connection.has_unread(),
            Phase::Body | Phase::Handler | Phase::Answer => true,
            Phase::Upstream | Phase::Stream => true,
        }
    }
}
