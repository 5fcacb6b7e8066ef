//! Schemas of responses that are not serialised from a type: decisions, settlements, bucket states.
//!
//! Those are written by hand for speed, so these types exist for the document only. Tests parse
//! real responses as these types and compare the JSON of the result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::bodies::schema_values;
use crate::http::bodies::schema_values::{CreditRefusal, Mode, Origin, Reason, SettlementState};

/// Whether a request may pass. A denial is a decision, not an error.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    allowed: bool,
    reason: Reason,
    /// The policy that decided, or the tightest when allowed; null if no limit applies.
    #[schemars(example = &"login")]
    policy: Option<String>,
    /// That policy's limit.
    #[schemars(example = 10)]
    limit: Option<i64>,
    /// What remains of it; never negative.
    #[schemars(example = 9)]
    remaining: Option<i64>,
    /// Until the full quota is available and no block is active.
    #[schemars(example = 900_000)]
    reset_after_ms: Option<i64>,
    /// Until this check would pass; null when allowed, or never.
    retry_after_ms: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
    mode: Mode,
    /// Whether a failure or a lack of memory made this less exact.
    #[schemars(example = false)]
    degraded: bool,
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    /// Text for the caller.
    message: Option<String>,
    /// The ticket to settle this check with; null if there is nothing to settle.
    ticket: Option<String>,
    /// True if a cached block decided, without a call to the store; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    /// True if the catalog does not name the gate; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unlisted: Option<bool>,
    /// The status for a gateway to respond with, if a ban rule names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Every policy of the gate.
    policies: Vec<DecisionRowSchema>,
}

/// One policy's part of a decision.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DecisionRow")]
pub struct DecisionRowSchema {
    #[schemars(example = &"login")]
    policy: String,
    /// The attribute, if the policy counts each attribute on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attribute: Option<String>,
    allowed: bool,
    reason: Reason,
    #[schemars(example = 10)]
    limit: Option<i64>,
    #[schemars(example = 9)]
    remaining: Option<i64>,
    /// A bucket's tokens; negative is debt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    balance: Option<i64>,
    #[schemars(example = 900_000)]
    reset_after_ms: Option<i64>,
    retry_after_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
    /// What this check was charged, or holds until it is settled.
    #[schemars(example = 1)]
    charged: i64,
    mode: Mode,
}

/// The result of a settle.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    state: SettlementState,
    /// Every policy that was charged.
    policies: Vec<SettledRow>,
    /// True if a ban rule could not read the body, because it is larger than the catalog's
    /// `body_bytes_max`; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_truncated: Option<bool>,
    /// Whether it is on disk; present if the settle left a debt or started a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// One policy's part of a settlement.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettledRow {
    #[schemars(example = &"lookups")]
    policy: String,
    /// The whole charge of the check.
    #[schemars(example = 20)]
    charged: i64,
    /// The available units now; negative is debt, null if nothing is counted.
    #[schemars(example = -15)]
    balance: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
    /// The origin of the block that this settle started or extended.
    blocked_by: Option<Origin>,
    /// The reason of the rule, if it has one.
    reason: Option<String>,
    /// The status for the request that triggered a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The message for the client of that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The result of a credit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreditOutcome {
    applied: bool,
    /// Why it was not applied; null if it was.
    reason: Option<CreditRefusal>,
    /// The amount that each bucket was credited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<CreditedBucket>>,
}

/// The amount that one bucket was credited.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreditedBucket {
    #[schemars(example = &"lookups")]
    policy: String,
    #[schemars(example = 1)]
    amount: i64,
}

/// The buckets of a subject.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketStates {
    buckets: Vec<BucketState>,
}

/// The state of a bucket.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketState {
    #[schemars(example = &"lookups")]
    policy: String,
    /// Its capacity.
    #[schemars(example = 100)]
    size: i64,
    /// Whole tokens; negative is debt.
    #[schemars(example = -15)]
    balance: i64,
    /// The balance, or 0 if it is negative.
    #[schemars(example = 0)]
    available: i64,
    /// Tokens gained per period, in lowest terms.
    #[schemars(example = 1)]
    refill_tokens: i64,
    /// The period, in microseconds.
    #[schemars(example = 30_000_000)]
    refill_period_us: i64,
    #[schemars(example = 3_450_000)]
    reset_after_ms: Option<i64>,
    /// Until one token is available; null if one is, or if none ever will be.
    #[schemars(example = 480_000)]
    retry_after_ms: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
}

/// An error (RFC 9457).
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Problem")]
pub struct ProblemSchema {
    /// The page about this error code.
    #[schemars(extend("format" = "uri-reference"))]
    r#type: String,
    title: String,
    status: u16,
    /// A stable code for programs.
    code: String,
    /// The error in this request, and how to fix it.
    detail: String,
    /// Line of the body, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Column of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    /// The invalid entries of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<WrongEntry>>,
}

/// An invalid entry of a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongEntry {
    /// Its position in the list, counted from one.
    #[schemars(example = 3)]
    entry: u64,
    /// The error in it.
    detail: String,
}

/// A denial, as a gateway forwards it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    #[schemars(extend("format" = "uri"), example = schema_values::QUOTA_EXCEEDED)]
    r#type: String,
    #[schemars(example = &"Too Many Requests")]
    title: Option<String>,
    #[schemars(example = 429)]
    status: u16,
    /// The policy's message.
    #[schemars(example = &"Slow down: try again in 1 minute.")]
    detail: Option<String>,
    #[schemars(example = &"over_limit")]
    reason: Reason,
    #[schemars(example = &"login")]
    policy: Option<String>,
    #[serde(rename = "violated-policies")]
    #[schemars(example = ["login"])]
    violated_policies: Vec<String>,
    /// Whole seconds; null if the request will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// A denial in the formats `message`, `error` and `conflict` of `[server] denial`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JsonDenial {
    /// `message`.
    Message(DenialMessage),
    /// `error` and `conflict`.
    Error(DenialError),
}

/// A denial for people.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DenialMessage {
    #[schemars(example = false)]
    success: bool,
    error: bool,
    /// The policy's message.
    #[schemars(example = &"Slow down: try again in 1 minute.")]
    error_message: String,
    /// Whole seconds; null if the request will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// A denial for programs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DenialError {
    #[schemars(example = &"Rate limit exceeded")]
    error: String,
    /// True in the format `conflict`; absent in `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conflict: Option<bool>,
    /// Whole seconds; null if the request will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// One decision, or a list in the order of the checks; an invalid check is a problem in that list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Decisions {
    /// For one check.
    One(Decision),
    /// For a list.
    Many(Vec<DecisionOrProblem>),
}

/// A decision, or the error in its check.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DecisionOrProblem {
    /// Decided.
    Decision(Decision),
    /// Refused.
    Problem(ProblemSchema),
}

#[cfg(test)]
mod tests;
