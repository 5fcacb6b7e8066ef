//! Serves one request: finds its route, checks it, and hands it to `forward`.

use std::sync::Arc;
use std::time::Instant;

use catraca::core::address::Address;
use catraca::core::catalog::Catalog;
use catraca::http_request::RequestParts;
use catraca::{Decision, Error};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::http::{HeaderValue, Request, Response};

use super::abandoned_requests::{ClientPresence, ResponseWait};
use super::admission::{self, CheckInput};
use super::collected_body::CollectedBody;
use super::failure::UpstreamFailure;
use super::forward::AdmittedRequest;
use super::forwarded_headers;
use super::forwarded_path::forwarded_uri;
use super::pending_settle::PendingSettle;
use super::proxied_connection::ProxiedConnection;
use super::request_head;
use super::request_limits::OpenRequest;
use super::request_trailers::TrailerRule;
use super::responses::{OwnResponse, ProxyBody, close_after};
use super::spoofed_headers;
use crate::config::ReloadableConfig;
use crate::http_wire::cors;
use crate::http_wire::problem::Problem;
use crate::listener::Phase;
use crate::observe::call_metrics::CallResult;
use crate::observe::proxy_metrics::ResponseSource;

/// Serves a request.
pub async fn respond(
    request: Request<Incoming>,
    proxied: Arc<ProxiedConnection>,
) -> Response<ProxyBody> {
    let is_length_ambiguous = proxied.begin_request();
    let (head, body) = request.into_parts();
    let request_id = forwarded_headers::request_id(&head.headers);
    let origin = cors::origin(&head.headers);
    let request = ReceivedRequest { head, body, request_id: request_id.clone() };
    let metrics = &proxied.proxy.context.proxy_metrics;
    let mut response = match handle(request, is_length_ambiguous, &proxied).await {
        Ok(response) => {
            metrics.note_response(ResponseSource::Upstream, response.status().as_u16());
            response
        }
        Err(own) => {
            // hyper closes the connection after the response if a part of the body was not read.
            // It decides when it finds that the body was dropped.
            tokio::task::yield_now().await;
            proxied.begin_phase().enter(Phase::Answer);
            let response = own.to_response(&proxied, origin.as_ref());
            metrics.note_response(own.source(), response.status().as_u16());
            response
        }
    };
    if proxied.connection().is_stopping() {
        close_after(&mut response);
    }
    forwarded_headers::add_request_id(response.headers_mut(), request_id);
    response
}

/// A request as it was received.
struct ReceivedRequest {
    head: Parts,
    body: Incoming,
    /// The client's, or a new one.
    request_id: HeaderValue,
}

async fn handle(
    request: ReceivedRequest,
    is_length_ambiguous: bool,
    proxied: &Arc<ProxiedConnection>,
) -> Result<Response<ProxyBody>, OwnResponse> {
    let started = Instant::now();
    let phase = Some(proxied.begin_phase());
    let config = proxied.proxy.context.reloadable.load_full();
    let catalog = proxied.proxy.context.app.catalog();
    let ReceivedRequest { mut head, body, request_id } = request;
    let path_and_query = request_head::check(&head, is_length_ambiguous)?;
    let target = path_and_query.as_str();
    let peer = proxied.connection().peer;
    let client = admission::client_address(&config, peer, &head.headers);
    let routed = admission::find_route(&catalog, &head, target)?;
    let upgrade = request_head::wanted_upgrade(&head.headers);
    // Before attributes are read: what is counted must be what the upstream gets.
    forwarded_headers::remove_hop_by_hop(&mut head.headers);
    let address_header = config.process.server.client_address.header();
    let is_trusted = config.is_trusted_proxy(peer);
    spoofed_headers::remove(&mut head.headers, routed.route, is_trusted, address_header);
    let timeouts = config.process.proxy.timeouts();
    let bytes_max = config.process.proxy.body_bytes_max;
    // From here on the request uses memory, and then a connection to its upstream.
    let open = count_request(proxied, &config, client.address)?;
    let memory = proxied.proxy.limits.memory();
    let body = CollectedBody::read(body, routed.route, bytes_max, &timeouts, memory).await;
    let mut body = body.map_err(|failure| failure.problem())?;
    body.trailers = TrailerRule::for_request(&head.headers, routed.route, address_header);
    let claims = config.claims_for(routed.route, &head.headers).map_err(Problem::from)?;
    let parts = RequestParts::new(target, &head.headers)
        .with_body(body.as_request_body(routed.route).map_err(admission::unreadable)?)
        .with_claims(claims.as_ref())
        .with_certificate(proxied.certificate.as_ref());
    let namespace = &config.process.proxy.namespace;
    let input = Arc::new(routed.read(&catalog, &parts, &client, namespace)?);
    let needs = input.needs(&catalog);
    let upstreams = proxied.proxy.upstreams.in_order(routed.route, &config.process.proxy);
    let path = routed.forwarded_path(target, &catalog.network)?;
    let uri = forwarded_uri(&path, &path_and_query)?;
    let client = client.address;
    let counted_as = client.network(config.network.ipv6_prefix);
    let begin = || proxied.proxy.abandoned.begin(counted_as);
    // Before the check, so that a request that is refused costs nothing.
    let presence = needs.body.then(begin).transpose()?;
    let (decision, mut settle) = check(proxied, &input, &catalog, started).await?;
    if let Some(settle) = &mut settle {
        settle.set_client(presence.clone());
    }
    let admitted = AdmittedRequest {
        head,
        uri,
        upgrade,
        client,
        request_id,
        settle,
        decision,
        input,
        needs,
        phase,
        open,
    };
    let shared = Arc::clone(proxied);
    let Some(presence) = presence else {
        // Awaited where it is made: it is large, and would be copied.
        return admitted.forward(body, upstreams, config, shared).await;
    };
    let forward = Box::pin(admitted.forward(body, upstreams, config, shared));
    Box::pin(forward_as_task(forward, presence, proxied)).await
}

