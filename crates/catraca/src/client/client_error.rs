//! Errors of a client: why the server gave no answer, or refused the call.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Why a call has no result. A denial is not an error.
///
/// ```
/// use catraca::{Check, Client, ClientError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder("http://127.0.0.1:1").build()?; // no server listens there
/// let peeked = client.peek(&Check::new("login", [("ip", "198.51.100.7")])).await;
/// let error: ClientError = peeked.unwrap_err();
/// assert!(error.is_unavailable(), "the fail mode would have decided a check");
/// assert_eq!(error.code(), None); // a code is in an answer of a server
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No connection could be made.
    #[error("{server} cannot be reached: {why}; start it, or correct the URL of the client")]
    Unreachable {
        /// The URL of the server.
        server: Arc<str>,
        /// The cause.
        why: String,
    },
    /// The server did not answer in time. The call may have been executed.
    #[error("{server} did not answer within {deadline:?}; the call may have been executed")]
    Deadline {
        /// The URL of the server.
        server: Arc<str>,
        /// The deadline of the call.
        deadline: Duration,
    },
    /// The connection failed before the answer was read. The call may have been executed.
    #[error("the connection to {server} failed: {why}; the call may have been executed")]
    Interrupted {
        /// The URL of the server.
        server: Arc<str>,
        /// The cause.
        why: String,
    },
    /// The server answered that it cannot execute the call now.
    #[error("{server} is unavailable: {detail} ({})", format!("{status} {code}").trim_end())]
    Unavailable {
        /// The URL of the server.
        server: Arc<str>,
        /// The HTTP status.
        status: u16,
        /// The code of the server's problem; empty if a proxy answered.
        code: String,
        /// The text of the problem.
        detail: String,
    },
    /// The server refuses the key of this client, or its role.
    #[error("the server refuses the key of this client: {detail} ({code})")]
    Unauthorized {
        /// The code of the server's problem.
        code: String,
        /// The text of the problem.
        detail: String,
    },
    /// The server refuses the call. Nothing was changed, and the request must not pass.
    #[error("{detail} ({status} {code})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The code of the server's problem, such as `unknown-gate`.
        code: String,
        /// What is wrong with the call, and how to fix it.
        detail: String,
    },
    /// The answer is not one of a server that this client understands.
    #[error(
        "the answer of {server} cannot be read: {why}; check the URL, and that server and client \
         have the same version"
    )]
    Incompatible {
        /// The URL of the server.
        server: Arc<str>,
        /// The cause.
        why: String,
    },
    /// The call names a namespace, which the server takes from the API key.
    #[error(
        "the call is for namespace `{namespace}`, but a server takes the namespace from the API \
         key: use a client with a key of that namespace, and leave the namespace of calls alone"
    )]
    Namespace {
        /// The namespace of the call.
        namespace: String,
    },
}

impl ClientError {
    /// Whether the server gave no decision, so that the fail mode decides. It does not for a call
    /// that the server refuses: an invalid call never opens the gate.
    pub const fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Deadline { .. }
            | Self::Interrupted { .. }
            | Self::Unavailable { .. }
            | Self::Incompatible { .. } => true,
            Self::Unauthorized { .. } | Self::Refused { .. } | Self::Namespace { .. } => false,
        }
    }

    /// The code of the server's problem, such as `unknown-gate`; `None` if the server did not
    /// answer with one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Unavailable { code, .. }
            | Self::Unauthorized { code, .. }
            | Self::Refused { code, .. } => {
                Some(code).filter(|code| !code.is_empty()).map(|c| &**c)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_a_proxy_has_no_code() {
        let unavailable = |code: &str| ClientError::Unavailable {
            server: "http://x".into(),
            status: 503,
            code: code.to_owned(),
            detail: "busy".to_owned(),
        };
        assert_eq!(unavailable("").to_string(), "http://x is unavailable: busy (503)");
        assert_eq!(unavailable("full").to_string(), "http://x is unavailable: busy (503 full)");
        assert_eq!((unavailable("").code(), unavailable("full").code()), (None, Some("full")));
    }
}
