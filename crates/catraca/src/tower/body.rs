//! The body of a response: that of the service, which is settled at its end, or that of a
//! rejection.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::pending_settle::PendingSettle;

pin_project! {
    /// The body of a response. It passes every frame on at once, and settles the check when it ends
    /// or is dropped.
    pub struct LimitedBody<B> {
        #[pin]
        kind: BodyKind<B>,
    }
}

pin_project! {
    #[project = BodyKindProjection]
    enum BodyKind<B> {
        // The body of the service; `settle` is dropped at its end.
        Service { #[pin] body: B, settle: Option<PendingSettle> },
        // The body of a rejection, until it is sent.
        Rejection { bytes: Option<Bytes> },
    }
}

impl<B: Body<Data = Bytes>> LimitedBody<B> {
    pub(super) fn new(body: B, settle: Option<PendingSettle>) -> Self {
        // A server does not poll an empty body, and may drop it late.
        let settle = settle.filter(|_| !body.is_end_stream());
        Self { kind: BodyKind::Service { body, settle } }
    }

    pub(super) fn of_rejection(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self { kind: BodyKind::Rejection { bytes } }
    }
}

impl<B: Body<Data = Bytes>> Body for LimitedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            BodyKindProjection::Service { mut body, settle } => {
                let polled = body.as_mut().poll_frame(context);
                match &polled {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Some(settle) = settle.as_mut() {
                            settle.on_frame(frame);
                        }
                        if body.is_end_stream() {
                            finish(settle);
                        }
                    }
                    Poll::Ready(Some(Err(_))) => *settle = None,
                    Poll::Ready(None) => finish(settle),
                }
                polled
            }
            BodyKindProjection::Rejection { bytes } => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Service { body, .. } => body.is_end_stream(),
            BodyKind::Rejection { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Service { body, .. } => body.size_hint(),
            BodyKind::Rejection { bytes } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
        }
    }
}

/// Settles a check whose response is complete.
fn finish(settle: &mut Option<PendingSettle>) {
    if let Some(mut settle) = settle.take() {
        settle.on_end();
    }
}
