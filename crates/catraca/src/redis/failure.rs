//! What a failed call means, in our words: the names that Redis gives to its troubles.
//!
//! Must not repeat the text of a server: it may hold the bytes of keys.

use redis::{ErrorKind, RedisError};

use crate::store::StoreError;

/// Why a trip failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server, or the line to it, said so.
    Told(RedisError),
    /// There is no line, or no answer came in time.
    Silent(StoreError),
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Told(error) => meaning(&error),
            Failed::Silent(error) => error,
        }
    }
}

/// Troubles that pass, or that an operator ends; each with what it means.
const NAMED: &[(&str, &str)] = &[
    ("READONLY", "it is a replica now; its primary is being looked for"),
    ("LOADING", "it is still reading its data from disk"),
    ("BUSY", "a script of somebody keeps it busy; SCRIPT KILL ends that"),
    ("MISCONF", "it cannot save to disk and therefore takes no writes; see its log"),
    ("NOPERM", "its user may not do what this store needs; see the ACL in the guide"),
    ("NOAUTH", "it wants a password; write one in the URL"),
    ("WRONGPASS", "it does not know this user and password"),
    ("CLUSTERDOWN", "its cluster is not whole"),
    ("MASTERDOWN", "it follows a primary that is gone"),
    ("TRYAGAIN", "the keys are just being moved to another server"),
    ("NOREPLICAS", "too few replicas follow it"),
    ("NOSCRIPT", "it forgot the script twice in a row"),
    ("LATE", "its clock was set twice while it was asked"),
    ("MOVED", "the keys are on another server of the cluster"),
    ("ASK", "the keys are just being moved to another server"),
    ("CROSSSLOT", "it is a server of a cluster; write redis+cluster:// in the URL"),
];

/// How Redis tells that a command inside a script was refused.
const NO_RIGHTS: &str = "The user executing the script can't";

/// What the error means for the store's caller.
pub(super) fn meaning(error: &RedisError) -> StoreError {
    let Some(code) = code(error) else { return StoreError::unavailable(broken(error)) };
    if code == "OOM" {
        return StoreError::full("new state: Redis is at its maxmemory");
    }
    if code == "WRONGTYPE" {
        return StoreError::corrupt("a key of ours holds what this program does not write");
    }
    match named(code) {
        Some(meaning) => StoreError::unavailable(format!("Redis answers {code}: {meaning}")),
        None if code == "ERR" => StoreError::corrupt(ran_aground(error)),
        None => StoreError::unavailable(format!("Redis answers {code}")),
    }
}

/// What a trouble's name means, if it is a known one.
pub(super) fn named(code: &str) -> Option<&'static str> {
    NAMED.iter().find(|(name, _)| *name == code).map(|(_, meaning)| *meaning)
}

/// The trouble's name. A server before 7.0 wraps what a command answered inside a script.
pub(super) fn code(error: &RedisError) -> Option<&str> {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return Some("WRONGPASS");
    }
    let code = error.code()?;
    // What a user may not do, a script of theirs may not either; the name is lost on the way.
    if code == "ERR" && error.detail().is_some_and(|detail| detail.contains(NO_RIGHTS)) {
        return Some("NOPERM");
    }
    let wrapped = error.detail().filter(|_| code == "ERR").and_then(|detail| {
        let after = detail.split(": -").nth(1)?;
        after.split_whitespace().next().filter(|word| word.bytes().all(|b| b.is_ascii_uppercase()))
    });
    Some(wrapped.unwrap_or(code))
}

fn ran_aground(error: &RedisError) -> String {
    let detail = error.detail().unwrap_or_default();
    let what = if detail.contains("CATRACA damaged cell") { "a damaged cell" } else { "an error" };
    format!("the script ended in {what}; a reset of the key removes what it found")
}

/// Why the line is of no use, for those who come next.
pub(super) fn reason(error: &RedisError) -> String {
    match meaning(error) {
        StoreError::Unavailable { reason } => reason,
        other => other.to_string(),
    }
}

/// What happened to the line.
pub(super) fn broken(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Io => format!("the connection to Redis failed: {error}"),
        kind => format!("Redis was not understood: {kind:?}"),
    }
}
