//! Errors of a call: what failed, the request, and how to fix it.
//!
//! Text from the server is sanitized before it is printed, so that it cannot control the terminal.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use hyper::http::StatusCode;
use serde::Deserialize;

use super::ClientCall;
use crate::exit::Exit;
use crate::render::sanitize;

/// The longest error text of a server that is printed, in characters.
const SHOWN_CHARS: usize = 2_000;

/// Why a call failed.
#[derive(Debug)]
pub struct ClientError {
    exit: Exit,
    what: String,
    request: String,
    fix: Option<String>,
    /// The `code` of the server's problem+json; `None` without one, for example after a timeout.
    pub code: Option<String>,
    /// Invalid entries of a list, numbered from one, and why.
    pub entries: Vec<(usize, String)>,
}

/// The fields of a problem+json body that are printed.
#[derive(Deserialize)]
struct RemoteProblem {
    code: String,
    detail: String,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(default)]
    errors: Vec<RemoteEntryError>,
}

/// The body of a 409 or 410 of the lock API: the lock is taken, or the lease has ended.
#[derive(Deserialize)]
struct RemoteConflict {
    error: String,
}

#[derive(Deserialize)]
struct RemoteEntryError {
    entry: usize,
    detail: String,
}

impl ClientError {
    /// The exit code of the process for this error.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  where: {}", self.what, self.request)?;
        match &self.fix {
            Some(fix) => write!(f, "\n  fix:   {fix}"),
            None => Ok(()),
        }
    }
}

impl Error for ClientError {}

impl ClientCall<'_> {
    /// No connection was made, or the TLS handshake failed.
    pub fn unreachable(&self, error: &io::Error) -> ClientError {
        let what = format!("{} cannot be reached: {error}", self.server.to_text());
        // rustls reports an untrusted certificate as InvalidData from `connect`.
        let is_tls_error = error.kind() == io::ErrorKind::InvalidData;
        self.unavailable(what, if is_tls_error { TRUST_CERTIFICATE } else { START_SERVER })
    }

    /// The server did not respond in time.
    pub fn timed_out(&self, timeout: Duration) -> ClientError {
        let what = format!("{} did not respond within {timeout:?}", self.server.to_text());
        self.unavailable(
            what,
            "try again, or set a longer --timeout; the call may have been executed",
        )
    }

    /// The HTTP exchange failed after the connection was made.
    pub fn protocol_error(&self, error: &(impl Error + ?Sized)) -> ClientError {
        let mut what = format!("the connection to {} failed: {error}", self.server.to_text());
        if let Some(cause) = error.source() {
            what.push_str(&format!(": {cause}"));
        }
        self.unavailable(
            what,
            "check that Catraca listens there, and whether the URL is http or https",
        )
    }

    /// The server closed an event stream.
    pub fn stream_closed(&self) -> ClientError {
        let what = format!("{} closed the event stream", self.server.to_text());
        self.unavailable(what, "run the command again when the server is back")
    }

    /// The response is not JSON.
    pub fn invalid_json(&self, error: &impl Error) -> ClientError {
        let what = format!("{} sent a response that is not JSON: {error}", self.server.to_text());
        self.unavailable(what, "check that Catraca listens there")
    }

    fn conflict(&self, status: StatusCode, conflict: &RemoteConflict) -> ClientError {
        ClientError {
            exit: Exit::No,
            what: sanitize(&conflict.error).chars().take(SHOWN_CHARS).collect(),
            request: format!("{}: {}", self.request_text(), status.as_u16()),
            fix: None,
            code: None,
            entries: Vec::new(),
        }
    }

    /// The server responded with an error status.
    pub fn error_response(&self, status: StatusCode, body: &[u8]) -> ClientError {
        let Ok(problem) = serde_json::from_slice::<RemoteProblem>(body) else {
            return match serde_json::from_slice::<RemoteConflict>(body) {
                Ok(conflict) => self.conflict(status, &conflict),
                Err(_) => self.unexplained_error(status),
            };
        };
        let code = sanitize(&problem.code);
        // The errors of a catalog come one per line.
        let lines: Vec<String> = problem.detail.lines().map(sanitize).collect();
        let what: String = lines.join("\n").chars().take(SHOWN_CHARS).collect();
        let at = match (problem.line, problem.column) {
            (Some(line), Some(column)) => format!(" at line {line}, column {column} of the body"),
            _ => String::new(),
        };
        ClientError {
            exit: exit(status, &code),
            what,
            request: format!("{}: {} {code}{at}", self.request_text(), status.as_u16()),
            fix: fix(&code).map(str::to_owned),
            entries: problem
                .errors
                .into_iter()
                .map(|error| (error.entry, sanitize(&error.detail)))
                .collect(),
            code: Some(code),
        }
    }

    fn unexplained_error(&self, status: StatusCode) -> ClientError {
        let what = format!("{} responded {status} without a reason", self.server.to_text());
        let fix = "check that Catraca listens there, and that no proxy rejects the request";
        let exit = if status.is_server_error() { Exit::Unreachable } else { Exit::BadInput };
        ClientError { exit, ..self.unavailable(what, fix) }
    }

    fn unavailable(&self, what: String, fix: &str) -> ClientError {
        ClientError {
            exit: Exit::Unreachable,
            what,
            request: self.request_text(),
            fix: Some(fix.to_owned()),
            code: None,
            entries: Vec::new(),
        }
    }

    fn request_text(&self) -> String {
        // The query, and the path of a fact, may contain a private value.
        let path = self.path.split('?').next().unwrap_or_default();
        let path = if path.starts_with("/v1/facts/") { "/v1/facts" } else { path };
        format!("{} {}{path}", self.method, self.server.to_text())
    }
}

const START_SERVER: &str =
    "start it with `catraca serve -c FILE`, or give its URL with --server or CATRACA_URL";

const TRUST_CERTIFICATE: &str = "for a private certificate, give it with --ca FILE or \
                                 CATRACA_CA; it must be for the host in the URL, and a \
                                 self-signed one must have CA:FALSE";

fn exit(status: StatusCode, code: &str) -> Exit {
    match code {
        "unknown-block" | "not-blocked" | "unknown-entry" | "unknown-value" => Exit::No,
        "unknown-lease" | "not-holder" | "lease-expired" | "lease-forced" => Exit::No,
        _ if status.is_server_error() => Exit::Unreachable,
        _ => Exit::BadInput,
    }
}

/// A fix in terms of the command line, where the server's own text does not have one.
fn fix(code: &str) -> Option<&'static str> {
    Some(match code {
        "no-key" => "give a file with the key with --key-file, or set CATRACA_KEY",
        "unknown-key" => {
            "check the file of --key-file, or CATRACA_KEY: the key must be one of this server's"
        }
        "role-too-low" | "namespace-bound-key" => {
            "use another key: `catraca whoami` shows the key's role, `catraca keygen` makes a key"
        }
        "namespace-required" => "write --namespace NAME",
        "reason-required" => "write --why TEXT",
        "host-not-allowed" => {
            "use a loopback address in --server, or add its host to `[server] hosts`"
        }
        "unknown-gate" | "unknown-policy" => "`catraca config show` lists gates and policies",
        "unknown-block" | "not-blocked" => "`catraca blocks list` shows the active blocks",
        "unknown-call" | "method-not-allowed" => {
            "the server is older than this program: use its own program"
        }
        _ => return None,
    })
}
