//! Responses to clients: those of upstreams, and those that are made here.

use bytes::Bytes;
use catraca::Decision;
use http_body_util::{Either, Full};
use hyper::http::{HeaderValue, Response, header};

use super::answer_body::AnswerBody;
use super::proxied_connection::ProxiedConnection;
use super::request_head;
use crate::config::DenialFormat;
use crate::http_wire::problem::Problem;
use crate::http_wire::{cors, denial};
use crate::observe::proxy_metrics::ResponseSource;

/// The body of a response: our own, or that of an upstream.
pub type ProxyBody = Either<Full<Bytes>, AnswerBody>;

/// A response that is made here.
pub enum OwnResponse {
    /// An error.
    Problem(Problem),
    /// A denial.
    Denial(Box<Decision>),
}

impl From<Decision> for OwnResponse {
    fn from(denial: Decision) -> Self {
        Self::Denial(Box::new(denial))
    }
}

impl From<Problem> for OwnResponse {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl OwnResponse {
    /// How it is counted.
    pub fn source(&self) -> ResponseSource {
        match self {
            Self::Problem(_) => ResponseSource::Problem,
            Self::Denial(_) => ResponseSource::Denial,
        }
    }

    /// The response itself, to a request of a page of this origin.
    pub fn to_response(
        &self,
        proxied: &ProxiedConnection,
        origin: Option<&HeaderValue>,
    ) -> Response<ProxyBody> {
        let config = proxied.proxy.context.reloadable.load();
        let settings = &config.process.server;
        let mut response = match self {
            Self::Problem(problem) => {
                let mut response = match settings.denial {
                    DenialFormat::ProblemXml => denial::problem_xml(problem),
                    _ => problem.to_response(),
                };
                if request_head::must_close(problem) {
                    close_after(&mut response);
                }
                response
            }
            Self::Denial(decision) => denial::decision_response(settings, decision),
        };
        cors::write(settings, origin, response.headers_mut());
        response.map(whole_body)
    }
}

/// Closes the connection after a response.
pub fn close_after<B>(response: &mut Response<B>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// The body of a response that is made here, which is never a stream.
fn whole_body<S>(body: Either<Full<Bytes>, S>) -> ProxyBody {
    match body {
        Either::Left(whole) => Either::Left(whole),
        Either::Right(_) => Either::Left(Full::default()),
    }
}
