//! The body of an upstream's response while it arrives, with the connection that receives it and
//! the settle that reads it.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::exchange::LiveConnection;
use super::idle_timer::IdleTimer;
use super::pending_settle::PendingSettle;
use super::settle_deadline::HOLD_OVER;
use crate::context::ServerContext;
use crate::observe::proxy_metrics::UpstreamCause;

/// Why a response breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The connection to the upstream ended.
    Broken,
    /// Nothing arrived for `idle_timeout`.
    Timeout,
    /// The check had to be settled, and its lease counts the response.
    HoldOver,
}

impl AnswerError {
    /// How the outcome names it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Broken => "upstream-broken",
            Self::Timeout => "upstream-timeout",
            Self::HoldOver => HOLD_OVER,
        }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for AnswerError {}

/// A response that arrives.
pub struct AnswerStream {
    /// The body.
    pub incoming: Incoming,
    /// The connection that receives it.
    pub live: LiveConnection,
    /// The settle of its check; absent if the check has no ticket.
    pub settle: Option<PendingSettle>,
    /// Ends it if nothing arrives.
    pub timer: IdleTimer,
    /// Counts failures.
    pub server: Arc<ServerContext>,
}

impl AnswerStream {
    /// The next part; none at the end.
    pub fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        match self.live.poll_body(&mut self.incoming, cx) {
            Poll::Pending => self.timer.poll_expired(cx).map(|()| Some(Err(AnswerError::Timeout))),
            Poll::Ready(part) => {
                self.timer.on_progress();
                let part = part.map(|part| part.map_err(|_| AnswerError::Broken));
                if let Some(settle) = &mut self.settle {
                    let data = part.as_ref().and_then(|part| part.as_ref().ok()?.data_ref());
                    settle.on_data(data.map_or(&[], |data| data));
                    let tail = part.as_ref().and_then(|part| part.as_ref().ok()?.trailers_ref());
                    if let Some(trailers) = tail {
                        settle.on_trailers(trailers);
                    }
                    let is_last = matches!(part, Some(Ok(_))) && self.incoming.is_end_stream();
                    if is_last || part.is_none() {
                        settle.on_body_end();
                    }
                }
                Poll::Ready(part)
            }
        }
    }

    /// Whether no part follows.
    pub fn is_over(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// How much follows.
    pub fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }

    /// The response is complete: the connection is free for the next request. Returns the settle.
    pub fn finish(self) -> Option<PendingSettle> {
        self.live.finish();
        self.settle
    }

    /// The response breaks off.
    pub fn fail(self, error: AnswerError) {
        let cause = match error {
            AnswerError::Broken => Some(UpstreamCause::BrokenOff),
            AnswerError::Timeout => Some(UpstreamCause::Silent),
            AnswerError::HoldOver => None,
        };
        if let Some(cause) = cause {
            self.server.proxy_metrics.note_upstream_failure(cause);
        }
        if let Some(mut settle) = self.settle {
            settle.on_broken(error.as_str());
        }
    }
}
