//! One connection: its phase, and the signals that stop it.
//!
//! A timer per request would cost more than a decision, so a connection stores its phase and the
//! tick at which it began in one word, and `Connections` looks at all of them once per tick (ADR
//! 0010). No clock is read here.

pub mod admission;
pub mod connections;
pub mod hyper_errors;
pub mod listen;
pub mod overload;
pub mod stream;
pub mod table;
pub mod tls;

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use parking_lot::Mutex;
use rustix::net::{RecvFlags, recv};

use self::listen::ServerState;
use self::stream::ConnectionStream;

/// What a connection waits for. The discriminants are indexes into `PHASES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The very first byte.
    First = 0,
    /// A request's body.
    Body = 1,
    /// The response to be made, and the client to read it.
    Answer = 2,
    /// The next request.
    Idle = 3,
    /// The rest of a request's head.
    Head = 4,
}

/// The width of a phase in `since`, and the phases by discriminant.
const BITS: u32 = 3;
const MASK: usize = (1 << BITS) - 1;
const PHASES: [Phase; 5] = [Phase::First, Phase::Body, Phase::Answer, Phase::Idle, Phase::Head];

// Bits of `Connection::signals`.

/// Close as soon as nothing is left to answer.
const STOP: u8 = 1;
/// `body_timeout` has passed: respond 408.
const BODY_EXPIRED: u8 = 2;
/// Close at once.
const CLOSE: u8 = 4;
/// The stream has received bytes that were not read yet.
const UNREAD: u8 = 8;
/// The stream shall check on every flush whether the peer has closed.
const WATCH_PEER: u8 = 16;
/// The peer has closed.
const PEER_CLOSED: u8 = 32;
/// The response is an endless stream (server-sent events), so the connection is never idle.
const STREAMING: u8 = 64;

/// Looks at received bytes without taking them, and without waiting.
const PEEK: RecvFlags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);

