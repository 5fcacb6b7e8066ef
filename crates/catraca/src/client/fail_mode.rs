//! What a check answers when the server gives no decision.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca_core::decision::{Decision, Reason};
use catraca_core::request::Check;
use catraca_core::time::Time;

use super::client_error::ClientError;
use crate::engine::Engine;
use crate::error::Error;
use crate::store::Store;

/// Decides a check in this process.
pub type LocalDecision = Arc<dyn Fn(&Check<'_>) -> Result<Decision, Error> + Send + Sync>;

/// What a check answers when the server gives no decision: it cannot be reached, does not answer
/// in time, or is unavailable. A call that the server refuses stays an error in every mode.
///
/// ```
/// use std::sync::Arc;
///
/// use catraca::{Catalog, Check, Client, Engine, FailMode};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 1h'")?;
/// let local = FailMode::local(Arc::new(Engine::new(catalog)));
/// let client = Client::builder("http://127.0.0.1:1").fail(local).build()?; // no server there
/// let check = Check::new("login", [("ip", "198.51.100.7")]);
/// let decision = client.check(&check).await?;
/// assert!(decision.allowed && decision.degraded);
/// // Another place of the program sees the error.
/// assert!(client.with_fail_mode(FailMode::Error).check(&check).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum FailMode {
    /// The error.
    #[default]
    Error,
    /// Allowed, with the reason `unavailable`.
    Open,
    /// Denied, with the reason `unavailable`.
    Closed,
    /// The decision of this process; denied as `Closed` does if that fails.
    Local(LocalDecision),
}

/// Whether the failure of a client's local decision was reported. Once is enough: it may fail for
/// every check.
#[derive(Default)]
pub(super) struct LocalFailureWarning {
    is_given: AtomicBool,
}

impl LocalFailureWarning {
    fn give_once(&self, error: &Error) {
        if !self.is_given.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %error,
                "the server is unavailable and the local decision failed: such checks are denied"
            );
        }
    }
}

/// Whether the server is unavailable for checks, so that the start and the end of an outage are
/// one line each in the log.
#[derive(Default)]
pub(super) struct OutageLog {
    is_ongoing: AtomicBool,
}

impl OutageLog {
    /// Logs the start of an outage.
    pub fn on_unavailable(&self, server: &str, fail_mode: &FailMode, error: &ClientError) {
        if !self.is_ongoing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server,
                ?fail_mode,
                %error,
                "catraca is unavailable: the fail mode decides checks until it answers again"
            );
        }
    }

    /// Logs the end of an outage. One load of an atomic while the server answers.
    pub fn on_answer(&self, server: &str) {
        let is_ongoing = self.is_ongoing.load(Ordering::Relaxed);
        if is_ongoing && self.is_ongoing.swap(false, Ordering::Relaxed) {
            tracing::info!(server, "catraca answers checks again");
        }
    }
}

impl FailMode {
    /// Decides with an engine of this process, which has its own counters.
    pub fn local<S: Store + 'static>(engine: Arc<Engine<S>>) -> Self {
        Self::Local(Arc::new(move |check| engine.check(check)))
    }

    /// The decision in place of the server's; the error if it is not one of availability.
    pub(super) fn decide(
        &self,
        check: &Check<'_>,
        error: ClientError,
        at: Time,
        warning: &LocalFailureWarning,
    ) -> Result<Decision, ClientError> {
        if !error.is_unavailable() {
            return Err(error);
        }
        match self {
            Self::Error => Err(error),
            Self::Open => Ok(unavailable(true, at)),
            Self::Closed => Ok(unavailable(false, at)),
            Self::Local(decide) => Ok(match decide(check) {
                Ok(mut decision) => {
                    decision.degraded = true;
                    decision
                }
                Err(local) => {
                    warning.give_once(&local);
                    unavailable(false, at)
                }
            }),
        }
    }
}

impl fmt::Debug for FailMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "Error",
            Self::Open => "Open",
            Self::Closed => "Closed",
            Self::Local(_) => "Local",
        })
    }
}

