//! A response in progress, which the body that passes it on shares with the watch of its check.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use super::answer_stream::{AnswerError, AnswerStream};
use super::pending_settle::PendingSettle;
use super::settle_deadline::HOLD_OVER;
use super::settle_watch::{SettleWatch, WatchEntry, WatchedCheck};

/// A response in progress.
pub struct SharedStream {
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// Absent after the end.
    stream: Option<AnswerStream>,
    /// Whether the response was ended by the watch, and its body has not seen it.
    is_cut: bool,
    /// Wakes the task that waits for the next part.
    waker: Option<Waker>,
}

impl WatchedCheck for SharedStream {
    /// The response goes on, unless a lease counts it.
    fn end_check(&self) {
        let mut state = self.state.lock();
        let deadline = state.stream.as_ref().and_then(|stream| stream.settle.as_ref()?.deadline());
        if deadline.is_some_and(|deadline| deadline.ends_response) {
            let stream = state.stream.take();
            state.is_cut = true;
            let waker = state.waker.take();
            drop(state);
            if let Some(stream) = stream {
                stream.fail(AnswerError::HoldOver);
            }
            waker.iter().for_each(Waker::wake_by_ref);
            return;
        }
        let settle = state.stream.as_mut().and_then(|stream| stream.settle.take());
        drop(state);
        if let Some(mut settle) = settle {
            settle.on_broken(HOLD_OVER);
        }
    }
}

/// A part of a response, and whether it is the last one.
pub type StreamPart = (Result<Frame<Bytes>, AnswerError>, bool);

/// The body's side of a response in progress.
pub struct BodyStream {
    shared: Arc<SharedStream>,
    entry: Option<WatchEntry>,
}

impl BodyStream {
    /// Watches a response that has a check to settle, and a body.
    pub fn new(stream: AnswerStream, watch: &Arc<SettleWatch>) -> Self {
        let deadline = stream.settle.as_ref().and_then(PendingSettle::deadline);
        let deadline = deadline.filter(|_| !stream.is_over());
        let state = StreamState { stream: Some(stream), ..StreamState::default() };
        let shared = Arc::new(SharedStream { state: Mutex::new(state) });
        let entry = deadline.map(|deadline| {
            let check: Weak<SharedStream> = Arc::downgrade(&shared);
            watch.add(deadline.at, check)
        });
        Self { shared, entry }
    }

    /// The next part, and whether it is the last one; none after the end.
    pub fn poll_part(&self, cx: &mut Context<'_>) -> Poll<Option<StreamPart>> {
        let mut state = self.shared.state.lock();
        if std::mem::take(&mut state.is_cut) {
            return Poll::Ready(Some((Err(AnswerError::HoldOver), true)));
        }
        let Some(stream) = &mut state.stream else { return Poll::Ready(None) };
        let polled = stream.poll_part(cx);
        let is_over = stream.is_over();
        if polled.is_pending() && self.entry.is_some() {
            let waker = &mut state.waker;
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        polled.map(|part| Some((part?, is_over)))
    }

    /// Takes the response, which is not watched any more.
    pub fn take(&mut self) -> Option<AnswerStream> {
        self.entry = None;
        self.shared.state.lock().stream.take()
    }

    /// Takes the settle of its check.
    pub fn take_settle(&mut self) -> Option<PendingSettle> {
        self.shared.state.lock().stream.as_mut().and_then(|stream| stream.settle.take())
    }

    /// Whether it has ended, and the body knows.
    pub fn is_finished(&self) -> bool {
        let state = self.shared.state.lock();
        state.stream.is_none() && !state.is_cut
    }

    /// Whether it is in progress, and no part follows.
    pub fn is_over(&self) -> bool {
        self.shared.state.lock().stream.as_ref().is_some_and(AnswerStream::is_over)
    }

    /// How much follows.
    pub fn size_hint(&self) -> SizeHint {
        let state = self.shared.state.lock();
        state.stream.as_ref().map_or(SizeHint::with_exact(0), AnswerStream::size_hint)
    }
}