/// Counts a request in progress for its client. A trusted proxy that names no client is not
/// counted: it speaks for many.
fn count_request(
    proxied: &ProxiedConnection,
    config: &ReloadableConfig,
    client: Address,
) -> Result<Option<OpenRequest>, Problem> {
    let max = config.process.proxy.client_requests_max();
    let counted_as = config.counted_as(client.ip());
    counted_as.map(|network| proxied.proxy.limits.begin(network, max)).transpose()
}

/// Forwards as a task of its own: a client that hangs up must not be able to hide the response from
/// the rules that read it. It ends with the server, which waits until it is settled.
async fn forward_as_task(
    forward: impl Future<Output = Result<Response<ProxyBody>, OwnResponse>> + Send + 'static,
    presence: Arc<ClientPresence>,
    proxied: &ProxiedConnection,
) -> Result<Response<ProxyBody>, OwnResponse> {
    let server = Arc::clone(&proxied.proxy.context);
    let wait = ResponseWait::begin(&presence);
    let forward = tokio::spawn(async move {
        let response = tokio::select! {
            response = forward => response,
            () = server.connections.wait_until_closed() => {
                Err(UpstreamFailure::Broken.problem().into())
            }
        };
        // Until here it counts as abandoned if its client has gone.
        drop(presence);
        response
    });
    let response = forward.await;
    wait.end();
    response.unwrap_or_else(|error| {
        // It panicked, which is no fault of the upstream.
        tracing::error!(%error, "a proxied request was not served");
        Err(Problem::internal(&"the request could not be served").into())
    })
}

/// The decision about a request that may pass; a denial is the error.
async fn check(
    proxied: &ProxiedConnection,
    input: &Arc<CheckInput>,
    catalog: &Catalog,
    started: Instant,
) -> Result<(Decision, Option<PendingSettle>), OwnResponse> {
    // What the client has sent so far took its time before the check.
    let begun = tokio::time::Instant::now();
    let needs = input.needs(catalog);
    let decided = admission::decide(&proxied.settle, input, needs).await;
    let result = match &decided {
        Ok(_) => CallResult::Done,
        Err(Error::Refused(_)) => CallResult::ClientError,
        Err(_) => CallResult::ServerError,
    };
    proxied.proxy.context.calls.note(result, started.elapsed(), true);
    let (decision, mut settle) = decided.map_err(|error| OwnResponse::Problem(error.into()))?;
    if let Some(settle) = &mut settle {
        settle.set_deadline(input.settle_deadline(catalog, &decision, begun));
    }
    match decision.allowed {
        true => Ok((decision, settle)),
        false => Err(decision.into()),
    }
}
