//! The future of a response: first the check, then the service.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use catraca_core::decision::Decision;
use http::{Request, Response, header};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::LimitedBody;
use super::extract::ExtractError;
use super::outcome_report::OutcomeReport;
use super::pending_check::PendingCheck;
use super::pending_settle::PendingSettle;
use super::rejection::Rejection;
use super::settings::{CheckInput, FailureMode, Settings};
use crate::error::Error;
use crate::http_response::ratelimit_headers;
use crate::limiter::{HeldCheck, Limiter};

pin_project! {
    /// The response to a request.
    pub struct ResponseFuture<S, B, L>
    where
        S: Service<Request<B>>,
        L: Limiter,
        L: 'static,
    {
        #[pin]
        state: ResponseState<S, B, L>,
    }
}

pin_project! {
    #[project = ResponseStateProjection]
    enum ResponseState<S, B, L>
    where
        S: Service<Request<B>>,
        L: Limiter,
        L: 'static,
    {
        // The limiter decides.
        Check { check: PendingCheck<L>, request: Option<(Request<B>, S)> },
        // The service responds.
        Call {
            #[pin]
            future: S::Future,
            settings: Arc<Settings<L>>,
            decision: Option<Decision>,
            settle: Option<PendingSettle>,
        },
        // The attributes of the caller cannot be read.
        Reject { settings: Arc<Settings<L>>, request: Option<(Request<B>, ExtractError)> },
    }
}

impl<S, B, L> ResponseFuture<S, B, L>
where
    S: Service<Request<B>>,
    L: Limiter + 'static,
{
    pub(super) fn new(
        settings: &Arc<Settings<L>>,
        input: Result<Option<CheckInput>, ExtractError>,
        request: Request<B>,
        mut service: S,
    ) -> Self {
        let state = match input {
            Ok(Some(input)) => {
                let check = PendingCheck::new(settings, input);
                ResponseState::Check { check, request: Some((request, service)) }
            }
            Ok(None) => ResponseState::Call {
                future: service.call(request),
                settings: Arc::clone(settings),
                decision: None,
                settle: None,
            },
            Err(error) => {
                let settings = Arc::clone(settings);
                ResponseState::Reject { settings, request: Some((request, error)) }
            }
        };
        Self { state }
    }
}

impl<S, B, L, R> Future for ResponseFuture<S, B, L>
where
    S: Service<Request<B>, Response = Response<R>>,
    L: Limiter + 'static,
    R: Body<Data = Bytes>,
{
    type Output = Result<Response<LimitedBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                ResponseStateProjection::Check { check, request } => {
                    let decided = ready!(check.poll(context));
                    let settings = Arc::clone(check.settings());
                    let Some((request, service)) = request.take() else { return Poll::Pending };
                    match admit(&settings, decided) {
                        Ok(checked) => call_service(settings, checked, request, service),
                        Err(rejection) => {
                            return Poll::Ready(Ok(reject(&settings, rejection, request)));
                        }
                    }
                }
                ResponseStateProjection::Call { future, settings, decision, settle } => {
                    let response = ready!(future.poll(context));
                    let settle = settle.take();
                    // An error drops `settle`: the outcome has no status.
                    return Poll::Ready(
                        response
                            .map(|response| finish(settings, decision.as_ref(), settle, response)),
                    );
                }
                ResponseStateProjection::Reject { settings, request } => {
                    let Some((request, error)) = request.take() else { return Poll::Pending };
                    let rejection = Rejection::Extract(error);
                    return Poll::Ready(Ok(reject(settings, rejection, request)));
                }
            };
            state.set(next);
        }
    }
}

/// The check of an admitted request; `None` if it passes because the limiter failed.
fn admit<L>(
    settings: &Settings<L>,
    checked: Result<HeldCheck, Error>,
) -> Result<Option<HeldCheck>, Rejection> {
    match checked {
        Ok(checked) if checked.decision.allowed => Ok(Some(checked)),
        Ok(checked) => Err(Rejection::Denial(Box::new(checked.decision))),
        Err(error @ Error::Refused(_)) => Err(Rejection::Failure(error)),
        Err(error) if settings.options.on_failure == FailureMode::Open => {
            settings.error_log.on_unchecked(&error);
            Ok(None)
        }
        Err(error) => Err(Rejection::Failure(error)),
    }
}

/// Calls the service with the decision in the extensions of the request.
fn call_service<S, B, L>(
    settings: Arc<Settings<L>>,
    checked: Option<HeldCheck>,
    mut request: Request<B>,
    mut service: S,
) -> ResponseState<S, B, L>
where
    S: Service<Request<B>>,
    L: Limiter + 'static,
{
    let report = OutcomeReport::default();
    request.extensions_mut().insert(report.clone());
    let mut settle = None;
    let decision = checked.map(|HeldCheck { decision, ticket }| {
        request.extensions_mut().insert(decision.clone());
        // Before the call: if it panics, the check is settled.
        settle = ticket.map(|ticket| PendingSettle::new(&settings, ticket, report));
        decision
    });
    ResponseState::Call { future: service.call(request), settings, decision, settle }
}

/// Adds the headers of the decision, and settles at the end of the body.
fn finish<R, L>(
    settings: &Settings<L>,
    decision: Option<&Decision>,
    mut settle: Option<PendingSettle>,
    response: Response<R>,
) -> Response<LimitedBody<R>>
where
    R: Body<Data = Bytes>,
{
    let (mut parts, body) = response.into_parts();
    if let Some(settle) = &mut settle {
        settle.on_head(settings, &parts);
    }
    if let Some(decision) = decision {
        ratelimit_headers::write(decision, settings.options.x_ratelimit, &mut parts.headers);
    }
    Response::from_parts(parts, LimitedBody::new(body, settle))
}

/// The response to a request that does not reach the service.
fn reject<B, R, L>(
    settings: &Settings<L>,
    rejection: Rejection,
    request: Request<B>,
) -> Response<LimitedBody<R>>
where
    R: Body<Data = Bytes>,
{
    rejection.log(&settings.error_log);
    let (request, _body) = request.into_parts();
    let mut response = match &settings.options.respond {
        Some(respond) => respond(&rejection, &request),
        None => rejection.to_response(),
    };
    let headers = response.headers_mut();
    if let Some(decision) = rejection.decision() {
        ratelimit_headers::write(decision, settings.options.x_ratelimit, headers);
    } else if let Some(wait) = rejection.wait() {
        headers.entry(header::RETRY_AFTER).or_insert_with(|| wait.ceil_secs().into());
    }
    response.map(LimitedBody::of_rejection)
}
