//! Serves one request: finds its route, checks it, and hands it to `forward`.

use std::sync::Arc;
use std::time::Instant;

use catraca::http_outcome::OutcomeNeeds;
use catraca::http_request::RequestParts;
use catraca::{Decision, Error};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{Request, Response};

use super::admission::{self, CheckInput};
use super::collected_body::CollectedBody;
use super::failure::UpstreamFailure;
use super::forward::AdmittedRequest;
use super::pending_settle::PendingSettle;
use super::proxied_connection::ProxiedConnection;
use super::request_head;
use super::responses::{OwnResponse, ProxyBody, close_after};
use crate::http_wire::problem::Problem;
use crate::listener::Phase;
use crate::observe::call_metrics::CallResult;

/// Serves a request.
pub async fn respond(
    request: Request<Incoming>,
    proxied: Arc<ProxiedConnection>,
) -> Response<ProxyBody> {
    let is_length_ambiguous = proxied.begin_request();
    let (head, body) = request.into_parts();
    let mut response = match handle(head, body, is_length_ambiguous, &proxied).await {
        Ok(response) => response,
        Err(own) => {
            // hyper closes the connection after the response if a part of the body was not read.
            // It decides when it finds that the body was dropped.
            tokio::task::yield_now().await;
            proxied.begin_phase().enter(Phase::Answer);
            own.to_response(&proxied)
        }
    };
    if proxied.connection().is_stopping() {
        close_after(&mut response);
    }
    response
}

async fn handle(
    head: Parts,
    body: Incoming,
    is_length_ambiguous: bool,
    proxied: &Arc<ProxiedConnection>,
) -> Result<Response<ProxyBody>, OwnResponse> {
    let started = Instant::now();
    let phase = Some(proxied.begin_phase());
    let config = proxied.proxy.context.reloadable.load_full();
    let catalog = proxied.proxy.context.app.catalog();
    let target = request_head::check(&head, is_length_ambiguous)?;
    let client = admission::client_address(&config, proxied.connection().peer, &head.headers);
    let routed = admission::find_route(&catalog, &head, &target)?;
    let timeout = config.process.proxy.first_byte_timeout;
    let bytes_max = config.process.proxy.body_bytes_max;
    let body = CollectedBody::read(body, routed.route, bytes_max, timeout).await;
    let body = body.map_err(|failure| failure.problem())?;
    let claims = config.claims_for(routed.route, &head.headers).map_err(Problem::from)?;
    let parts = RequestParts::new(&target, &head.headers)
        .with_body(body.as_request_body())
        .with_claims(claims.as_ref());
    let input = Arc::new(routed.read(&catalog, &parts, &client)?);
    let needs = input.needs(&catalog);
    let upstreams = proxied.proxy.upstreams.in_order(routed.route, &config.process.proxy);
    let path = routed.forwarded_path(&target, &catalog.network)?;
    let decision = check(proxied, &input, needs, started).await?;
    let ticket = decision.ticket.clone();
    let new_settle = |ticket| PendingSettle::new(proxied.settle.clone(), ticket, needs);
    let admitted = AdmittedRequest {
        head,
        target,
        path,
        client: client.address,
        settle: ticket.map(new_settle),
        decision,
        input,
        needs,
        phase,
    };
    let forward = admitted.forward(body, upstreams, config, Arc::clone(proxied));
    if !needs.body {
        return forward.await;
    }
    // A task of its own: a client that hangs up must not be able to hide the response from the
    // rules that read it.
    let forward = tokio::spawn(forward);
    forward.await.unwrap_or_else(|_| Err(UpstreamFailure::Broken.problem().into()))
}

/// The decision about a request that may pass; a denial is the error.
async fn check(
    proxied: &ProxiedConnection,
    input: &Arc<CheckInput>,
    needs: OutcomeNeeds,
    started: Instant,
) -> Result<Decision, OwnResponse> {
    let decided = admission::decide(&proxied.settle, input, needs).await;
    let result = match &decided {
        Ok(_) => CallResult::Done,
        Err(Error::Refused(_)) => CallResult::ClientError,
        Err(_) => CallResult::ServerError,
    };
    proxied.proxy.context.calls.note(result, started.elapsed(), true);
    let decision = decided.map_err(|error| OwnResponse::Problem(error.into()))?;
    match decision.allowed {
        true => Ok(decision),
        false => Err(decision.into()),
    }
}
