//! Forwards an admitted request, and makes the response of its upstream one for the client.

use std::sync::Arc;
use std::time::Duration;

use catraca::Decision;
use catraca::core::address::Address;
use catraca::http_outcome::OutcomeNeeds;
use catraca::http_response::ratelimit_headers;
use http_body_util::Either;
use hyper::body::{Body, Incoming};
use hyper::http::request::Parts;
use hyper::http::{Extensions, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use hyper::upgrade::OnUpgrade;
use tokio::time::sleep_until;

use super::admission::CheckInput;
use super::answer_body::AnswerBody;
use super::answer_stream::AnswerStream;
use super::client_phase::ClientPhase;
use super::collected_body::CollectedBody;
use super::exchange::{self, LiveConnection};
use super::failure::UpstreamFailure;
use super::forwarded_headers::{self, Sender};
use super::held_answer::{self, HeldFailure};
use super::idle_timer::IdleTimer;
use super::pending_settle::PendingSettle;
use super::proxied_connection::ProxiedConnection;
use super::request_limits::OpenRequest;
use super::responses::{OwnResponse, ProxyBody};
use super::settle_deadline::SettleDeadline;
use super::tunnel::Tunnel;
use super::upload_body::{UploadBody, UploadState};
use super::upstream::Upstream;
use crate::config::ReloadableConfig;
use crate::listener::Phase;

/// A request that may pass.
pub struct AdmittedRequest {
    /// Method and headers, without those of the connection and those that a client must not send.
    pub head: Parts,
    /// The path that was matched, with the query.
    pub uri: Uri,
    /// The protocol that the client asks to switch to.
    pub upgrade: Option<HeaderValue>,
    /// The client.
    pub client: Address,
    /// The id of the request.
    pub request_id: HeaderValue,
    /// The decision.
    pub decision: Decision,
    /// The settle of its check; none if the check has no ticket.
    pub settle: Option<PendingSettle>,
    /// What it was checked with.
    pub input: Arc<CheckInput>,
    /// What the rules of its gate read of the response.
    pub needs: OutcomeNeeds,
    /// The phases of the request; taken by its response.
    pub phase: Option<ClientPhase>,
    /// Counts the request for its client; taken by its response.
    pub open: Option<OpenRequest>,
}

/// A client's wish to switch to another protocol.
struct WantedUpgrade {
    /// The name of the protocol.
    protocol: HeaderValue,
    /// The client's side, after the switch.
    client: OnUpgrade,
}

impl WantedUpgrade {
    /// Whether a response agrees to this protocol.
    fn is_in(&self, response: &Response<Incoming>) -> bool {
        let mut lines = response.headers().get_all(header::UPGRADE).iter();
        let agreed = lines.next().filter(|_| lines.next().is_none());
        agreed
            .is_some_and(|agreed| agreed.as_bytes().eq_ignore_ascii_case(self.protocol.as_bytes()))
    }
}

impl AdmittedRequest {
    /// Forwards the request to one of the upstreams, and returns the response for the client.
    pub async fn forward(
        mut self,
        body: CollectedBody,
        upstreams: Vec<Arc<Upstream>>,
        config: Arc<ReloadableConfig>,
        proxied: Arc<ProxiedConnection>,
    ) -> Result<Response<ProxyBody>, OwnResponse> {
        let (body, upload) = UploadBody::new(body);
        let mut wanted = self.wanted_upgrade().filter(|_| upload.is_none());
        self.prepare_head(&config, &proxied, wanted.as_ref());
        if body.size_hint().exact().is_none() {
            // hyper drops a body without a length if the method is one that rarely has a body.
            self.head.headers.remove(header::CONTENT_LENGTH);
            let chunked = HeaderValue::from_static("chunked");
            self.head.headers.insert(header::TRANSFER_ENCODING, chunked);
        }
        let timeouts = config.process.proxy.timeouts();
        let mut request = Request::new(body);
        *request.method_mut() = self.head.method.clone();
        *request.headers_mut() = std::mem::take(&mut self.head.headers);
        *request.uri_mut() = std::mem::take(&mut self.uri);
        let deadline = self.settle.as_ref().and_then(PendingSettle::deadline);
        let sent = tokio::select! {
            biased;
            sent = exchange::send(&upstreams, request, upload.as_deref(), &timeouts) => sent,
            () = wait_until(deadline) => Err(failure_at_deadline(upload.as_deref())),
        };
        let sent = sent.and_then(|(response, live)| {
            let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            // The client did not ask for a switch to this protocol.
            let is_expected = !switches || wanted.as_ref().is_some_and(|own| own.is_in(&response));
            is_expected.then_some((response, live)).ok_or(UpstreamFailure::Broken)
        });
        let (response, live) = match sent {
            Ok(answer) => answer,
            Err(failure) => return Err(self.fail(failure, &proxied)),
        };
        let wanted = wanted.take().filter(|_| response.status() == StatusCode::SWITCHING_PROTOCOLS);
        let mut response = match wanted {
            Some(wanted) => self.switch(response, live, wanted, timeouts.idle, &proxied),
            None => self.answer(response, live, timeouts.idle, &proxied, upload.as_deref()).await?,
        };
        let x_ratelimit = config.process.server.x_ratelimit;
        ratelimit_headers::write(&self.decision, x_ratelimit, response.headers_mut());
        Ok(response)
    }

    fn fail(&mut self, failure: UpstreamFailure, proxied: &ProxiedConnection) -> OwnResponse {
        if let Some(cause) = failure.cause() {
            proxied.proxy.context.proxy_metrics.note_upstream_failure(cause);
        }
        if failure == UpstreamFailure::Timeout {
            proxied.proxy.context.connections.metrics.note_timeout(Phase::Upstream);
        }
        if let Some(mut settle) = self.settle.take() {
            settle.on_failure(failure);
        }
        failure.problem().into()
    }

    fn wanted_upgrade(&mut self) -> Option<WantedUpgrade> {
        let protocol = self.upgrade.take()?;
        let client = self.head.extensions.remove::<OnUpgrade>()?;
        Some(WantedUpgrade { protocol, client })
    }

    /// Makes the headers those of the request to the upstream.
    fn prepare_head(
        &mut self,
        config: &ReloadableConfig,
        proxied: &ProxiedConnection,
        wanted: Option<&WantedUpgrade>,
    ) {
        let peer = proxied.connection().peer;
        let headers = &mut self.head.headers;
        forwarded_headers::join_cookies(headers);
        // The body is read when the upstream takes it, and then hyper answers with 100.
        headers.remove(header::EXPECT);
        // Trailers of a request are not passed on: some servers add them to its headers.
        headers.remove(header::TRAILER);
        if self.needs.body {
            forwarded_headers::ask_for_whole_body(headers);
        }
        if let Some(authority) = self.head.uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            // Equal to `Host` if there is one.
            headers.insert(header::HOST, host);
        }
        // HTTP/1.1 requires it, also for a client of HTTP/1.0 that sent none.
        headers.entry(header::HOST).or_insert(HeaderValue::from_static(""));
        if let Some(wanted) = wanted {
            forwarded_headers::set_upgrade(headers, wanted.protocol.clone());
        }
        let sender = Sender {
            client: self.client,
            peer,
            is_trusted_proxy: config.is_trusted_proxy(peer),
            scheme: proxied.scheme,
        };
        forwarded_headers::set_sender(headers, &sender, &proxied.sender_cache);
        forwarded_headers::set_request_id(headers, self.request_id.clone());
    }

    /// The response for the client. If a ban replaces it, the denial is the error.
    async fn answer(
        &mut self,
        response: Response<Incoming>,
        live: LiveConnection,
        idle: Duration,
        proxied: &ProxiedConnection,
        upload: Option<&UploadState>,
    ) -> Result<Response<ProxyBody>, OwnResponse> {
        let (mut head, incoming) = response.into_parts();
        let mut settle = self.settle.take();
        if let Some(settle) = &mut settle {
            settle.on_head(&head);
        }
        let server = &proxied.proxy.context;
        let bytes_max = server.app.catalog().settle.body_bytes_max;
        let is_held = self.needs.replaces
            && held_answer::can_hold(&head.headers, &incoming.size_hint(), bytes_max)
            && settle.as_ref().is_some_and(PendingSettle::may_replace);
        forwarded_headers::remove_second_length(&mut head.headers);
        forwarded_headers::remove_hop_by_hop(&mut head.headers);
        head.version = Version::HTTP_11;
        head.extensions = Extensions::new();
        let timer = IdleTimer::new(idle);
        let stream = AnswerStream { incoming, live, settle, timer, server: Arc::clone(server) };
        let phase = self.phase.take().unwrap_or_else(|| proxied.begin_phase());
        let mut body = AnswerBody::new(stream, phase, &proxied.proxy.settle_watch);
        body.open = self.open.take();
        if is_held {
            let held = held_answer::settle_held(&mut body, bytes_max, &self.input, server, upload);
            let held = Box::pin(held).await;
            if let Err(HeldFailure::Upstream(failure)) = &held {
                return Err(self.fail(*failure, proxied));
            }
            held.map_err(HeldFailure::into_response)?;
        }
        body.finish_if_empty();
        Ok(Response::from_parts(head, Either::Right(body)))
    }

    /// The 101 for the client. The connection copies bytes when it was sent.
    fn switch(
        &mut self,
        mut response: Response<Incoming>,
        live: LiveConnection,
        wanted: WantedUpgrade,
        idle: Duration,
        proxied: &ProxiedConnection,
    ) -> Response<ProxyBody> {
        let upstream = hyper::upgrade::on(&mut response);
        let (mut head, _) = response.into_parts();
        let mut settle = self.settle.take();
        if let Some(settle) = &mut settle {
            settle.on_head(&head);
        }
        forwarded_headers::remove_hop_by_hop(&mut head.headers);
        forwarded_headers::set_upgrade(&mut head.headers, wanted.protocol);
        head.extensions = Extensions::new();
        let server = Arc::clone(&proxied.proxy.context);
        let client = wanted.client;
        let open = self.open.take();
        proxied.set_tunnel(Tunnel { client, upstream, live, settle, idle, server, open });
        Response::from_parts(head, Either::Left(http_body_util::Full::default()))
    }
}

/// Waits until a check is settled; without an end if it has nothing to settle.
async fn wait_until(deadline: Option<SettleDeadline>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.at).await,
        None => std::future::pending().await,
    }
}

/// Why a response had not begun when its check had to be settled. It is not a failure of the
/// upstream: a client that uploads slowly may have left it no time.
fn failure_at_deadline(upload: Option<&UploadState>) -> UpstreamFailure {
    match upload.is_some_and(UploadState::is_awaited) {
        true => UpstreamFailure::RequestTimeout,
        false => UpstreamFailure::HoldOver,
    }
}
