//! Enumerations of responses, and the values of examples, for the OpenAPI document.
//!
//! Responses are written with core's own words; a test keeps these lists equal to them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The first instant of examples.
pub const NOON: &str = "2026-01-31T12:00:00Z";
/// The second instant of examples.
pub const EVENING: &str = "2026-01-31T18:00:00Z";

/// A catalog's revision in examples.
pub const REVISION: &str = "9f2c61d0a7b3e845";

/// The subject of examples.
pub fn example_subject() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("ip", "198.51.100.7")])
}

/// Why a block started.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A limit was exceeded.
    Excess,
    /// A ban rule.
    Ban,
    /// An operator.
    Operator,
    /// An upstream denied the request.
    Upstream,
}

/// Whether a policy is enforced.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Its decisions count.
    Enforce,
    /// It is evaluated and reported, but never denies.
    Shadow,
    /// It is not evaluated.
    Off,
}

/// A mode, or null for that of the catalog; a field of this type is required.
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

/// The reason of a decision, or of one policy's part of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Within the limit.
    Ok,
    /// The limit is exceeded.
    OverLimit,
    /// A block is active.
    Blocked,
    /// The subject is on the blocklist.
    Blocklisted,
    /// The subject is on the allowlist.
    Allowlisted,
    /// The cost exceeds the whole limit, so it can never pass.
    TooCostly,
    /// An attribute is missing, and the policy denies in that case.
    Missing,
    /// The store is unavailable, and the policy denies in that case.
    Unavailable,
}

/// The result of a settle.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettlementState {
    /// Applied now.
    Settled,
    /// Applied before, with this result.
    Again,
    /// Not applied: the ticket had expired.
    Expired,
}

/// Why a credit was not applied.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CreditRefusal {
    /// No check with this reference is stored.
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

/// The `type` of most denials, from the IANA registry of problem types.
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
