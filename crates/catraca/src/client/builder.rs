//! Builds a client: the server, the key, and the bounds of calls, connections and caches.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::request::{CALLER_BYTES_MAX, is_caller_name};
use http::HeaderValue;
use thiserror::Error;

use super::blocked_checks::BlockedChecks;
use super::check_queue::CheckQueue;
use super::fail_mode::{FailMode, LocalFailureWarning, OutageLog};
use super::pool::ConnectionPool;
use super::server_tls::ServerTls;
use super::server_url::ServerUrl;
use super::transport::{Transport, request_headers};
use super::verify::AddressWatch;
use super::{Client, ClientParts, limit_wait};

/// The default name of the program: that of this library.
const DEFAULT_CALLER: &str = concat!("catraca-rust/", env!("CARGO_PKG_VERSION"));
/// The default URL in the environment: a server on this machine.
const DEFAULT_URL: &str = "http://127.0.0.1:7878";
/// The default deadline of a call.
const DEADLINE: Duration = Duration::from_millis(500);
/// The default number of connections.
const CONNECTIONS_MAX: usize = 32;
/// The default of how long an idle connection is kept: less than the server keeps it by default, so
/// that a connection is rarely closed while a request is on its way.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The default number of blocked checks that are remembered.
const BLOCKED_MAX: usize = 10_000;
/// The default of how long a blocked check is answered without a call.
const BLOCK_STALENESS: Duration = Duration::from_secs(5);

/// Options of a [`Client`].
///
/// ```
/// use std::time::Duration;
///
/// use catraca::client::{Client, ClientBuildError, FailMode};
///
/// let client = Client::builder("https://limits.example.org")
///     .key("catraca_0123abcd")
///     .caller("shop/1.4")
///     .deadline(Duration::from_millis(50))
///     .fail(FailMode::Closed)
///     .build()?;
/// # drop(client);
/// let error = Client::builder("localhost:7878").build().unwrap_err();
/// assert!(matches!(error, ClientBuildError::Url { .. }));
/// # Ok::<(), ClientBuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    ca_file: Option<PathBuf>,
    caller: String,
    deadline: Duration,
    fail_mode: FailMode,
    connections_max: usize,
    idle_max: Duration,
    blocked_max: usize,
    block_staleness: Duration,
    batching: bool,
}

/// Why a client cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientBuildError {
    /// The URL is invalid.
    #[error("the URL of the server is invalid: {why}; write one such as http://127.0.0.1:7878")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// The URL contains a user name or a password.
    #[error(
        "the URL of the server contains a user name or a key, which others can see: remove it, and \
         give the key separately"
    )]
    UrlWithUser,
    /// The key is not one word.
    #[error("the API key must be one word, as `catraca keygen` prints it")]
    Key,
    /// The name of the caller is invalid.
    #[error(
        "the caller must be a name and a version such as `shop/1.4`: 1 to {CALLER_BYTES_MAX} \
         letters, digits, `.`, `_`, `/` or `-`"
    )]
    Caller,
    /// The trusted certificates cannot be loaded.
    #[error("TLS to the server is not possible: {why}")]
    Certificates {
        /// The cause.
        why: String,
    },
}

impl ClientBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            key: None,
            ca_file: None,
            caller: DEFAULT_CALLER.to_owned(),
            deadline: DEADLINE,
            fail_mode: FailMode::default(),
            connections_max: CONNECTIONS_MAX,
            idle_max: IDLE_MAX,
            blocked_max: BLOCKED_MAX,
            block_staleness: BLOCK_STALENESS,
            batching: true,
        }
    }

    /// The URL and the key of an environment. A value that is no UTF-8 is an error of `build`, as
    /// any other invalid value, and not the default.
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let read = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(|value| value.to_string_lossy().into_owned())
        };
        let url = read("CATRACA_URL");
        let key = read("CATRACA_KEY");
        Self { key, ..Self::new(url.as_deref().unwrap_or(DEFAULT_URL)) }
    }

    /// Sends this API key with every call.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Trusts the certificates of this PEM file in place of the system's, for https.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// Names this program to the server, as `name/version`, in the header `Catraca-Caller`;
    /// `catraca-rust` and the version of this crate by default.
    pub fn caller(mut self, caller: &str) -> Self {
        self.caller = caller.to_owned();
        self
    }

    /// The longest time of a call, including the connection and repeated attempts; 500 ms by
    /// default. A call that waits for a lock has its wait in addition.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = limit_wait(deadline);
        self
    }

    /// What a check answers when the server gives no decision; the error by default.
    pub fn fail(mut self, fail_mode: FailMode) -> Self {
        self.fail_mode = fail_mode;
        self
    }

    /// The most connections, at least one; 32 by default.
    pub fn connections(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max;
        self
    }

    /// How long an idle connection may still be used; 30 s by default. The next call closes those
    /// that were idle for longer; a client that makes no call leaves that to the server.
    pub fn idle_limit(mut self, idle_max: Duration) -> Self {
        self.idle_max = idle_max;
        self
    }

    /// How long a check that a block denied is answered without a call; 5 s by default, and zero
    /// asks the server every time. The release of a block is noticed after this time.
    pub fn block_staleness(mut self, staleness: Duration) -> Self {
        self.block_staleness = limit_wait(staleness);
        self
    }

    /// How many blocked checks are remembered; 10,000 by default.
    pub fn blocked_max(mut self, blocked_max: usize) -> Self {
        self.blocked_max = blocked_max;
        self
    }

    /// Whether checks that wait for a connection at the same time are sent together; true by
    /// default.
    pub fn batching(mut self, batching: bool) -> Self {
        self.batching = batching;
        self
    }

    /// Builds the client. It connects when the first call is made.
    pub fn build(self) -> Result<Client, ClientBuildError> {
        let url = ServerUrl::parse(&self.url)?;
        let tls = url.is_https.then(|| ServerTls::new(&url.host, self.ca_file.as_deref()));
        let tls = tls.transpose()?;
        let key = self.key.as_deref().map(bearer).transpose()?;
        let caller = caller_header(&self.caller)?;
        let invalid = |error: http::Error| ClientBuildError::Url { why: error.to_string() };
        let headers = request_headers(&url, key, caller).map_err(invalid)?;
        let pool = ConnectionPool::new(self.connections_max, self.idle_max);
        let transport = Transport::new(url, tls, headers, pool).map_err(invalid)?;
        let parts = ClientParts {
            transport: Arc::new(transport),
            queue: self.batching.then(|| Arc::new(CheckQueue::default())),
            blocked: BlockedChecks::new(self.blocked_max, self.block_staleness),
            addresses: AddressWatch::default(),
            local_failure: LocalFailureWarning::default(),
            outage: OutageLog::default(),
        };
        let parts = Arc::new(parts);
        Ok(Client { parts, deadline: self.deadline, fail_mode: self.fail_mode })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("deadline", &self.deadline)
            .field("fail_mode", &self.fail_mode)
            .finish_non_exhaustive()
    }
}

