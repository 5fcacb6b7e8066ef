//! The settle of a proxied request. It happens however the request ends: with the last byte of the
//! response, by a failure of the upstream, or when the client hangs up and the request is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use catraca::core::policy::Name;
use catraca::http_outcome::{BodyCopy, OutcomeNeeds, add_header, outcome_of_status};
use catraca::settlement::Settlement;
use catraca::{CheckRef, Outcome, Settle};
use hyper::http::{HeaderMap, HeaderName, StatusCode, header, response};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::abandoned_requests::ClientPresence;
use super::failure::{CLIENT_GONE, UpstreamFailure};
use super::settle_call::{SettleCall, report_failure};
use super::settle_deadline::SettleDeadline;
use crate::context::ServerContext;
use crate::listener::Connection;

/// How a response ended that has begun and is not complete, as a header of the outcome.
const ENDED: &str = "catraca-ended";

/// The settles of one connection that are not finished.
#[derive(Default)]
pub struct OpenSettles {
    count: AtomicUsize,
    finished: Notify,
}

impl OpenSettles {
    /// Waits until all of them are finished.
    pub async fn wait(&self) {
        loop {
            // Created before the count is read, so that a settle that ends in between is noticed.
            let finished = self.finished.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            finished.await;
        }
    }
}

/// Counts one settle until it is dropped.
pub struct OpenSettle(Arc<OpenSettles>);

impl OpenSettle {
    fn new(open: &Arc<OpenSettles>) -> Self {
        open.count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for OpenSettle {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Release);
        self.0.finished.notify_one();
    }
}

/// What every settle of a connection needs.
#[derive(Clone)]
pub struct SettleContext {
    /// What all front ends share.
    pub server: Arc<ServerContext>,
    /// The connection of the client.
    pub connection: Arc<Connection>,
    /// Counts the settles of the connection.
    pub open: Arc<OpenSettles>,
}

impl SettleContext {
    /// Counts a settle. To be called before the check: its connection waits for the settle even if
    /// the client hangs up while a store works on the check.
    pub fn begin_settle(&self) -> OpenSettle {
        OpenSettle::new(&self.open)
    }
}

/// Settles a check when it is dropped.
pub struct PendingSettle {
    context: SettleContext,
    namespace: Name,
    /// Absent once it is settled.
    ticket: Option<(String, OpenSettle)>,
    needs: OutcomeNeeds,
    outcome: Outcome,
    body_copy: Option<BodyCopy>,
    has_head: bool,
    is_complete: bool,
    /// Present if the request goes on when its client has gone.
    client: Option<Arc<ClientPresence>>,
    /// Until when it is settled. Absent if the client hung up during the check.
    deadline: Option<SettleDeadline>,
}

impl PendingSettle {
    /// A settle of this ticket, in the namespace of its check.
    pub fn new(
        context: SettleContext,
        guard: OpenSettle,
        namespace: Name,
        ticket: String,
        needs: OutcomeNeeds,
    ) -> Self {
        Self {
            context,
            namespace,
            ticket: Some((ticket, guard)),
            needs,
            outcome: Outcome::default(),
            body_copy: None,
            has_head: false,
            is_complete: false,
            client: None,
            deadline: None,
        }
    }

    /// Sets the client without which the request goes on.
    pub fn set_client(&mut self, client: Option<Arc<ClientPresence>>) {
        self.client = client;
    }

    /// Sets until when it is settled.
    pub fn set_deadline(&mut self, deadline: SettleDeadline) {
        self.deadline = Some(deadline);
    }

    /// Until when it is settled.
    pub fn deadline(&self) -> Option<SettleDeadline> {
        self.deadline
    }

    /// The client, if the request goes on when it has gone.
    pub fn client(&self) -> Option<&Arc<ClientPresence>> {
        self.client.as_ref()
    }

    /// The upstream gave no response: the client gets ours.
    pub fn on_failure(&mut self, failure: UpstreamFailure) {
        self.outcome = Outcome::status(failure.outcome_status());
        self.is_complete = true;
    }

    /// Reads the head of the response.
    pub fn on_head(&mut self, head: &response::Parts) {
        self.has_head = true;
        self.outcome = outcome_of_status(head.status);
        if self.needs.headers {
            let names: Vec<&HeaderName> = head.headers.keys().collect();
            names.into_iter().for_each(|name| add_header(&mut self.outcome, &head.headers, name));
        } else {
            add_header(&mut self.outcome, &head.headers, &header::RETRY_AFTER);
        }
        // An upstream cannot say how the response ends.
        self.outcome.headers.retain(|(name, _)| name != ENDED);
        if self.needs.body {
            let catalog = self.context.server.app.catalog();
            let bytes_max = catalog.settle.body_bytes_max;
            let no_paths = Arc::default();
            let paths = if self.needs.cost { &catalog.cost_paths } else { &no_paths };
            self.body_copy = Some(BodyCopy::new(&head.headers, bytes_max, paths));
        }
    }

