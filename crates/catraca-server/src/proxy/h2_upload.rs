//! The body of a request to an upstream that speaks HTTP/2.
//!
//! hyper reads it in a task of its own, and the request keeps a handle of it. With the handle the
//! request learns of each part, ends the body when the exchange is over, and takes the body back if
//! the upstream has certainly not processed the request.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::upload_body::UploadBody;

/// The most bytes of a body that are kept so that it can be sent again.
const REPLAY_BYTES_MAX: usize = 64 << 10;

/// The body as hyper reads it.
pub struct H2UploadBody(Arc<Mutex<SharedUpload>>);

/// The body as its request sees it. Dropped when the exchange is over, which ends the body.
pub struct UploadHandle(Arc<Mutex<SharedUpload>>);

/// With it the task that sends a body learns that the exchange is over.
pub struct UploadEnd(Arc<Mutex<SharedUpload>>);

thread_local! {
    /// The body that this thread asked for a part last.
    static LAST_POLLED: RefCell<Option<UploadEnd>> = const { RefCell::new(None) };
}

/// The body that was asked for a part last on this thread. hyper does so before it starts the task
/// that sends the rest of that body.
pub fn take_last_polled() -> Option<UploadEnd> {
    LAST_POLLED.take()
}

impl UploadEnd {
    /// Whether the exchange is over; wakes this task when it is.
    pub fn is_over(&self, cx: &Context<'_>) -> bool {
        let mut shared = self.0.lock();
        if shared.body.is_some() {
            shared.sender = Some(cx.waker().clone());
        }
        shared.body.is_none()
    }
}

struct SharedUpload {
    /// Absent when the exchange is over.
    body: Option<UploadBody>,
    /// The task that sends the body.
    sender: Option<Waker>,
    /// What hyper has read; absent if that cannot be sent again.
    sent: Option<SentParts>,
    /// hyper's task while it waits for the next part.
    reader: Option<Waker>,
    /// The task of the request while it waits for the head of the response.
    request: Option<Waker>,
    /// Whether the response has begun.
    is_answered: bool,
}

#[derive(Default)]
struct SentParts {
    parts: VecDeque<Frame<Bytes>>,
    bytes: usize,
}

impl UploadHandle {
    /// The two sides of a body.
    pub fn new(body: UploadBody) -> (H2UploadBody, Self) {
        let sent = Some(SentParts::default());
        let shared = SharedUpload {
            body: Some(body),
            sender: None,
            sent,
            reader: None,
            request: None,
            is_answered: false,
        };
        let shared = Arc::new(Mutex::new(shared));
        (H2UploadBody(Arc::clone(&shared)), Self(shared))
    }

    /// Wakes this task when the next part is read.
    pub fn wake_at_next_part(&self, cx: &Context<'_>) {
        let mut shared = self.0.lock();
        if !shared.is_answered {
            shared.request = Some(cx.waker().clone());
        }
    }

    /// The response has begun: the body is not sent again, and its parts are not kept.
    pub fn on_head(&self) {
        let mut shared = self.0.lock();
        shared.is_answered = true;
        shared.sent = None;
        shared.request = None;
    }

    /// The body as it was before it was sent; none if too much of it was read.
    pub fn take_back(&self) -> Option<UploadBody> {
        let mut shared = self.0.lock();
        let sent = shared.sent.take()?;
        let mut body = shared.body.take()?;
        body.put_back(sent.parts);
        Some(body)
    }
}

impl Drop for UploadHandle {
    fn drop(&mut self) {
        let mut shared = self.0.lock();
        let body = shared.body.take();
        let wakers = [shared.reader.take(), shared.sender.take()];
        drop(shared);
        // hyper finds that the body is gone, or its task ends: the stream is reset if it has not
        // ended.
        wakers.into_iter().flatten().for_each(Waker::wake);
        drop(body);
    }
}

type BoxedError = Box<dyn Error + Send + Sync>;

impl SharedUpload {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxedError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Some(Err(cancel()))) };
        let polled = Pin::new(body).poll_frame(cx);
        self.reader = polled.is_pending().then(|| cx.waker().clone());
        if let Poll::Ready(Some(Ok(part))) = &polled {
            self.remember(part);
        }
        if polled.is_ready()
            && let Some(request) = self.request.take()
        {
            request.wake();
        }
        // The upstream learns only that the request has ended.
        polled.map_err(|_| cancel())
    }

    fn remember(&mut self, part: &Frame<Bytes>) {
        let Some(sent) = &mut self.sent else { return };
        sent.bytes += part.data_ref().map_or(0, Bytes::len);
        if sent.bytes > REPLAY_BYTES_MAX {
            sent.parts.clear();
            self.sent = None;
        } else if let Some(data) = part.data_ref() {
            sent.parts.push_back(Frame::data(data.clone()));
        } else if let Some(trailers) = part.trailers_ref() {
            sent.parts.push_back(Frame::trailers(trailers.clone()));
        }
    }
}

/// Makes hyper reset the stream with `CANCEL`.
fn cancel() -> BoxedError {
    Box::new(h2::Error::from(h2::Reason::CANCEL))
}

impl Body for H2UploadBody {
    type Data = Bytes;
    type Error = BoxedError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        LAST_POLLED.set(Some(UploadEnd(Arc::clone(&self.0))));
        self.0.lock().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().body.as_ref().is_some_and(UploadBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let shared = self.0.lock();
        shared.body.as_ref().map_or_else(SizeHint::default, UploadBody::size_hint)
    }
}
