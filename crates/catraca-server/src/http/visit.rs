//! One connection: what it waits for, since when, and how it is told to go.
//!
//! A timer per request would cost more than many decisions, so a visit only notes its phase in one
//! word; the crowd walks all visits now and then. Must not read a clock.

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

use super::curt;
use super::listen::Shared;
use super::stream::Stream;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Its very first byte.
    First = 0,
    /// A request's body.
    Body = 1,
    /// An answer to be made and taken.
    Answer = 2,
    /// The next request.
    Idle = 3,
    /// The rest of a request's head.
    Head = 4,
}

/// The bits of a phase, and the phases by their numbers.
const BITS: u32 = 3;
const MASK: usize = (1 << BITS) - 1;
const PHASES: [Phase; 5] = [Phase::First, Phase::Body, Phase::Answer, Phase::Idle, Phase::Head];

/// Bits by which a visit is told what to do.
const STOP: u8 = 1;
const LATE: u8 = 2;
const GO: u8 = 4;
/// Bit by which a stream tells its visit that bytes wait to be read.
const UNREAD: u8 = 8;
/// Bit by which a visit asks its stream to look whether the other end is gone.
const WATCH: u8 = 16;
/// Bit by which the stream says so.
const GONE: u8 = 32;
/// Bit of a connection whose answer goes on without an end, so that it never waits for a request.
const STREAMING: u8 = 64;

