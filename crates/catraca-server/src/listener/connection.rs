//! One connection: its phase, and the signals that stop it.
//!
//! A timer per request would cost more than a decision, so a connection stores its phase and the
//! tick at which it began in one word, and `Connections` looks at all of them once per tick (ADR
//! 0010). A front end sets the phases and obeys the signals; `TickClock` is read, no other clock.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::clock::TickClock;
use crate::config::ConnectionTimeouts;

/// What a connection waits for. The discriminants are indexes into `PHASES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// The very first byte.
    First = 0,
    /// The body of a request, in protocols whose requests have one.
    Body = 1,
    /// The client to read the response.
    Answer = 2,
    /// The next request.
    Idle = 3,
    /// The rest of a request, or of its head.
    Head = 4,
    /// The handler of a request to finish.
    Handler = 5,
    /// The upstream of a proxied request. The front end has timeouts of its own for it.
    Upstream = 6,
    /// The client to read a part of a response, of which more follows.
    Stream = 7,
}

/// The width of a phase in `since`, and the phases by discriminant.
const BITS: u32 = 3;
const MASK: usize = (1 << BITS) - 1;
const PHASES: [Phase; 8] = [
    Phase::First,
    Phase::Body,
    Phase::Answer,
    Phase::Idle,
    Phase::Head,
    Phase::Handler,
    Phase::Upstream,
    Phase::Stream,
];

/// How many phases there are.
pub const PHASE_COUNT: usize = PHASES.len();

impl Phase {
    /// Every phase, and the name of its series.
    pub const NAMES: [(Self, &'static str); PHASE_COUNT] = [
        (Self::First, "first_byte"),
        (Self::Body, "body"),
        (Self::Answer, "answer"),
        (Self::Idle, "idle"),
        (Self::Head, "head"),
        (Self::Handler, "handler"),
        (Self::Upstream, "upstream"),
        (Self::Stream, "stream"),
    ];
}

// Bits of `Connection::signals`.

/// Close as soon as nothing is left to answer.
const STOP: u8 = 1;
/// The timeout of the phase `Body` or `Handler` has passed: respond without waiting any longer.
const EXPIRED: u8 = 2;
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

/// One connection.
pub struct Connection {
    /// The address of the peer.
    pub peer: IpAddr,
    /// The address that it counts against; none for a trusted proxy.
    pub counted_as: Option<IpAddr>,
    clock: Arc<TickClock>,
    /// The tick at which the phase began, shifted by `BITS`, and the phase in the low bits: one
    /// word, so that both are read and written together.
    since: AtomicU64,
    /// The bits above.
    signals: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Connection {
    /// A connection in phase `First`, from now on.
    pub(super) fn new(clock: Arc<TickClock>, peer: IpAddr, counted_as: Option<IpAddr>) -> Self {
        let since = AtomicU64::new(clock.tick() << BITS);
        let signals = AtomicU8::new(0);
        Self { peer, counted_as, clock, since, signals, waker: Mutex::default() }
    }

    /// Starts another phase.
    pub fn enter(&self, phase: Phase) {
        self.since.store(self.clock.tick() << BITS | phase as u64, Ordering::Relaxed);
    }

    /// Starts the phase `Body` of a new request. An expiry that an earlier request left on the
    /// connection, because its handler was slow, must not end this one.
    pub fn begin_request(&self) {
        self.begin_phase(Phase::Body);
    }

    /// Starts the phase `Handler`, whose timeout is independent of that of the body.
    pub fn begin_handler(&self) {
        self.begin_phase(Phase::Handler);
    }

    fn begin_phase(&self, phase: Phase) {
        if self.has_expired() {
            self.signals.fetch_and(!EXPIRED, Ordering::Relaxed);
        }
        self.enter(phase);
    }

    /// The current phase, and the tick at which it began.
    pub fn phase(&self) -> (Phase, u64) {
        let since = self.since.load(Ordering::Relaxed);
        // The remainder is never needed, and spares a branch that panics.
        (PHASES[(since as usize & MASK) % PHASES.len()], since >> BITS)
    }

    /// How long each phase may take.
    pub fn timeouts(&self) -> &ConnectionTimeouts {
        self.clock.timeouts()
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

    /// Whether the body or the handler took too long, so that the request has to be answered
    /// without it.
    pub fn has_expired(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & EXPIRED != 0
    }

    /// Whether it shall close as soon as nothing is left to answer.
    pub fn is_stopping(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & STOP != 0
    }

    /// Signals to respond without waiting any longer; the second time, to close.
    pub fn expire(&self) {
        self.signal(if self.has_expired() { CLOSE } else { EXPIRED });
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

    /// Notes that the peer has closed.
    pub fn on_peer_closed(&self) {
        self.signals.fetch_or(PEER_CLOSED, Ordering::Relaxed);
    }

    /// Whether `watch_peer` asks for checks.
    pub fn is_peer_watched(&self) -> bool {
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

    /// Whether it shall close at once.
    pub fn is_closing(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & CLOSE != 0
    }

    /// Whether bytes of a request have arrived that were not read.
    pub fn has_unread(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & UNREAD != 0
    }

    /// Notes whether bytes of a request have arrived that were not read.
    pub fn set_unread(&self, found: bool) {
        if found {
            self.signals.fetch_or(UNREAD, Ordering::Relaxed);
        } else {
            self.signals.fetch_and(!UNREAD, Ordering::Relaxed);
        }
    }

    /// Sets the task that signals wake.
    pub fn set_waker(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// Whether it is in this phase.
    pub fn is_in(&self, phase: Phase) -> bool {
        self.since.load(Ordering::Relaxed) as usize & MASK == phase as usize
    }

    /// Whether the head of a request was read and its response not sent yet.
    pub fn is_in_request(&self) -> bool {
        !matches!(self.phase().0, Phase::First | Phase::Idle | Phase::Head)
    }

    /// Runs `work` until the connection shall close at once; none in that case.
    pub async fn unless_closed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.unless_signalled(CLOSE, work).await
    }

    /// Runs `work` until the connection shall close or stop; none in that case. For waits in which
    /// nothing is lost: a TLS handshake, or the first byte of the next request.
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.unless_signalled(CLOSE | STOP, work).await
    }

    async fn unless_signalled<T>(&self, signals: u8, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            self.set_waker(cx.waker());
            if self.signals.load(Ordering::Relaxed) & signals != 0 {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_expiry_of_one_request_does_not_end_the_next() {
        let second = Duration::from_secs(1);
        let timeouts =
            ConnectionTimeouts { head: second, body: second, answer: second, idle: second };
        let clock = Arc::new(TickClock::new(timeouts));
        let connection = Connection::new(clock, Ipv4Addr::LOCALHOST.into(), None);
        connection.begin_request();
        connection.expire();
        assert!(connection.has_expired());
        connection.begin_request();
        assert!(!connection.has_expired());
        // The first expiry of the new request answers it; only the second closes.
        connection.expire();
        assert!(connection.has_expired() && !connection.is_closing());
    }
}
