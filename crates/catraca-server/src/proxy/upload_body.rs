//! The body of a request on its way to the upstream, part by part as the client sends it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;

use super::collected_body::CollectedBody;
use super::request_limits::BodyMemory;
use super::request_trailers::TrailerRule;
use super::upload_rate::{UploadRate, UploadRateMin};
use crate::http_wire::quiet_waker::quietly;

/// What is known about the body of a request.
#[derive(Debug, Default)]
pub struct UploadState {
    phase: AtomicU8,
    /// The number of parts that were read.
    parts: AtomicU64,
    /// Whether the upstream waits for the next part.
    is_awaited: AtomicBool,
    rate: Mutex<UploadRate>,
}

// Values of `UploadState::phase`; it begins with zero, while the body is read.
const ENDED: u8 = 1;
const FAILED: u8 = 2;

impl UploadState {
    /// Whether the upstream takes more of it, and the client has not sent more.
    pub fn is_awaited(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == 0 && self.is_awaited.load(Ordering::Relaxed)
    }

    /// Whether it broke off, or is not valid.
    pub fn has_failed(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == FAILED
    }

    /// Whether the client was slower than it must be.
    pub fn is_below(&self, min: UploadRateMin) -> bool {
        self.phase.load(Ordering::Relaxed) == 0 && self.rate.lock().is_below(min)
    }

    /// How many parts were read.
    pub fn parts(&self) -> u64 {
        self.parts.load(Ordering::Relaxed)
    }
}

/// The body of a request to an upstream.
#[derive(Default)]
pub struct UploadBody {
    /// Parts that were read before the check, in their order.
    collected: VecDeque<Frame<Bytes>>,
    source: Option<(Incoming, Arc<UploadState>)>,
    /// Which trailers pass; none of them if it is absent.
    trailers: Option<TrailerRule>,
    /// Of the collected parts.
    _memory: Option<BodyMemory>,
}

impl UploadBody {
    /// Passes on what the client sends; the state is none if there is no body.
    pub fn new(body: CollectedBody) -> (Self, Option<Arc<UploadState>>) {
        let CollectedBody { parts: collected, rest, trailers, memory, .. } = body;
        if collected.is_empty() && rest.is_end_stream() {
            return (Self::default(), None);
        }
        let state = Arc::new(UploadState::default());
        let source = Some((rest, Arc::clone(&state)));
        (Self { collected, source, trailers, _memory: Some(memory) }, Some(state))
    }

    /// Puts parts back that were read and not sent.
    pub fn put_back(&mut self, mut parts: VecDeque<Frame<Bytes>>) {
        parts.append(&mut self.collected);
        self.collected = parts;
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(part) = this.collected.pop_front() {
            return Poll::Ready(Some(Ok(part)));
        }
        let Some((body, state)) = &mut this.source else { return Poll::Ready(None) };
        if state.phase.load(Ordering::Relaxed) == ENDED {
            return Poll::Ready(None);
        }
        let (polled, held) = quietly(|| Pin::new(&mut *body).poll_frame(cx));
        // After the last part the client's connection has nothing to read for this body.
        let is_last = matches!(polled, Poll::Ready(Some(Ok(_)))) && body.is_end_stream();
        if let Some(waker) = held.filter(|_| !is_last) {
            waker.wake();
        }
        state.is_awaited.store(polled.is_pending(), Ordering::Relaxed);
        match &polled {
            Poll::Pending => state.rate.lock().on_wait(),
            Poll::Ready(Some(Ok(part))) => {
                state.rate.lock().on_part(part.data_ref().map_or(0, Bytes::len));
                state.parts.fetch_add(1, Ordering::Relaxed);
                if body.is_end_stream() {
                    state.phase.store(ENDED, Ordering::Relaxed);
                }
            }
            Poll::Ready(Some(Err(_))) => state.phase.store(FAILED, Ordering::Relaxed),
            Poll::Ready(None) => state.phase.store(ENDED, Ordering::Relaxed),
        }
        match polled {
            Poll::Ready(Some(Ok(part))) => {
                Poll::Ready(TrailerRule::clean_part(this.trailers.as_ref(), part).map(Ok))
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_over = self.source.as_ref().is_none_or(|(body, _)| body.is_end_stream());
        is_over && self.collected.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let source = self.source.as_ref();
        let rest = source.map_or_else(|| SizeHint::with_exact(0), |(body, _)| body.size_hint());
        add_held(rest, &self.collected)
    }
}

/// The size of parts that are held back together with the rest.
pub fn add_held(rest: SizeHint, held: &VecDeque<Frame<Bytes>>) -> SizeHint {
    let bytes = held.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64);
    let bytes: u64 = bytes.sum();
    let mut size = SizeHint::new();
    size.set_lower(rest.lower().saturating_add(bytes));
    if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(bytes)) {
        size.set_upper(upper);
    }
    size
}
