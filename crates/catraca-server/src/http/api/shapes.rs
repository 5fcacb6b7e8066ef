//! The shapes of answers that are written by hand: decisions, settlements and bucket states.
//!
//! They exist for the description alone; tests read real answers back through them and demand the
//! same bytes' meaning. Must stay equal to `catraca::shape`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::words::{self, Mode, NotCredited, Origin, Reason, State};

/// May this caller pass? A denial is an answer like any other.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    allowed: bool,
    reason: Reason,
    /// The policy that decided, or the tightest when allowed; null where no limit is in force.
    #[schemars(example = &"login")]
    policy: Option<String>,
    /// That policy's limit.
    #[schemars(example = 10)]
    limit: Option<i64>,
    /// What is left of it; never negative.
    #[schemars(example = 9)]
    remaining: Option<i64>,
    /// Until the full quota is back and no block stands.
    #[schemars(example = 900_000)]
    reset_after_ms: Option<i64>,
    /// Until this check would pass; null when allowed, or never.
    retry_after_ms: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
    mode: Mode,
    /// Whether a failure or a lack of room made this less exact.
    #[schemars(example = false)]
    degraded: bool,
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    /// Text for the caller.
    message: Option<String>,
    /// Proof of this check, to settle it with; null when there is nothing to settle.
    ticket: Option<String>,
    /// Present and true where a block that this node knew of decided, and nothing else was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached: Option<bool>,
    /// Present and true where the catalog does not name the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unlisted: Option<bool>,
    /// The status that a gateway answers, where a ban rule names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Every policy of the gate.
    policies: Vec<Row>,
}

/// One policy's part of a decision.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DecisionRow")]
pub struct Row {
    #[schemars(example = &"login")]
    policy: String,
    /// Which attribute, of a policy that counts each on its own.
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
    /// What this check took, or holds until it is settled.
    #[schemars(example = 1)]
    charged: i64,
    mode: Mode,
}

/// What a settle came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    state: State,
    /// Every policy that was charged.
    policies: Vec<SettledRow>,
    /// True if a ban rule reads the body and did not see it, because it is larger than the
    /// catalog's `body_bytes_max`; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_truncated: Option<bool>,
    /// Whether it is on disk; present where it must survive: it left a debt or started a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// One policy's part of a settlement.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettledRow {
    #[schemars(example = &"lookups")]
    policy: String,
    /// What it paid in all.
    #[schemars(example = 20)]
    charged: i64,
    /// What is free now; negative is debt, null where nothing is counted.
    #[schemars(example = -15)]
    balance: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
    /// What this settle started or lengthened.
    blocked_by: Option<Origin>,
    /// Why, when a rule says.
    reason: Option<String>,
    /// The status for the request that triggered a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Text for that request's caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// What a credit came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credited {
    applied: bool,
    /// Why not; null if it was.
    reason: Option<NotCredited>,
    /// What each bucket took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<Given>>,
}

/// What a bucket took of a credit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CreditedBucket")]
pub struct Given {
    #[schemars(example = &"lookups")]
    policy: String,
    #[schemars(example = 1)]
    amount: i64,
}

/// Every bucket that counts a subject.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketStates {
    buckets: Vec<BucketState>,
}

/// What a bucket holds.
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
    /// The same, never negative.
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
    /// Until one token is there; null if it is, or never.
    #[schemars(example = 480_000)]
    retry_after_ms: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    blocked_until: Option<String>,
}

/// What is wrong with a request (RFC 9457).
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// A page about it.
    #[schemars(extend("format" = "uri-reference"))]
    r#type: String,
    title: String,
    status: u16,
    /// A stable code for programs.
    code: String,
    /// What is wrong here, and how to fix it.
    detail: String,
    /// Line of the body, counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Column of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
    /// Every entry of a list that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<WrongEntry>>,
}

/// An entry of a list that is wrong.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongEntry {
    /// Its place in the list, counted from one.
    #[schemars(example = 3)]
    entry: u64,
    /// What is wrong with it.
    detail: String,
}

/// A denial, as a gateway hands it on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    #[schemars(extend("format" = "uri"), example = words::QUOTA_EXCEEDED)]
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
    /// Whole seconds; null if it will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// A denial in the shapes `message`, `error` and `conflict` of `[server] denial`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OtherDenial {
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
    /// Whole seconds; null if it will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// A denial for programs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DenialError {
    #[schemars(example = &"Rate limit exceeded")]
    error: String,
    /// True, in the shape `conflict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conflict: Option<bool>,
    /// Whole seconds; null if it will never pass.
    #[schemars(example = 60)]
    retry_after: Option<i64>,
}

/// One decision, or a list of them, each with its own place; a check that is wrong is a problem.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Decisions {
    /// For one check.
    One(Decision),
    /// For a list.
    Many(Vec<DecisionOrProblem>),
}

/// A decision, or what is wrong with its check.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DecisionOrProblem {
    /// Decided.
    Decision(Decision),
    /// Refused.
    Problem(Problem),
}

#[cfg(test)]
mod tests;
