//! Translates errors of Redis into store errors, with the remedy where one is known.
//!
//! The text of a server's error is not repeated: it may contain the bytes of keys.

use redis::{ErrorKind, RedisError};

use crate::store::StoreError;

/// Why a round trip failed.
#[derive(Debug)]
pub(super) enum RoundTripError {
    /// The server answered with an error, or the connection broke.
    Redis(RedisError),
    /// The connection is down, or no answer came in time.
    NoReply(StoreError),
}

impl From<RoundTripError> for StoreError {
    fn from(error: RoundTripError) -> Self {
        match error {
            RoundTripError::Redis(error) => to_store_error(&error),
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
    ("NOREPLICAS", "too few replicas are connected to it"),
    ("NOSCRIPT", "it lost the script twice in a row"),
    ("LATE", "its clock was set twice during the call"),
    ("MOVED", "the keys are on another server of the cluster"),
    ("ASK", "the keys are being moved to another server"),
    ("CROSSSLOT", "it is a server of a cluster; write redis+cluster:// in the URL"),
];

/// The text of Redis' error when the ACL refuses a command inside a script.
const NO_PERMISSION: &str = "The user executing the script can't";

/// The store error for an error of Redis.
pub(super) fn to_store_error(error: &RedisError) -> StoreError {
    let Some(code) = error_code(error) else {
        return StoreError::unavailable(describe_io_error(error));
    };
    if code == "OOM" {
        return StoreError::full("new state: Redis is at its maxmemory");
    }
    if code == "WRONGTYPE" {
        return StoreError::corrupt("a key with our prefix was written by another program");
    }
    match known_meaning(code) {
        Some(meaning) => StoreError::unavailable(format!("Redis answers {code}: {meaning}")),
        // An error of the script itself.
        None if code == "ERR" => StoreError::corrupt(describe_script_error(error)),
        None => StoreError::unavailable(format!("Redis answers {code}")),
    }
}

/// What an error code means, if it is in the list.
pub(super) fn known_meaning(code: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning)
}

/// The error code, or none if the connection failed.
pub(super) fn error_code(error: &RedisError) -> Option<&str> {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return Some("WRONGPASS");
    }
    let code = error.code()?;
    // A command that the ACL refuses inside a script is reported as ERR, not as NOPERM.
    if code == "ERR" && error.detail().is_some_and(|detail| detail.contains(NO_PERMISSION)) {
        return Some("NOPERM");
    }
    // Servers before 7.0 wrap the error of a command inside a script: `ERR Error running script
    // (...): -OOM ...`. The code is the word behind ": -".
    let wrapped = error.detail().filter(|_| code == "ERR").and_then(|detail| {
        let after = detail.split(": -").nth(1)?;
        after.split_whitespace().next().filter(|word| word.bytes().all(|b| b.is_ascii_uppercase()))
    });
    Some(wrapped.unwrap_or(code))
}

fn describe_script_error(error: &RedisError) -> String {
    let detail = error.detail().unwrap_or_default();
    let what = if detail.contains("CATRACA damaged cell") { "a damaged cell" } else { "an error" };
    format!("the script was aborted by {what}; a reset of the key deletes its cells")
}

/// Why the connection cannot be used, as the calls that follow report it.
pub(super) fn unavailable_reason(error: &RedisError) -> String {
    match to_store_error(error) {
        StoreError::Unavailable { reason } => reason,
        other => other.to_string(),
    }
}

/// What happened to the connection.
pub(super) fn describe_io_error(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Io => format!("the connection to Redis failed: {error}"),
        kind => format!("the answer of Redis cannot be read: {kind:?}"),
    }
}
