//! A client of a Catraca server: the same operations as [`crate::Engine`], over HTTP.
//!
//! `builder` has the options; `transport` sends a request on a connection of the `pool`, within a
//! deadline; `check_queue` joins checks that wait for a connection; `blocked_checks` answers for
//! blocked callers; `fail_mode` decides when the server does not; `lock_calls` implements
//! [`crate::locks::LockService`]; `verify` finds mistakes in the configuration. A check is never
//! sent twice: only a request that was not written is sent on another connection (ADR 0029).

mod blocked_checks;
mod builder;
mod check_queue;
mod client_error;
mod fail_mode;
mod lock_calls;
#[cfg(test)]
mod log_buffer;
mod pool;
mod request_bodies;
mod server_tls;
mod server_url;
mod transport;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catraca_core::decision::Decision;
use catraca_core::request::{Check, DEFAULT_NAMESPACE};
use tokio::time::{Instant, timeout_at};

use crate::engine::{Credit, Settle};
use crate::error::Error;
use crate::json::{CreditBody, SettlementBody};
use crate::limiter::Limiter;
use crate::settlement::{CreditResult, Settlement};
use blocked_checks::BlockedChecks;
use check_queue::CheckQueue;
use fail_mode::{LocalFailureWarning, OutageLog};
use request_bodies::{CheckBody, CreditRequestBody, SettleBody, to_json};
use transport::{HttpCall, Repeat, Transport};
use verify::AddressWatch;

pub use builder::{ClientBuildError, ClientBuilder};
pub use client_error::ClientError;
pub use fail_mode::{FailMode, LocalDecision};
pub use verify::ClientWarning;

// For the commands of the server's binary, which call servers too.
#[doc(hidden)]
pub use {server_tls::ServerTls, server_url::ServerUrl};

/// The longest time that a client waits. The clock of a process cannot hold the end of much longer
/// ones, such as [`Duration::MAX`] for "as long as it takes".
const WAIT_MAX: Duration = Duration::from_secs(365 * 86_400);

/// A client of one server. Clones share its connections.
///
/// ```
/// use catraca::{Check, Client, FailMode};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder("http://127.0.0.1:1").fail(FailMode::Open).build()?;
/// let decision = client.check(&Check::new("login", [("ip", "198.51.100.7")])).await?;
/// // No server listens there, so the fail mode has decided.
/// assert_eq!((decision.allowed, decision.reason.as_str()), (true, "unavailable"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    parts: Arc<ClientParts>,
    deadline: Duration,
    fail_mode: FailMode,
}

/// What all clones share.
struct ClientParts {
    transport: Arc<Transport>,
    /// Checks that wait for a connection; `None` if they are not joined.
    queue: Option<Arc<CheckQueue>>,
    blocked: BlockedChecks,
    addresses: AddressWatch,
    local_failure: LocalFailureWarning,
    outage: OutageLog,
}

