//! The body of a response on its way to the client, part by part as the upstream sends it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::sleep_until;

use super::answer_stream::{AnswerError, AnswerStream};
use super::client_phase::ClientPhase;
use super::pending_settle::PendingSettle;
use super::request_limits::OpenRequest;
use super::settle_watch::SettleWatch;
use super::shared_stream::BodyStream;
use super::upload_body::add_held;
use crate::listener::Phase;

/// How a response ended that was held back.
pub enum HoldResult {
    /// It is complete. Its settle is the caller's now.
    Complete(Option<PendingSettle>),
    /// It is larger than the limit; the rest follows.
    TooLarge,
}

/// The body of a response.
pub struct AnswerBody {
    /// Parts that were held back, in their order.
    held: VecDeque<Frame<Bytes>>,
    stream: BodyStream,
    phase: ClientPhase,
    /// Counts the request for its client.
    pub open: Option<OpenRequest>,
}

impl AnswerBody {
    /// Passes on a response to its client.
    pub fn new(stream: AnswerStream, phase: ClientPhase, watch: &Arc<SettleWatch>) -> Self {
        Self { held: VecDeque::new(), stream: BodyStream::new(stream, watch), phase, open: None }
    }

    /// Ends the response at once if it has no body, which hyper would not poll.
    pub fn finish_if_empty(&mut self) {
        if self.stream.is_over() {
            self.finish();
        } else if self.is_end_stream() {
            // It was held back, and has ended.
            self.phase.enter(Phase::Answer);
        }
    }

    /// Reads the body without passing it on, up to `bytes_max`. What was read is passed on later.
    pub async fn hold(&mut self, bytes_max: usize) -> Result<HoldResult, AnswerError> {
        let mut bytes = 0;
        poll_fn(|cx| self.poll_hold(cx, &mut bytes, bytes_max)).await
    }

    fn poll_hold(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut usize,
        bytes_max: usize,
    ) -> Poll<Result<HoldResult, AnswerError>> {
        loop {
            let is_over = self.stream.is_over();
            let part = if is_over { None } else { std::task::ready!(self.stream.poll_part(cx)) };
            match part {
                None => {
                    let settle = self.stream.take().and_then(AnswerStream::finish);
                    return Poll::Ready(Ok(HoldResult::Complete(settle)));
                }
                Some((Err(error), _)) => return Poll::Ready(Err(error)),
                Some((Ok(part), _)) => {
                    *bytes += part.data_ref().map_or(0, Bytes::len);
                    self.held.push_back(part);
                }
            }
            if *bytes > bytes_max {
                return Poll::Ready(Ok(HoldResult::TooLarge));
            }
        }
    }

    /// Takes the settle of a response that failed while it was held back.
    pub fn take_settle(&mut self) -> Option<PendingSettle> {
        self.stream.take_settle()
    }

    fn finish(&mut self) {
        if let Some(settle) = self.stream.take().and_then(AnswerStream::finish) {
            settle.complete();
        }
        self.phase.enter(Phase::Answer);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        let this = self.get_mut();
        if let Some(part) = this.held.pop_front() {
            this.phase.enter(if this.is_end_stream() { Phase::Answer } else { Phase::Stream });
            return Poll::Ready(Some(Ok(part)));
        }
        let polled = this.stream.poll_part(cx);
        match &polled {
            Poll::Pending => this.phase.enter(Phase::Upstream),
            Poll::Ready(Some((Ok(_), false))) => this.phase.enter(Phase::Stream),
            Poll::Ready(Some((Err(error), _))) => {
                if let Some(stream) = this.stream.take() {
                    stream.fail(*error);
                }
            }
            Poll::Ready(_) => this.finish(),
        }
        polled.map(|part| part.map(|(part, _)| part))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_finished() && self.held.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        add_held(self.stream.size_hint(), &self.held)
    }
}

impl Drop for AnswerBody {
    /// A client must not be able to hide a body from the rules by hanging up: the rest is read for
    /// them, without the client. A stream without an end is read until the check is about to end.
    fn drop(&mut self) {
        let Some(mut stream) = self.stream.take() else { return };
        let settle = stream.settle.as_ref().filter(|settle| settle.awaits_body());
        let Some(client) = settle.and_then(PendingSettle::client).map(Arc::clone) else { return };
        let Some(deadline) = settle.and_then(PendingSettle::deadline) else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        client.on_gone();
        runtime.spawn(async move {
            let server = Arc::clone(&stream.server);
            let mut deadline = pin!(sleep_until(deadline.at));
            while stream.settle.as_ref().is_some_and(PendingSettle::awaits_body) {
                let part = tokio::select! {
                    part = poll_fn(|cx| stream.poll_part(cx)) => part,
                    () = server.connections.wait_until_closed() => return,
                    () = &mut deadline => return,
                };
                match part {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return stream.fail(error),
                    None => break,
                }
            }
        });
    }
}
