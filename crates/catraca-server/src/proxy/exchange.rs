//! One exchange with an upstream: sends a request, and waits for the head of its response.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, Incoming};
use hyper::http::{Request, Response, header};

use super::failure::UpstreamFailure;
use super::request_channel::RequestChannel;
use super::upload_body::{UploadBody, UploadState};
use super::upload_rate::UploadRateMin;
use super::upstream::Upstream;
use super::upstream_connection::SendError;
use crate::config::ProxyTimeouts;

/// So many times an upstream may refuse a request, which is then sent to the next one.
const REFUSALS_MAX: usize = 3;

/// A connection that has a request, and goes back to its upstream after the response.
pub struct LiveConnection {
    connection: RequestChannel,
    upstream: Arc<Upstream>,
}

impl LiveConnection {
    /// Moves bytes.
    pub fn poll_driver(&mut self, cx: &mut Context<'_>) {
        self.connection.poll_driver(cx);
    }

    /// The next part of the body of the response.
    pub fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.connection.poll_body(body, cx)
    }

    /// The response is complete: the connection is free for the next request.
    pub fn finish(self) {
        if let Some(connection) = self.connection.into_idle() {
            self.upstream.give_back(connection);
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
    let mut refusals = 0;
    loop {
        let upgrades = request.headers().contains_key(header::UPGRADE);
        let found = upstream.connection(needs_new, upgrades, timeouts).await;
        let (mut connection, is_new) = match found {
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
            Err(HeadError::Refused(unsent)) => {
                refusals += 1;
                if refusals == REFUSALS_MAX {
                    return Err((UpstreamFailure::Busy, Some(unsent)));
                }
                request = *unsent;
            }
            // It closed the connection when the request was on its way. A request that only reads
            // may be sent again.
            Err(HeadError::Failed(UpstreamFailure::Broken, _)) if spare.is_some() => {
                may_repeat = false;
                needs_new = true;
                request = spare.unwrap_or_default();
            }
            Err(HeadError::Failed(failure, why)) => {
                if failure == UpstreamFailure::Timeout {
                    connection.on_timeout();
                }
                if let Some(why) = why {
                    upstream.log_failure(&why);
                    if failure == UpstreamFailure::Broken {
                        upstream.on_broken(timeouts.down);
                    }
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
    Refused(Box<Request<UploadBody>>),
    /// The text says why, if the upstream is to blame and no other request has said so.
    Failed(UpstreamFailure, Option<String>),
}

async fn wait_for_head(
    connection: &mut RequestChannel,
    request: Request<UploadBody>,
    upload: Option<&UploadState>,
    timeouts: &ProxyTimeouts,
) -> Result<Response<Incoming>, HeadError> {
    let mut response = pin!(connection.send(request));
    connection.timer().restart(timeouts.first_byte);
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
            connection.timer().on_progress();
            if upload.is_some_and(|upload| upload.is_below(rate_min)) {
                let failure = UpstreamFailure::RequestTimeout;
                return Poll::Ready(Err(HeadError::Failed(failure, None)));
            }
        }
        connection.timer().poll_expired(cx).map(|()| Err(timeout_error(upload, timeouts)))
    })
    .await
}

fn head_error(error: SendError, upload: Option<&UploadState>) -> HeadError {
    match error {
        SendError::Unsent(request) => HeadError::Unsent(request),
        SendError::Refused(request) => HeadError::Refused(request),
        SendError::Broken { .. } if upload.is_some_and(UploadState::has_failed) => {
            HeadError::Failed(UpstreamFailure::RequestBody, None)
        }
        SendError::Broken { error, is_first } => {
            HeadError::Failed(UpstreamFailure::Broken, is_first.then(|| error.to_string()))
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