/// One connection.
pub struct Visit {
    /// What all connections share.
    pub shared: Arc<Shared>,
    /// The other end.
    pub peer: IpAddr,
    /// The address by which it is counted; none for a trusted proxy.
    pub counted_as: Option<IpAddr>,
    /// The tick at which the phase began, and the phase in the lowest bits.
    since: AtomicU64,
    orders: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Visit {
    /// A visit that begins now, with nothing heard yet.
    pub fn new(shared: Arc<Shared>, peer: IpAddr, counted_as: Option<IpAddr>) -> Self {
        let since = AtomicU64::new(shared.crowd.tick() << BITS);
        let orders = AtomicU8::new(0);
        Self { shared, peer, counted_as, since, orders, waker: Mutex::default() }
    }

    /// Notes that another phase begins.
    pub fn enter(&self, phase: Phase) {
        self.since.store(self.shared.crowd.tick() << BITS | phase as u64, Ordering::Relaxed);
    }

    /// The phase, and the tick at which it began.
    pub fn phase(&self) -> (Phase, u64) {
        let since = self.since.load(Ordering::Relaxed);
        (PHASES[(since as usize & MASK) % PHASES.len()], since >> BITS)
    }

    /// The tick since which it waits for its first byte or for the next request; none if it does
    /// anything else.
    pub fn idle_since(&self) -> Option<u64> {
        let (phase, since) = self.phase();
        let waits = matches!(phase, Phase::First | Phase::Idle);
        let streams = self.orders.load(Ordering::Relaxed) & STREAMING != 0;
        (waits && !streams).then_some(since)
    }

    /// Notes that the answer goes on until the connection ends.
    pub fn begin_stream(&self) {
        self.orders.fetch_or(STREAMING, Ordering::Relaxed);
    }

    /// Whether the body took too long, so that the request has to be answered without it.
    pub fn is_late(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & LATE != 0
    }

    /// Whether it was told to go as soon as nothing is left to answer.
    pub fn is_stopping(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & STOP != 0
    }

    /// Tells a visit to answer without the body that does not come; the second time, to go.
    pub fn hurry(&self) {
        self.order(if self.is_late() { GO } else { LATE });
    }

    /// Tells a visit to go at once.
    pub fn dismiss(&self) {
        self.order(GO);
    }

    /// Tells a visit to go as soon as nothing is left to answer.
    pub fn stop(&self) {
        self.order(STOP);
    }

    /// Begins or ends to look whether the other end is gone, whenever the connection is touched.
    pub fn watch(&self, begin: bool) {
        if begin {
            self.orders.fetch_or(WATCH, Ordering::Relaxed);
        } else {
            self.orders.fetch_and(!(WATCH | GONE), Ordering::Relaxed);
        }
    }

    /// Whether the other end is gone, as far as was looked.
    pub fn is_gone(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & GONE != 0
    }

    fn is_watched(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & WATCH != 0
    }

    fn order(&self, order: u8) {
        self.orders.fetch_or(order, Ordering::Relaxed);
        // The lock orders the flag before the waker: whoever stores a waker later sees the flag.
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }

    /// Whether a request may be on its way that nobody has begun to read.
    fn has_unread(&self) -> bool {
        self.orders.load(Ordering::Relaxed) & UNREAD != 0
    }

    fn is_in(&self, phase: Phase) -> bool {
        self.since.load(Ordering::Relaxed) as usize & MASK == phase as usize
    }
}

/// Work that ends with nothing when its visit is told to go or to stop; only for what comes before
/// the first request.
pub async fn heeding<T>(visit: &Visit, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        *visit.waker.lock() = Some(cx.waker().clone());
        if visit.orders.load(Ordering::Relaxed) & (GO | STOP) != 0 {
            return Poll::Ready(None);
        }
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

/// A stream that notes when a head begins to arrive and when an answer has left.
pub struct Noted {
    stream: Stream,
    visit: Arc<Visit>,
    /// What is still to be sent in place of an answer that nobody here made.
    instead: Option<&'static [u8]>,
}

impl Noted {
    /// A stream of a visit.
    pub fn new(stream: Stream, visit: Arc<Visit>) -> Self {
        Self { stream, visit, instead: None }
    }

    /// Whoever closed its end, if only half of it, does not wait for a name any more.
    fn look_for_end(&self) {
        let (socket, flags) = (self.stream.socket(), RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let gone = match recv(socket, &mut [0_u8; 1], flags) {
            Ok((_, bytes)) => bytes == 0,
            Err(error) => error == rustix::io::Errno::CONNRESET,
        };
        if gone {
            self.visit.orders.fetch_or(GONE, Ordering::Relaxed);
        }
    }

    /// Asks the system itself: what it has received may not have been told to us yet.
    fn look_for_unread(&self) {
        let (socket, flags) = (self.stream.socket(), RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let found = recv(socket, &mut [0_u8; 1], flags).is_ok_and(|(_, bytes)| bytes > 0);
        let orders = &self.visit.orders;
        if found {
            orders.fetch_or(UNREAD, Ordering::Relaxed);
        } else {
            orders.fetch_and(!UNREAD, Ordering::Relaxed);
        }
    }
}

impl Read for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let visit = &self.visit;
        if visit.is_in(Phase::Idle) || visit.is_in(Phase::First) {
            if read.is_ready() {
                visit.enter(Phase::Head);
            } else if visit.is_stopping() {
                self.look_for_unread();
            }
        }
        read
    }
}

impl Write for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let asked = self.visit.is_in(Phase::Body) || self.visit.is_in(Phase::Answer);
        if !asked && self.instead.is_none() {
            self.instead = curt::fuller(bytes);
        }
        while let Some(rest) = self.instead {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if sent == rest.len() {
                self.instead = None;
                return Poll::Ready(Ok(bytes.len()));
            }
            self.instead = Some(&rest[sent..]);
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.visit.is_watched() {
            self.look_for_end();
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() && self.visit.is_in(Phase::Answer) {
            self.visit.enter(Phase::Idle);
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

/// A connection that obeys its visit's orders; ready when it is over.
pub struct Obeying<S: HttpService<hyper::body::Incoming>> {
    connection: http1::Connection<Noted, S>,
    visit: Arc<Visit>,
    begun: bool,
    stopping: bool,
}

impl<S: HttpService<hyper::body::Incoming>> Obeying<S> {
    /// A connection and the visit it obeys.
    pub fn new(connection: http1::Connection<Noted, S>, visit: Arc<Visit>) -> Self {
        Self { connection, visit, begun: false, stopping: false }
    }
}

impl<S, B> Future for Obeying<S>
where
    S: HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.begun {
            self.begun = true;
            *self.visit.waker.lock() = Some(cx.waker().clone());
        }
        let orders = self.visit.orders.load(Ordering::Relaxed);
        if orders & GO != 0 {
            return Poll::Ready(());
        }
        // A peer that hangs up in the middle is its own business.
        let over = Pin::new(&mut self.connection).poll(cx).map(drop);
        if over.is_ready() || orders & STOP == 0 || self.stopping || !self.may_stop() {
            return over;
        }
        // Whoever has asked nothing yet, not even now, loses nothing.
        if self.visit.is_in(Phase::First) {
            return Poll::Ready(());
        }
        self.stopping = true;
        Pin::new(&mut self.connection).graceful_shutdown();
        Pin::new(&mut self.connection).poll(cx).map(drop)
    }
}

impl<S: HttpService<hyper::body::Incoming>> Obeying<S> {
    /// Whether no request is lost by a stop. One whose head is not read yet would be: its answer
    /// says `close` by itself, and then the connection ends.
    fn may_stop(&self) -> bool {
        match self.visit.phase().0 {
            Phase::Head => false,
            Phase::First | Phase::Idle => !self.visit.has_unread(),
            Phase::Body | Phase::Answer => true,
        }
    }
}
