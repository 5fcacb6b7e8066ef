//! One exchange with an upstream: sends a request, and waits for the head of its response.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::http::{Request, Response};

use super::failure::UpstreamFailure;
use super::idle_timer::IdleTimer;
use super::upload_body::{UploadBody, UploadState};
use super::upload_rate::UploadRateMin;
use super::upstream::Upstream;
use super::upstream_connection::{SendError, UpstreamConnection};
use crate::config::ProxyTimeouts;

/// A connection that has a request, and goes back to its upstream after the response.
pub struct LiveConnection {
    connection: UpstreamConnection,
    upstream: Arc<Upstream>,
}

impl LiveConnection {
    /// Moves bytes.
    pub fn poll_driver(&mut self, cx: &mut Context<'_>) {
        self.connection.poll_driver(cx);
    }

    /// Keeps the connection for the next request, if it can take one. It cannot if the upstream
    /// closed it, or answered before it got the whole request.
    pub fn finish(mut self, cx: &mut Context<'_>) {
        if self.connection.is_usable(cx) {
            self.upstream.give_back(self.connection);
        }
    }
}

/// Sends a request to the first of the upstreams that takes it.
pub async fn send(
    upstreams: &[Arc<Upstream>],
    mut request: Request<UploadBody>,
    upload: Option<&UploadState>,
    timeouts: &ProxyTimeouts,
) -> Result<(Response<Incoming>, LiveConnection), UpstreamFailure> {
    let mut failure = UpstreamFailure::Unreachable;
    for upstream in upstreams {
        match send_to(upstream, request, upload, timeouts).await {
            Ok(answer) => {
                upstream.mark_up();
                return Ok(answer);
            }
            Err((why, unsent)) => {
                if why.marks_down() {
                    upstream.mark_down(timeouts.down);
                } else if why == UpstreamFailure::Broken {
                    upstream.on_broken(timeouts.down);
                }
                // Only what was not sent at all may go to another upstream.
                let Some(unsent) = unsent else { return Err(why) };
                failure = why;
                request = *unsent;
            }
        }
    }
    Err(failure)
}

/// The failure, and the request if it was not sent.
type SendFailure = (UpstreamFailure, Option<Box<Request<UploadBody>>>);

async fn send_to(
    upstream: &Arc<Upstream>,
    mut request: Request<UploadBody>,
    upload: Option<&UploadState>,
    timeouts: &ProxyTimeouts,
) -> Result<(Response<Incoming>, LiveConnection), SendFailure> {
    let mut may_repeat = upload.is_none() && request.method().is_safe();
    let mut needs_new = false;
    loop {
        let (mut connection, is_new) = match upstream.connection(needs_new, timeouts).await {
            Ok(found) => found,
            Err(failure) => return Err((failure, Some(Box::new(request)))),
        };
        let spare = (may_repeat && !is_new).then(|| copy_of(&request));
        match wait_for_head(&mut connection, request, upload, timeouts).await {
            Ok(response) => {
                let upstream = Arc::clone(upstream);
                return Ok((response, LiveConnection { connection, upstream }));
            }
            // The upstream closed an idle connection at this moment.
            Err(HeadError::Unsent(unsent)) if !is_new => request = *unsent,
            Err(HeadError::Unsent(unsent)) => {
                return Err((UpstreamFailure::Unreachable, Some(unsent)));
            }
            // It closed the connection when the request was on its way. A request that only reads
            // may be sent again.
            Err(HeadError::Failed(UpstreamFailure::Broken, _)) if spare.is_some() => {
                may_repeat = false;
                needs_new = true;
                request = spare.unwrap_or_default();
            }
            Err(HeadError::Failed(failure, why)) => {
                if let Some(why) = why {
                    upstream.log_failure(&why);
                }
                return Err((failure, None));
            }
        }
    }
}

/// The same request, for one without a body.
fn copy_of(request: &Request<UploadBody>) -> Request<UploadBody> {
    let mut copy = Request::new(UploadBody::default());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

enum HeadError {
    Unsent(Box<Request<UploadBody>>),
    Failed(UpstreamFailure, Option<String>),
}

async fn wait_for_head(
    connection: &mut UpstreamConnection,
    request: Request<UploadBody>,
    upload: Option<&UploadState>,
    timeouts: &ProxyTimeouts,
) -> Result<Response<Incoming>, HeadError> {
    let mut response = pin!(connection.send(request));
    let mut timer = IdleTimer::new(timeouts.first_byte);
    let rate_min = UploadRateMin::new(timeouts);
    let mut parts = 0;
    poll_fn(|cx| {
        connection.poll_driver(cx);
        if let Poll::Ready(response) = response.as_mut().poll(cx) {
            return Poll::Ready(response.map_err(|error| head_error(error, upload)));
        }
        let read = upload.map_or(0, UploadState::parts);
        if read != parts {
            parts = read;
            timer.on_progress();
            if upload.is_some_and(|upload| upload.is_below(rate_min)) {
                let failure = UpstreamFailure::RequestTimeout;
                return Poll::Ready(Err(HeadError::Failed(failure, None)));
            }
        }
        timer.poll_expired(cx).map(|()| Err(timeout_error(upload, timeouts)))
    })
    .await
}

fn head_error(error: SendError, upload: Option<&UploadState>) -> HeadError {
    match error {
        SendError::Unsent(request) => HeadError::Unsent(request),
        SendError::Broken(_) if upload.is_some_and(UploadState::has_failed) => {
            HeadError::Failed(UpstreamFailure::RequestBody, None)
        }
        SendError::Broken(error) => {
            HeadError::Failed(UpstreamFailure::Broken, Some(error.to_string()))
        }
    }
}

fn timeout_error(upload: Option<&UploadState>, timeouts: &ProxyTimeouts) -> HeadError {
    if upload.is_some_and(UploadState::is_awaited) {
        return HeadError::Failed(UpstreamFailure::RequestTimeout, None);
    }
    let why = format!("no response within {:?}", timeouts.first_byte);
    HeadError::Failed(UpstreamFailure::Timeout, Some(why))
}