fn bearer(key: &str) -> Result<HeaderValue, ClientBuildError> {
    let key = key.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ClientBuildError::Key);
    }
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    let mut value = value.map_err(|_| ClientBuildError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn caller_header(caller: &str) -> Result<HeaderValue, ClientBuildError> {
    // The server counts the checks of a caller with another name as those of `(invalid)`.
    if !is_caller_name(caller.as_bytes()) {
        return Err(ClientBuildError::Caller);
    }
    HeaderValue::try_from(caller).map_err(|_| ClientBuildError::Caller)
}

#[cfg(test)]
mod tests {
    use catraca_core::catalog::Catalog;
    use catraca_core::request::Check;
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::client::ClientError;
    use crate::engine::Engine;

    #[test]
    fn the_environment_gives_the_url_and_the_key() {
        let builder = |url: &'static str, key: &'static str| {
            ClientBuilder::from_variables(move |name| match name {
                "CATRACA_URL" => Some(url.into()),
                "CATRACA_KEY" => Some(key.into()),
                _ => None,
            })
        };
        let client = builder("https://gate.example/catraca", "catraca_abc").build().unwrap();
        assert_eq!(client.parts.transport.server(), "https://gate.example/catraca");
        assert!(client.parts.transport.has_key());
        for empty in [builder("", ""), ClientBuilder::from_variables(|_| None)] {
            let client = empty.build().unwrap();
            assert_eq!(client.parts.transport.server(), DEFAULT_URL);
            assert!(!client.parts.transport.has_key());
        }
        let error = builder("127.0.0.1:7878", "").build().unwrap_err();
        assert!(matches!(error, ClientBuildError::Url { .. }), "{error}");
        assert_eq!(builder("", "two words").build().unwrap_err(), ClientBuildError::Key);
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_an_error_and_not_the_default() {
        use std::os::unix::ffi::OsStringExt;

        let broken = |_: &str| Some(OsString::from_vec(vec![b'h', 0xff]));
        assert!(ClientBuilder::from_variables(broken).build().is_err());
    }

    #[test]
    fn mistakes_are_found_before_the_first_call() {
        let builder = || Client::builder("http://127.0.0.1:7878");
        assert!(builder().key(" catraca_abc\n").caller("shop/1.4").build().is_ok());
        for key in ["", "two words", "né"] {
            assert_eq!(builder().key(key).build().unwrap_err(), ClientBuildError::Key, "{key}");
        }
        for caller in ["", "a b", "shop(1.4)", &"x".repeat(65)] {
            let error = builder().caller(caller).build().unwrap_err();
            assert_eq!(error, ClientBuildError::Caller, "{caller}");
        }
        let missing = Client::builder("https://localhost").ca_file("missing.pem").build();
        assert!(missing.unwrap_err().to_string().contains("missing.pem"));
    }

    #[tokio::test]
    async fn a_deadline_without_end_is_a_long_one() {
        // Nothing listens on port 1, so the connection is refused at once.
        let client = Client::builder("http://127.0.0.1:1").deadline(Duration::MAX);
        let client = client.block_staleness(Duration::MAX).build().unwrap();
        let check = Check::new("login", [("ip", "::1")]);
        for client in [&client, &client.with_deadline(Duration::MAX)] {
            let error = client.check(&check).await.unwrap_err();
            assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_is_noticed_within_five_seconds_by_default() {
        let catalog = "[policy.login]\nby = ['ip']\nwindow = '1 per 1m'\nblock = '15m'";
        let engine = Engine::new(Catalog::parse(catalog).unwrap());
        let check = Check::new("login", [("ip", "::1")]);
        let mut denial = engine.check(&check).unwrap();
        while denial.reason.as_str() != "blocked" {
            denial = engine.check(&check).unwrap();
        }
        let client = Client::builder("http://127.0.0.1:1").build().unwrap();
        client.parts.blocked.note(&check, &denial, Instant::now());
        advance(Duration::from_millis(4_999)).await;
        assert!(client.check(&check).await.unwrap().cached);
        advance(Duration::from_millis(1)).await;
        // The server is asked again, and there is none.
        assert!(client.check(&check).await.is_err());
    }

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", Client::builder("http://h").key("catraca_abc"));
        assert!(!shown.contains("catraca_abc"), "{shown}");
    }
}
