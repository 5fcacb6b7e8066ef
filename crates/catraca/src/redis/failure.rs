//! Translates errors of Redis into store errors, with the remedy where one is known.
//!
//! The text of a server's error is not repeated: it may contain the bytes of keys.

use redis::{ErrorKind, RedisError, ServerError};

use super::url::RedisAddress;
use crate::store::StoreError;

/// Why a round trip failed.
#[derive(Debug)]
pub(super) enum RoundTripError {
    /// The server answered with an error, or the connection broke.
    Redis { server: RedisAddress, error: RedisError },
    /// The connection is down, or no answer came in time.
    NoReply(StoreError),
}

impl From<RoundTripError> for StoreError {
    fn from(error: RoundTripError) -> Self {
        match error {
            RoundTripError::Redis { server, error } => to_store_error(&server, &error),
            RoundTripError::NoReply(error) => error,
        }
    }
}

/// Error codes that are transient, or that an operator can resolve, each with its meaning. `LATE`
/// is an error of our script; the others are Redis' own.
const MEANINGS: &[(&str, &str)] = &[
    ("READONLY", "it is a replica now; its primary is being looked for"),
    ("LOADING", "it is still reading its data from disk"),
    ("BUSY", "another script is running for too long; SCRIPT KILL ends it"),
    ("MISCONF", "it cannot save to disk and therefore takes no writes; see its log"),
    ("NOPERM", "its user lacks a permission that this store needs; see the ACL in the guide"),
    ("NOAUTH", "it requires a password; write one in the URL"),
    ("WRONGPASS", "user or password is wrong"),
    ("CLUSTERDOWN", "its cluster is incomplete"),
    ("MASTERDOWN", "it is a replica whose primary is unavailable"),
    ("TRYAGAIN", "the keys are being moved to another server"),
    (
        "NOREPLICAS",
        "fewer replicas follow it than its min-replicas-to-write demands, so it refuses writes; \
         see INFO replication, and start or connect a replica",
    ),
    ("NOSCRIPT", "it lost the script twice in a row"),
    ("LATE", "its clock was set twice during the call"),
    ("MOVED", "the keys are on another server of the cluster"),
    ("ASK", "the keys are being moved to another server"),
    ("CROSSSLOT", "it is a server of a cluster; write redis+cluster:// in the URL"),
];

/// The text of Redis' error when the ACL refuses a command inside a script.
const NO_PERMISSION: &str = "The user executing the script can't";

/// The store error for an error of a server.
pub(super) fn to_store_error(server: &RedisAddress, error: &RedisError) -> StoreError {
    let Some(code) = error_code(error) else {
        return StoreError::unavailable(describe_io_error(error));
    };
    if code == "OOM" {
        return StoreError::full("new state: Redis is at its maxmemory");
    }
    if code == "WRONGTYPE" {
        return StoreError::corrupt("a key with our prefix was written by another program");
    }
    let answer = format!("Redis at {server} answers {code}");
    if is_moving(&code) {
        let meaning = known_meaning(&code).unwrap_or_default();
        return StoreError::Moving { reason: format!("{answer}: {meaning}") };
    }
    match known_meaning(&code) {
        Some(meaning) => StoreError::unavailable(format!("{answer}: {meaning}")),
        // An error of the script itself.
        None if code == "ERR" => StoreError::corrupt(describe_script_error(error)),
        None => StoreError::unavailable(answer),
    }
}

/// Whether a server of a cluster says with this code that it did not run the call, because the keys
/// are being moved or are on another server.
pub(super) fn is_moving(code: &str) -> bool {
    matches!(code, "TRYAGAIN" | "ASK" | "MOVED")
}

/// What an error code means, if it is in the list.
pub(super) fn known_meaning(code: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning)
}

/// The error code, or none if the connection failed. Of a pipeline or a transaction, the code of
/// the first command that failed.
pub(super) fn error_code(error: &RedisError) -> Option<String> {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return Some("WRONGPASS".to_owned());
    }
    let first = first_server_error(error);
    let code = first.as_ref().map(ServerError::code).or_else(|| error.code())?;
    if code != "ERR" {
        return Some(code.to_owned());
    }
    let detail = first.as_ref().and_then(ServerError::details).or_else(|| error.detail());
    let detail = detail.unwrap_or_default();
    // A command that the ACL refuses inside a script is reported as ERR, not as NOPERM.
    if detail.contains(NO_PERMISSION) {
        return Some("NOPERM".to_owned());
    }
    // Servers before 7.0 wrap the error of a command inside a script: `ERR Error running script
    // (...): -OOM ...`. The code is the word behind ": -".
    let wrapped = detail.split(": -").nth(1).and_then(|after| after.split_whitespace().next());
    let wrapped = wrapped.filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()));
    Some(wrapped.unwrap_or(code).to_owned())
}

/// What the server answered. The driver shows no code for the errors of a pipeline, except for
/// those that it knows, and `EXECABORT` for every transaction that was refused.
fn first_server_error(error: &RedisError) -> Option<ServerError> {
    let errors = error.clone().into_server_errors()?;
    errors.first().map(|(_, error)| error.clone())
}

fn describe_script_error(error: &RedisError) -> String {
    let detail = error.detail().unwrap_or_default();
    let what = if detail.contains("CATRACA damaged cell") { "a damaged cell" } else { "an error" };
    format!("the script was aborted by {what}; a reset of the key deletes its cells")
}

/// Why the connection cannot be used, as the calls that follow report it.
pub(super) fn unavailable_reason(server: &RedisAddress, error: &RedisError) -> String {
    match to_store_error(server, error) {
        StoreError::Unavailable { reason } | StoreError::Moving { reason } => reason,
        other => other.to_string(),
    }
}

/// The text of an error behind its code. It may contain the bytes of keys: compare it, but do not
/// show it.
pub(super) fn error_text(error: &RedisError) -> &str {
    error.detail().unwrap_or_default()
}

/// An error that a call gives itself before it is sent; its text is shown.
pub(super) fn not_sent(reason: &str) -> RedisError {
    RedisError::from((ErrorKind::Client, "not sent", reason.to_owned()))
}

/// What happened to the connection.
pub(super) fn describe_io_error(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Client => error_text(error).to_owned(),
        ErrorKind::Io => format!("the connection to Redis failed: {error}"),
        kind => format!("the answer of Redis cannot be read: {kind:?}"),
    }
}
