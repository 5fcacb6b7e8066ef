//! The start of a request's body, collected because the route reads it before the check.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use catraca::core::catalog::Route;
use catraca::http_request::{RequestBody, RequestError};
use hyper::body::{Body, Frame, Incoming};

use super::failure::UpstreamFailure;
use super::idle_timer::IdleTimer;
use super::request_limits::BodyMemory;
use super::request_trailers::TrailerRule;
use super::upload_rate::{UploadRate, UploadRateMin};
use crate::config::ProxyTimeouts;

/// A body of which a part may have been read.
pub struct CollectedBody {
    /// What was read, in its order.
    pub parts: VecDeque<Frame<Bytes>>,
    /// What follows.
    pub rest: Incoming,
    /// Which trailers pass; none of them if it is absent.
    pub trailers: Option<TrailerRule>,
    /// The bytes of a whole body that was read, which are also its only part.
    whole: Option<Bytes>,
    /// The number of bytes as announced; absent if the head does not state it.
    announced: Option<u64>,
    /// Of the parts.
    pub memory: BodyMemory,
}

impl CollectedBody {
    /// Reads as much as the route needs, at most `bytes_max`; nothing for most routes. The client
    /// must send each part within `first_byte`, and not too slowly.
    pub async fn read(
        body: Incoming,
        route: &Route,
        bytes_max: usize,
        timeouts: &ProxyTimeouts,
        memory: BodyMemory,
    ) -> Result<Self, UpstreamFailure> {
        let announced = body.size_hint().exact();
        let parts = VecDeque::new();
        let mut collected =
            Self { parts, rest: body, trailers: None, whole: None, announced, memory };
        let fits = announced.unwrap_or(0) <= bytes_max as u64;
        let needs_length = route.reads_body_length() && announced.is_none();
        if (route.reads_body() && fits) || needs_length {
            Box::pin(collected.collect(bytes_max, timeouts)).await?;
        }
        Ok(collected)
    }

    /// Reads the body to its end, or until it is longer than routes read.
    async fn collect(
        &mut self,
        bytes_max: usize,
        timeouts: &ProxyTimeouts,
    ) -> Result<(), UpstreamFailure> {
        let mut timer = IdleTimer::new(timeouts.first_byte);
        let rate_min = UploadRateMin::new(timeouts);
        let mut rate = UploadRate::default();
        let mut bytes = Vec::new();
        let mut is_whole = false;
        while bytes.len() <= bytes_max {
            let part = poll_fn(|cx| match Pin::new(&mut self.rest).poll_frame(cx) {
                Poll::Ready(part) => {
                    let part = part.transpose().map_err(|_| UpstreamFailure::RequestBody);
                    Poll::Ready(part)
                }
                Poll::Pending => {
                    rate.on_wait();
                    ready!(timer.poll_expired(cx));
                    Poll::Ready(Err(UpstreamFailure::RequestTimeout))
                }
            });
            let Some(part) = part.await? else {
                is_whole = true;
                break;
            };
            timer.on_progress();
            rate.on_part(part.data_ref().map_or(0, Bytes::len));
            if rate.is_below(rate_min) {
                return Err(UpstreamFailure::RequestTimeout);
            }
            // Trailers are not passed on. A part is copied: it may be a small piece of a large
            // buffer, which it would keep.
            if let Some(data) = part.data_ref() {
                if !self.memory.try_take(data.len()) {
                    return Err(UpstreamFailure::BodyMemory);
                }
                bytes.extend_from_slice(data);
            }
        }
        let bytes = Bytes::from(bytes);
        self.whole = is_whole.then(|| bytes.clone());
        if !bytes.is_empty() {
            self.parts.push_back(Frame::data(bytes));
        }
        Ok(())
    }

    /// The body as routes read it. A body whose length the route reads, and which neither states it
    /// nor ends within the limit, is an error: more could follow than is charged.
    pub fn as_request_body(&self, route: &Route) -> Result<RequestBody<'_>, RequestError> {
        match (&self.whole, self.announced) {
            (Some(bytes), _) => Ok(RequestBody::Whole(bytes)),
            (None, Some(length)) => Ok(RequestBody::Uncollected { length }),
            (None, None) if route.reads_body_length() => Err(RequestError::BodyTooLarge),
            (None, None) => Ok(RequestBody::Uncollected { length: 0 }),
        }
    }
}