impl Client {
    /// A builder, to set the key, the deadline and the fail mode.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use catraca::client::{Client, FailMode};
    ///
    /// let client = Client::builder("http://127.0.0.1:7878")
    ///     .deadline(Duration::from_millis(200))
    ///     .fail(FailMode::Open)
    ///     .build()?;
    /// # drop(client);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder::new(url)
    }

    /// A builder with the URL and the key of the environment: `CATRACA_URL`, by default
    /// `http://127.0.0.1:7878`, and `CATRACA_KEY`. An empty variable counts as absent.
    ///
    /// ```
    /// use catraca::Client;
    ///
    /// let client = Client::from_env().caller("shop/1.4").build()?;
    /// # drop(client);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_env() -> ClientBuilder {
        ClientBuilder::from_variables(|name| std::env::var_os(name))
    }

    /// The same client with another fail mode, for one place of the program.
    #[must_use]
    pub fn with_fail_mode(&self, fail_mode: FailMode) -> Self {
        Self { fail_mode, ..self.clone() }
    }

    /// The same client with another deadline, for one place of the program.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self { deadline: limit_wait(deadline), ..self.clone() }
    }

    /// Decides whether the caller may pass now. Charges every policy of the gate, or none. If the
    /// server does not decide in time, the fail mode does.
    pub async fn check(&self, check: &Check<'_>) -> Result<Decision, ClientError> {
        require_default_namespace(check.namespace)?;
        self.parts.addresses.note(&check.subject);
        let transport = &self.parts.transport;
        if !self.parts.blocked.is_empty()
            && let Some(decision) = self.parts.blocked.find(check, transport.now())
        {
            return Ok(decision);
        }
        let asked_at = Instant::now();
        match self.send_check(check, asked_at).await {
            Ok(decision) => {
                self.parts.outage.on_answer(transport.server());
                self.parts.blocked.note(check, &decision, asked_at);
                Ok(decision)
            }
            Err(error) => self.on_unavailable(check, error),
        }
    }

    /// Returns the decision that a check would return. Charges nothing. The fail mode does not
    /// apply: without an answer there is an error.
    pub async fn peek(&self, check: &Check<'_>) -> Result<Decision, ClientError> {
        require_default_namespace(check.namespace)?;
        let call = HttpCall::post("/v1/peek", to_json(&CheckBody::from(check)), Repeat::Safe);
        let answer = self.call(&call, Duration::ZERO).await?;
        answer.read_decision(&self.parts.transport)
    }

    /// Applies the outcome of an admitted check, once. A settle whose answer was lost is sent
    /// again, and then returns the result of the first one.
    pub async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, ClientError> {
        require_default_namespace(call.namespace)?;
        let call = HttpCall::post("/v1/settle", to_json(&SettleBody::from(call)), Repeat::Safe);
        let answer = self.call(&call, Duration::ZERO).await?;
        let body: SettlementBody<'_> = answer.read(&self.parts.transport)?;
        Ok(body.into_settlement(self.parts.transport.now()))
    }

    /// Gives units back for a later event, once per reference and event. It is not sent again
    /// after a lost answer: the second one would be `duplicate` in every case.
    pub async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, ClientError> {
        require_default_namespace(call.namespace)?;
        let body = to_json(&CreditRequestBody::from(call));
        let call = HttpCall::post("/v1/credit", body, Repeat::IfUnwritten);
        let answer = self.call(&call, Duration::ZERO).await?;
        let body: CreditBody<'_> = answer.read(&self.parts.transport)?;
        let why = "it says neither that the credit was applied nor why it was not";
        body.into_result().ok_or_else(|| self.parts.transport.incompatible(why))
    }

    /// The decision of the fail mode, if the error is one of availability.
    fn on_unavailable(
        &self,
        check: &Check<'_>,
        error: ClientError,
    ) -> Result<Decision, ClientError> {
        let transport = &self.parts.transport;
        if error.is_unavailable() {
            self.parts.outage.on_unavailable(transport.server(), &self.fail_mode, &error);
        }
        let now = transport.now();
        self.fail_mode.decide(check, error, now, &self.parts.local_failure)
    }

    async fn send_check(
        &self,
        check: &Check<'_>,
        asked_at: Instant,
    ) -> Result<Decision, ClientError> {
        let body = to_json(&CheckBody::from(check));
        let deadline = asked_at + self.deadline;
        let transport = &self.parts.transport;
        let Some(permit) = transport.pool.try_permit() else {
            // Boxed: a future has room for all its awaits, and is copied when it is made.
            let sent = timeout_at(deadline, Box::pin(self.wait_and_send(body, deadline))).await;
            return sent.map_err(|_| transport.deadline_passed(self.deadline))?;
        };
        let sent = timeout_at(deadline, transport.send_check(body, &permit, asked_at)).await;
        let answer = sent.map_err(|_| transport.deadline_passed(self.deadline))??;
        drop(permit);
        answer.read_decision(transport)
    }

    /// Sends a check when a connection is free, with others that wait for one.
    async fn wait_and_send(&self, body: Bytes, deadline: Instant) -> Result<Decision, ClientError> {
        let transport = &self.parts.transport;
        if let Some(queue) = &self.parts.queue {
            return queue.send(transport, body, deadline).await;
        }
        let permit = transport.pool.permit().await;
        let answer = transport.send_check(body, &permit, Instant::now()).await?;
        answer.read_decision(transport)
    }

    /// Makes a call within the deadline, which `wait` extends.
    async fn call(
        &self,
        call: &HttpCall,
        wait: Duration,
    ) -> Result<transport::HttpAnswer, ClientError> {
        let transport = &self.parts.transport;
        let allowed = self.deadline + wait;
        let answer = timeout_at(Instant::now() + allowed, transport.call(call)).await;
        answer.map_err(|_| transport.deadline_passed(allowed))?
    }
}

impl Limiter for Client {
    async fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        Ok(self.check(check).await?)
    }

    async fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        Ok(self.peek(check).await?)
    }

    async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        Ok(self.settle(call).await?)
    }

    async fn credit(&self, call: &Credit<'_, '_>) -> Result<CreditResult, Error> {
        Ok(self.credit(call).await?)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.parts.transport.server())
            .field("deadline", &self.deadline)
            .field("fail_mode", &self.fail_mode)
            .finish_non_exhaustive()
    }
}

/// The time, or the longest that a client waits.
fn limit_wait(time: Duration) -> Duration {
    time.min(WAIT_MAX)
}

/// The server takes the namespace from the API key. Another one in the call must not be ignored:
/// two tenants would share their counters.
fn require_default_namespace(namespace: &str) -> Result<(), ClientError> {
    if namespace == DEFAULT_NAMESPACE {
        return Ok(());
    }
    Err(ClientError::Namespace { namespace: namespace.to_owned() })
}
