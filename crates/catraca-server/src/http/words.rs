//! Fixed words of answers, and the values that examples are made of, for the API's description.
//!
//! The words themselves are core's; a test holds the lists equal. Must not decide which is sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Instants of examples.
pub const NOON: &str = "2026-01-31T12:00:00Z";
/// The same evening.
pub const EVENING: &str = "2026-01-31T18:00:00Z";

/// A catalog's revision in examples.
pub const REVISION: &str = "9f2c61d0a7b3e845";

/// The subject of examples.
pub fn subject() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("ip", "198.51.100.7")])
}

/// What started a block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A limit was exceeded.
    Excess,
    /// A ban rule.
    Ban,
    /// An operator.
    Operator,
    /// An upstream said so.
    Upstream,
}

/// Whether a policy decides.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It does.
    Enforce,
    /// It only says what it would decide.
    Shadow,
    /// It is not looked at.
    Off,
}

/// A mode, or null for the catalog's own; a field of this kind must be written out.
pub struct ModeOrNull;

impl JsonSchema for ModeOrNull {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("ModeOrNull")
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["enforce", "shadow", "off", null] })
    }
}

/// Why a decision, or a row of it, is as it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There was room.
    Ok,
    /// There was none.
    OverLimit,
    /// A block stands.
    Blocked,
    /// An entry of the blocklist.
    Blocklisted,
    /// An entry of the allowlist.
    Allowlisted,
    /// It costs more than there ever is.
    TooCostly,
    /// An attribute is missing, and the policy denies then.
    Missing,
    /// The store does not answer, and the policy denies then.
    Unavailable,
}

/// What a settle came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Applied now.
    Settled,
    /// Applied before, with this result.
    Again,
    /// Not applied: the ticket's time was over.
    Expired,
}

/// Why nothing was credited.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotCredited {
    /// No check is remembered under this reference.
    Unknown,
    /// It belongs to another subject.
    OtherSubject,
    /// This event was credited before.
    Duplicate,
    /// The check is not settled yet.
    NotSettled,
    /// No rule credits this event and outcome.
    NotCreditable,
}

/// The kind of most denials, in the registry of problem types.
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
