//! Why a request does not reach the service, and the default response to it.

use std::time::Duration;

use bytes::Bytes;
use catraca_core::decision::{Decision, Reason};
use catraca_core::refusal::Refusal;
use catraca_core::time::Span;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::error_log::ErrorLog;
use super::extract::ExtractError;
use crate::error::Error;
use crate::http_response::{PROBLEM_JSON, ProblemDenial, response_status};

/// How long a client shall wait if the limiter failed, which is over soon in most cases.
const FAILURE_RETRY: Span = Span::from_secs(1);

/// The codes of refusals that the values in a request cause.
const CODES_OF_CLIENTS: [&str; 7] = [
    "attribute-too-long",
    "bad-attribute",
    "bad-cost",
    "bad-name",
    "bad-text",
    "missing-attribute",
    "ticket-too-large",
];

/// Why a request does not reach the service.
#[derive(Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// A policy, a block or a list denies it.
    Denial(Box<Decision>),
    /// The check is invalid, or the limiter failed.
    Failure(Error),
    /// An attribute of the caller cannot be read.
    Extract(ExtractError),
}

/// The body of a rejection that is not a denial (RFC 9457).
#[derive(Serialize)]
struct FailureProblem<'a> {
    title: Option<&'a str>,
    status: u16,
    code: &'a str,
    /// As the reason of a decision; only if there is no decision because the limiter failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    detail: String,
}

impl Rejection {
    /// The decision, if the request was denied.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Denial(decision) => Some(decision),
            _ => None,
        }
    }

    /// The status of the default response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Denial(decision) => response_status(decision),
            Self::Failure(Error::Refused(refusal)) => refusal_status(refusal),
            Self::Failure(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Extract(ExtractError::NoPeerAddress) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Extract(ExtractError::Request(error)) => error.status(),
            Self::Extract(ExtractError::AmbiguousPath(_)) => StatusCode::BAD_REQUEST,
            Self::Extract(ExtractError::Custom { status, .. }) => *status,
        }
    }

    /// How long the client shall wait before it tries again; `None` if waiting does not help.
    pub fn retry_after(&self) -> Option<Duration> {
        self.wait().map(Duration::from)
    }

    pub(super) fn wait(&self) -> Option<Span> {
        match self {
            Self::Denial(decision) => decision.retry_after,
            _ if self.is_limiter_failure() => Some(FAILURE_RETRY),
            _ => None,
        }
    }

    /// Whether there is no decision because the store or the server did not answer.
    const fn is_limiter_failure(&self) -> bool {
        matches!(self, Self::Failure(error) if !matches!(error, Error::Refused(_)))
    }

    /// The default response: a problem, without the rate-limit headers, which the layer adds.
    pub fn to_response(&self) -> Response<Bytes> {
        let status = self.status();
        let body = match self {
            Self::Denial(decision) => ProblemDenial::new(decision, status).to_json(),
            _ => self.failure_json(status),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn failure_json(&self, status: StatusCode) -> Vec<u8> {
        let problem = FailureProblem {
            title: status.canonical_reason(),
            status: status.as_u16(),
            code: self.code(),
            reason: self.is_limiter_failure().then_some(Reason::Unavailable.as_str()),
            detail: self.detail(),
        };
        serde_json::to_vec(&problem).unwrap_or_default()
    }

    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denial(decision) => decision.reason.as_str(),
            Self::Failure(Error::Refused(refusal)) => refusal.code(),
            Self::Failure(_) => "limiter-failed",
            Self::Extract(ExtractError::NoPeerAddress) => "no-peer-address",
            Self::Extract(ExtractError::Request(error)) => error.code(),
            Self::Extract(ExtractError::AmbiguousPath(_)) => "ambiguous-path",
            Self::Extract(ExtractError::Custom { code, .. }) => code,
        }
    }

    pub(super) fn detail(&self) -> String {
        match self {
            Self::Denial(decision) => decision.message.clone().unwrap_or_default(),
            // What a server says about its client is not for others. It is in the log.
            Self::Failure(Error::Refused(Refusal::ByServer { .. }))
                if self.status().is_server_error() =>
            {
                "the request could not be checked; the log of the application says why".to_owned()
            }
            Self::Failure(Error::Refused(refusal)) => refusal.to_string(),
            // The error may name servers, which are not for clients. It is in the log.
            Self::Failure(_) => {
                "the request was not checked: the rate limiter did not answer".to_owned()
            }
            Self::Extract(error) => error.to_string(),
        }
    }

    /// Reports what an operator must fix. Denials and mistakes of clients are not reported.
    pub(super) fn log(&self, log: &ErrorLog) {
        match self {
            Self::Failure(error) if self.status().is_server_error() => log.on_rejected(error),
            Self::Extract(error) if self.status().is_server_error() => log.on_rejected(error),
            _ => {}
        }
    }
}

/// Clients choose the values in a request. The names of attributes, the gate, the policies and the
/// key of a server's client are those of the program.
fn refusal_status(refusal: &Refusal) -> StatusCode {
    let code = match refusal {
        Refusal::ByServer { code, .. } => code.as_str(),
        _ => refusal.code(),
    };
    match CODES_OF_CLIENTS.contains(&code) {
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