/// One connection.
pub struct Connection {
    /// The state that all connections share.
    pub server: Arc<ServerState>,
    /// The address of the peer.
    pub peer: IpAddr,
    /// The address that it counts against; none for a trusted proxy.
    pub counted_as: Option<IpAddr>,
    /// The tick at which the phase began, shifted by `BITS`, and the phase in the low bits: one
    /// word, so that both are read and written together.
    since: AtomicU64,
    /// The bits above.
    signals: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Connection {
    /// A connection in phase `First`, from now on.
    pub fn new(server: Arc<ServerState>, peer: IpAddr, counted_as: Option<IpAddr>) -> Self {
        let since = AtomicU64::new(server.connections.tick() << BITS);
        let signals = AtomicU8::new(0);
        Self { server, peer, counted_as, since, signals, waker: Mutex::default() }
    }

    /// Starts another phase.
    pub fn enter(&self, phase: Phase) {
        self.since.store(self.server.connections.tick() << BITS | phase as u64, Ordering::Relaxed);
    }

    /// The current phase, and the tick at which it began.
    pub fn phase(&self) -> (Phase, u64) {
        let since = self.since.load(Ordering::Relaxed);
        // The remainder is never needed, and spares a branch that panics.
        (PHASES[(since as usize & MASK) % PHASES.len()], since >> BITS)
    }

    /// The tick since which it has waited for its first byte or for the next request; none
    /// otherwise.
    pub fn idle_since(&self) -> Option<u64> {
        let (phase, since) = self.phase();
        let waits = matches!(phase, Phase::First | Phase::Idle);
        let streams = self.signals.load(Ordering::Relaxed) & STREAMING != 0;
        (waits && !streams).then_some(since)
    }

    /// Marks the response as endless.
    pub fn begin_stream(&self) {
        self.signals.fetch_or(STREAMING, Ordering::Relaxed);
    }

    /// Whether `body_timeout` has passed, so that the request has to be answered without its body.
    pub fn has_body_expired(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & BODY_EXPIRED != 0
    }

    /// Whether it shall close as soon as nothing is left to answer.
    pub fn is_stopping(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & STOP != 0
    }

    /// Signals to respond 408 instead of waiting for the body; the second time, to close.
    pub fn expire_body(&self) {
        self.signal(if self.has_body_expired() { CLOSE } else { BODY_EXPIRED });
    }

    /// Signals to close at once.
    pub fn close(&self) {
        self.signal(CLOSE);
    }

    /// Signals to close as soon as nothing is left to answer.
    pub fn stop(&self) {
        self.signal(STOP);
    }

    /// Starts or stops checking, on every flush, whether the peer has closed.
    pub fn watch_peer(&self, begin: bool) {
        if begin {
            self.signals.fetch_or(WATCH_PEER, Ordering::Relaxed);
        } else {
            self.signals.fetch_and(!(WATCH_PEER | PEER_CLOSED), Ordering::Relaxed);
        }
    }

    /// Whether the peer has closed, as of the last check.
    pub fn has_peer_closed(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & PEER_CLOSED != 0
    }

    fn is_peer_watched(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & WATCH_PEER != 0
    }

    fn signal(&self, signal: u8) {
        self.signals.fetch_or(signal, Ordering::Relaxed);
        // The flag is set before the lock is taken, so a task that stores its waker after this lock
        // sees the flag: no signal is lost.
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }

    /// Whether bytes of a request have arrived that hyper has not read.
    fn has_unread(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & UNREAD != 0
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.since.load(Ordering::Relaxed) as usize & MASK == phase as usize
    }
}

/// Runs `work`, a TLS handshake, until the connection gets CLOSE or STOP; none in that case. Only
/// for work before the first request, where nothing is lost.
pub async fn unless_stopped<T>(
    connection: &Connection,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        *connection.waker.lock() = Some(cx.waker().clone());
        if connection.signals.load(Ordering::Relaxed) & (CLOSE | STOP) != 0 {
            return Poll::Ready(None);
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// The stream that hyper reads and writes; it sets the phases Head and Idle, which hyper does not
/// report.
pub struct TrackedStream {
    stream: ConnectionStream,
    connection: Arc<Connection>,
    /// The unsent rest of a response that replaces one of hyper's own.
    replacement: Option<&'static [u8]>,
}

impl TrackedStream {
    /// A stream that updates this connection.
    pub fn new(stream: ConnectionStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection, replacement: None }
    }

    /// Sets PEER_CLOSED if the peer has closed, even only its sending half: a client that waits for
    /// a lock and hangs up must not be granted it.
    fn update_peer_closed(&self) {
        let closed = match recv(self.stream.socket(), &mut [0_u8; 1], PEEK) {
            // A read of nothing is the end of the stream.
            Ok((_, bytes)) => bytes == 0,
            Err(error) => error == rustix::io::Errno::CONNRESET,
        };
        if closed {
            self.connection.signals.fetch_or(PEER_CLOSED, Ordering::Relaxed);
        }
    }

    /// Updates UNREAD by peeking at the socket: tokio may not have reported the bytes yet.
    fn update_unread(&self) {
        let peeked = recv(self.stream.socket(), &mut [0_u8; 1], PEEK);
        let found = peeked.is_ok_and(|(_, bytes)| bytes > 0);
        let signals = &self.connection.signals;
        if found {
            signals.fetch_or(UNREAD, Ordering::Relaxed);
        } else {
            signals.fetch_and(!UNREAD, Ordering::Relaxed);
        }
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
                self.update_unread();
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
        // Outside these phases no request is in progress, so hyper writes an error of its own.
        let in_request = self.connection.is_in(Phase::Body) || self.connection.is_in(Phase::Answer);
        if !in_request && self.replacement.is_none() {
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
        if self.connection.is_peer_watched() {
            self.update_peer_closed();
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
pub struct StoppableConnection<S: HttpService<hyper::body::Incoming>> {
    http: http1::Connection<TrackedStream, S>,
    connection: Arc<Connection>,
    begun: bool,
    stopping: bool,
}

impl<S: HttpService<hyper::body::Incoming>> StoppableConnection<S> {
    /// Drives `http` by the signals of `connection`.
    pub fn new(http: http1::Connection<TrackedStream, S>, connection: Arc<Connection>) -> Self {
        Self { http, connection, begun: false, stopping: false }
    }
}

impl<S, B> Future for StoppableConnection<S>
where
    S: HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.begun {
            // The task keeps its waker for life, so it is stored once.
            self.begun = true;
            *self.connection.waker.lock() = Some(cx.waker().clone());
        }
        let signals = self.connection.signals.load(Ordering::Relaxed);
        if signals & CLOSE != 0 {
            return Poll::Ready(());
        }
        // Errors are dropped: the peer hung up, and there is no response to send.
        let over = Pin::new(&mut self.http).poll(cx).map(drop);
        if over.is_ready() || signals & STOP == 0 || self.stopping || !self.may_stop() {
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

impl<S: HttpService<hyper::body::Incoming>> StoppableConnection<S> {
    /// Whether a graceful shutdown loses no request. hyper would drop a request whose head is not
    /// complete; its response gets `Connection: close` from `dispatch` instead, and then the
    /// connection ends.
    fn may_stop(&self) -> bool {
        match self.connection.phase().0 {
            Phase::Head => false,
            Phase::First | Phase::Idle => !self.connection.has_unread(),
            Phase::Body | Phase::Answer => true,
        }
    }
}