/// A decision without any state.
fn unavailable(allowed: bool, at: Time) -> Decision {
    let mut decision = Decision::without_policy(allowed, Reason::Unavailable, "".into(), at);
    decision.degraded = true;
    decision
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::client::log_buffer::LogBuffer;
    use catraca_core::catalog::Catalog;

    fn unreachable() -> ClientError {
        ClientError::Unreachable { server: "http://x".into(), why: "refused".to_owned() }
    }

    #[test]
    fn a_decision_of_the_fail_mode_says_so() {
        let check = Check::new("login", [("ip", "::1")]);
        let warning = LocalFailureWarning::default();
        let decide = |mode: FailMode| mode.decide(&check, unreachable(), Time::ZERO, &warning);
        let open = decide(FailMode::Open).unwrap();
        let closed = decide(FailMode::Closed).unwrap();
        assert!(open.allowed && !closed.allowed);
        for decision in [open, closed] {
            assert!(decision.degraded && decision.reason == Reason::Unavailable);
        }
        assert_eq!(decide(FailMode::Error), Err(unreachable()));
    }

    #[test]
    fn an_engine_of_this_process_decides_with_its_own_counters() {
        let catalog = Catalog::parse("[policy.login]\nby = ['ip']\nfixed = '1 per 1h'").unwrap();
        let mode = FailMode::local(Arc::new(Engine::new(catalog)));
        let check = Check::new("login", [("ip", "::1")]);
        let warning = LocalFailureWarning::default();
        let decide =
            |check: &Check<'_>| mode.decide(check, unreachable(), Time::ZERO, &warning).unwrap();
        assert!(decide(&check).allowed);
        let denied = decide(&check);
        assert!(!denied.allowed && denied.degraded && denied.reason == Reason::OverLimit);
        let unknown = decide(&Check::new("other", [("ip", "::1")]));
        assert!(!unknown.allowed && unknown.reason == Reason::Unavailable);
    }

    #[test]
    fn a_refused_call_opens_nothing() {
        let check = Check::new("login", [("ip", "::1")]);
        let code = "unknown-gate".to_owned();
        let refused = ClientError::Refused { status: 404, code, detail: String::new() };
        let warning = LocalFailureWarning::default();
        let decided = FailMode::Open.decide(&check, refused.clone(), Time::ZERO, &warning);
        assert_eq!(decided, Err(refused));
    }

    /// Regression: the gate stood open for the whole outage, and nothing said so.
    #[tokio::test]
    async fn an_outage_is_two_log_lines_in_every_mode() {
        for mode in [FailMode::Open, FailMode::Closed, FailMode::Error] {
            let log = LogBuffer::default();
            let _subscriber = log.subscribe();
            // Nothing listens on port 1.
            let client = Client::builder("http://127.0.0.1:1").fail(mode.clone()).build().unwrap();
            assert_two_outages_are_logged(&client, &log).await;
            let text = log.text();
            assert!(text.contains(&format!("fail_mode={mode:?}")), "{text}");
            assert!(text.contains("http://127.0.0.1:1 cannot be reached"), "{text}");
        }
    }

    async fn assert_two_outages_are_logged(client: &Client, log: &LogBuffer) {
        let check = Check::new("login", [("ip", "::1")]);
        for outages in 1..=2 {
            let _ = client.check(&check).await;
            let _ = client.check(&check).await;
            let text = log.text();
            assert_eq!(text.matches("catraca is unavailable").count(), outages, "{text}");
            client.parts.outage.on_answer("http://127.0.0.1:1");
            client.parts.outage.on_answer("http://127.0.0.1:1");
            let text = log.text();
            assert_eq!(text.matches("answers checks again").count(), outages, "{text}");
        }
    }

    /// Regression: a client whose local decision fails denied every check, and nothing said why.
    #[tokio::test]
    async fn a_local_decision_that_fails_is_a_warning_once_per_client() {
        let log = LogBuffer::default();
        let _subscriber = log.subscribe();
        let catalog = Catalog::parse("[policy.login]\nby = ['ip']\nfixed = '1 per 1h'").unwrap();
        let engine = Arc::new(Engine::new(catalog));
        for clients in 1..=2 {
            // Nothing listens on port 1, and the engine knows no such gate.
            let client = Client::builder("http://127.0.0.1:1");
            let client = client.fail(FailMode::local(Arc::clone(&engine))).build().unwrap();
            for _ in 0..3 {
                let denied = client.check(&Check::new("other", [("ip", "::1")])).await.unwrap();
                assert!(!denied.allowed && denied.reason == Reason::Unavailable);
            }
            let text = log.text();
            assert_eq!(text.matches("the local decision failed").count(), clients, "{text}");
            assert!(text.contains("other"), "it names the gate: {text}");
        }
    }
}