    /// Reads the trailers of the response, such as `grpc-status`. A header of the same name stays.
    pub fn on_trailers(&mut self, trailers: &HeaderMap) {
        if !self.needs.headers {
            return;
        }
        for name in trailers.keys().filter(|name| name.as_str() != ENDED) {
            let is_known = self.outcome.headers.iter().any(|(own, _)| own == name.as_str());
            if !is_known {
                add_header(&mut self.outcome, trailers, name);
            }
        }
    }

    /// Reads a part of the body.
    pub fn on_data(&mut self, data: &[u8]) {
        if let Some(copy) = &mut self.body_copy {
            copy.push(data);
        }
    }

    /// The body has reached its end, and did not break off.
    pub fn on_body_end(&mut self) {
        if let Some(copy) = &mut self.body_copy {
            copy.on_end();
        }
    }

    /// Whether a ban may replace the response whose head was read: a rule may match when it has
    /// read the body, or matches by the head alone.
    pub fn may_replace(&self) -> bool {
        let Some((ticket, _)) = &self.ticket else { return false };
        let check = CheckRef::Ticket(ticket);
        let call = Settle { namespace: &self.namespace, check, outcome: &self.outcome };
        self.needs.replaces_by_body || self.context.server.app.may_replace_by_head(&call)
    }

    /// Whether a rule reads the body and could read more of it.
    pub fn awaits_body(&self) -> bool {
        self.body_copy.as_ref().is_some_and(BodyCopy::awaits_more)
    }

    /// The response broke off.
    pub fn on_broken(&mut self, why: &str) {
        self.outcome.headers.push((ENDED.to_owned(), why.to_owned()));
        self.is_complete = true;
    }

    /// The response is complete.
    pub fn complete(mut self) {
        self.is_complete = true;
    }

    /// Settles a complete response now; none if that failed.
    pub async fn settle(mut self) -> Option<Settlement> {
        self.is_complete = true;
        // A task of its own: the client may hang up while it runs.
        let settle = self.take()?;
        match tokio::spawn(settle).await {
            Ok(settlement) => settlement,
            // It panicked.
            Err(error) => {
                report_failure(&self.context.server, &error);
                None
            }
        }
    }

    /// The settle, once.
    fn take(&mut self) -> Option<impl Future<Output = Option<Settlement>> + Send + use<>> {
        let (ticket, guard) = self.ticket.take()?;
        let mut outcome = std::mem::take(&mut self.outcome);
        if !self.is_complete || self.is_unread(&outcome) {
            self.add_ending(&mut outcome);
        }
        if let Some(copy) = self.body_copy.take() {
            outcome = outcome.with_body(copy.into_body());
        }
        let server = Arc::clone(&self.context.server);
        let expires = self.deadline.map(|deadline| deadline.expires);
        let namespace = Name::clone(&self.namespace);
        let call = SettleCall { server, namespace, ticket, outcome, expires };
        Some(async move {
            let settlement = call.run().await;
            drop(guard);
            settlement
        })
    }

    /// Whether the whole response arrived after its client had gone.
    fn is_unread(&self, outcome: &Outcome) -> bool {
        let is_gone = self.client.as_ref().is_some_and(|client| client.is_gone());
        is_gone && self.has_head && !outcome.headers.iter().any(|(name, _)| name == ENDED)
    }

    /// The client hung up, or this server stops. The status of a response that has begun stays:
    /// a client must not be able to hide it by hanging up.
    fn add_ending(&self, outcome: &mut Outcome) {
        let is_stopping = self.context.connection.is_stopping();
        if self.has_head {
            let why = if is_stopping { "server-stopped" } else { "client-gone" };
            outcome.headers.push((ENDED.to_owned(), why.to_owned()));
        } else if is_stopping {
            outcome.status = Some(StatusCode::SERVICE_UNAVAILABLE.as_u16());
        } else {
            outcome.status = Some(CLIENT_GONE);
        }
    }
}

impl Drop for PendingSettle {
    fn drop(&mut self) {
        let Some(settle) = self.take() else { return };
        let mut settle: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(settle);
        // At once if the store is in this process, else as a task.
        let polled = settle.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(settle)),
            // The server has stopped.
            Err(_) => report_failure(&self.context.server, &"no runtime is left to settle it"),
        }
    }
}
