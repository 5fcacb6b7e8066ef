//! Why an upstream gave no response, or not the whole of it.

use hyper::http::StatusCode;

use crate::http_wire::problem::Problem;
use crate::observe::proxy_metrics::UpstreamCause;

/// The status in the outcome of a request whose client hung up before the response began.
pub const CLIENT_GONE: u16 = 499;

/// A failure of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFailure {
    /// No connection could be made. The request was not sent.
    Unreachable,
    /// All connections that are allowed are in use. The request was not sent.
    Busy,
    /// The response did not begin in time.
    Timeout,
    /// The check had to be settled before the response began. The client may have left the
    /// upstream no time for it.
    HoldOver,
    /// The connection ended, or what arrived is not HTTP.
    Broken,
    /// The body of the request ended early or cannot be read, so the upstream did not get all of
    /// it.
    RequestBody,
    /// The client stopped sending the body of its request.
    RequestTimeout,
    /// The bodies of other requests use all memory for bodies.
    BodyMemory,
    /// The client asks for another protocol, and the upstream speaks only HTTP/2. The request was
    /// not sent.
    NoUpgrade,
}

impl UpstreamFailure {
    /// The response to the client.
    pub fn problem(self) -> Problem {
        match self {
            Self::Unreachable => Problem::new(
                StatusCode::BAD_GATEWAY,
                "upstream-unreachable",
                "the server behind this proxy does not accept connections; try again later",
            ),
            Self::Busy => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "upstream-busy",
                "all connections to the server behind this proxy are in use; try again later",
            )
            .retry_after(1),
            Self::Timeout | Self::HoldOver => Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "upstream-timeout",
                "the server behind this proxy did not answer in time; it may have executed the \
                 request",
            ),
            Self::Broken => Problem::new(
                StatusCode::BAD_GATEWAY,
                "upstream-broken",
                "the server behind this proxy ended the connection before it answered, or did not \
                 answer with HTTP; it may have executed the request",
            ),
            Self::RequestBody => Problem::bad(
                "broken-body",
                "the body of the request ended early, or its chunks are invalid; send it again",
            ),
            Self::RequestTimeout => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "body-timeout",
                "no part of the request's body arrived within first_byte_timeout, or it arrived \
                 more slowly than upload_rate_min, or it took longer than the check of the request \
                 can be settled",
            ),
            Self::BodyMemory => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "body-memory-full",
                "the bodies of other requests use all memory that is meant for them; try again \
                 later",
            )
            .retry_after(1),
            Self::NoUpgrade => Problem::new(
                StatusCode::NOT_IMPLEMENTED,
                "upstream-no-upgrade",
                "the server behind this proxy speaks only HTTP/2, in which a connection cannot \
                 switch to another protocol such as WebSocket",
            ),
        }
    }

    /// How it is counted; none if the upstream did not fail.
    pub fn cause(self) -> Option<UpstreamCause> {
        match self {
            Self::Unreachable => Some(UpstreamCause::Unreachable),
            Self::Busy => Some(UpstreamCause::Busy),
            Self::Timeout => Some(UpstreamCause::Timeout),
            Self::Broken => Some(UpstreamCause::Broken),
            Self::HoldOver
            | Self::RequestBody
            | Self::RequestTimeout
            | Self::BodyMemory
            | Self::NoUpgrade => None,
        }
    }

    /// The status in the outcome: that of the response to the client.
    pub fn outcome_status(self) -> u16 {
        self.problem().status.as_u16()
    }

    /// Whether the upstream gets no requests for a while. A connection that breaks says nothing
    /// about the next one.
    pub fn marks_down(self) -> bool {
        matches!(self, Self::Unreachable | Self::Timeout)
    }
}
