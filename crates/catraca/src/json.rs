//! JSON bodies of decisions and results, the same on every interface.
//!
//! Domain types have no serde attributes; a body borrows one of them, and derives its JSON and its
//! schema from the same fields. [`AsJson`] serializes a domain value as its body. A body must not
//! add or omit information.

mod credit;
mod words;

#[cfg(feature = "shared")]
use crate::app::SettleAnswer;
use crate::settlement::{BucketState, CreditResult, SettledRow, Settlement};
use catraca_core::decision::{Decision, DecisionRow, WindowQuota};
use catraca_core::time::{Span, Time};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::Serializer;

pub use credit::{CreditBody, CreditedBucketBody};
pub use words::{CreditReasonWord, ModeWord, OriginWord, ReasonWord, SettleStateWord, origin_name};

/// Serializes the borrowed value as its JSON body.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<T>(pub T);

/// Whether a request may pass. A denial is a decision, not an error.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Decision"))]
pub struct DecisionBody<'a> {
    allowed: bool,
    reason: ReasonWord,
    /// The policy that decided, or the tightest when allowed; null if no limit applies.
    #[cfg_attr(feature = "schema", schemars(example = &"login"))]
    policy: Option<&'a str>,
    /// That policy's limit.
    #[cfg_attr(feature = "schema", schemars(example = 10))]
    limit: Option<i64>,
    /// What remains of it; never negative.
    #[cfg_attr(feature = "schema", schemars(example = 9))]
    remaining: Option<i64>,
    /// Until the full quota is available and no block is active.
    #[cfg_attr(feature = "schema", schemars(example = 900_000))]
    reset_after_ms: Option<i64>,
    /// Until this check would pass; null when allowed, or never.
    retry_after_ms: Option<i64>,
    blocked_until: Option<InstantText>,
    mode: ModeWord,
    /// Whether a failure or a lack of memory made this less exact.
    #[cfg_attr(feature = "schema", schemars(example = false))]
    degraded: bool,
    /// The catalog's revision.
    #[cfg_attr(feature = "schema", schemars(example = &"9f2c61d0a7b3e845"))]
    revision: &'a str,
    /// Text for the caller.
    message: Option<&'a str>,
    /// The ticket to settle this check with; null if there is nothing to settle.
    ticket: Option<&'a str>,
    /// True if a cached block decided, without a call to the store; absent otherwise.
    #[serde(skip_serializing_if = "is_false")]
    cached: bool,
    /// True if the catalog does not name the gate; absent otherwise.
    #[serde(skip_serializing_if = "is_false")]
    unlisted: bool,
    /// The status for a gateway to respond with, if a ban rule names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Every policy of the gate.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DecisionRowBody<'static>>"))]
    policies: AsJson<&'a [DecisionRow]>,
}

/// One policy's part of a decision.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "DecisionRow"))]
pub struct DecisionRowBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"login"))]
    policy: &'a str,
    /// The attribute, if the policy counts each attribute on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<&'a str>,
    allowed: bool,
    reason: ReasonWord,
    #[cfg_attr(feature = "schema", schemars(example = 10))]
    limit: Option<i64>,
    #[cfg_attr(feature = "schema", schemars(example = 9))]
    remaining: Option<i64>,
    /// A bucket's tokens; negative is debt.
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<i64>,
    #[cfg_attr(feature = "schema", schemars(example = 900_000))]
    reset_after_ms: Option<i64>,
    retry_after_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_until: Option<InstantText>,
    /// What this check was charged, or holds until it is settled.
    #[cfg_attr(feature = "schema", schemars(example = 1))]
    charged: i64,
    mode: ModeWord,
    /// The windows in the order of the policy, if it has several; absent otherwise. The numbers of
    /// the row are those of the window with the smallest share left.
    #[serde(skip_serializing_if = "has_no_rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<WindowBody>>"))]
    windows: AsJson<&'a [WindowQuota]>,
}

/// One of several windows of a policy.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Window"))]
pub struct WindowBody {
    #[cfg_attr(feature = "schema", schemars(example = 600))]
    limit: i64,
    /// The length of the window.
    #[cfg_attr(feature = "schema", schemars(example = 60_000))]
    window_ms: i64,
    #[cfg_attr(feature = "schema", schemars(example = 599))]
    remaining: i64,
    /// Until the window is empty and no block is active; null if that never comes.
    #[cfg_attr(feature = "schema", schemars(example = 60_000))]
    reset_after_ms: Option<i64>,
    /// Until the same check would fit in this window; null if it fits, or never will.
    retry_after_ms: Option<i64>,
}

/// The result of a settle.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Settlement"))]
pub struct SettlementBody<'a> {
    state: SettleStateWord,
    /// Every policy that was charged.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SettledRowBody<'static>>"))]
    policies: AsJson<&'a [SettledRow]>,
    /// True if a ban rule could not read the body, because it is larger than the catalog's
    /// `body_bytes_max`; absent otherwise.
    #[serde(skip_serializing_if = "is_false")]
    body_truncated: bool,
    /// True if a ban rule could not read the body, because it is not readable as JSON; absent
    /// otherwise.
    #[serde(skip_serializing_if = "is_false")]
    body_invalid: bool,
    /// Whether it is on disk; present if the settle left a debt or started a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// One policy's part of a settlement.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "SettledRow"))]
pub struct SettledRowBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"lookups"))]
    policy: &'a str,
    /// The whole charge of the check.
    #[cfg_attr(feature = "schema", schemars(example = 20))]
    charged: i64,
    /// The available units now; negative is debt, null if nothing is counted.
    #[cfg_attr(feature = "schema", schemars(example = -15))]
    balance: Option<i64>,
    blocked_until: Option<InstantText>,
    /// The origin of the block that this settle started or extended.
    blocked_by: Option<OriginWord>,
    /// The reason of the rule, if it has one.
    reason: Option<&'a str>,
    /// The status for the request that triggered a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The message for the client of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// The state of a bucket.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "BucketState"))]
pub struct BucketStateBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"lookups"))]
    policy: &'a str,
    /// Its capacity.
    #[cfg_attr(feature = "schema", schemars(example = 100))]
    size: i64,
    /// Whole tokens; negative is debt.
    #[cfg_attr(feature = "schema", schemars(example = -15))]
    balance: i64,
    /// The balance, or 0 if it is negative.
    #[cfg_attr(feature = "schema", schemars(example = 0))]
    available: i64,
    /// Tokens gained per period, in lowest terms.
    #[cfg_attr(feature = "schema", schemars(example = 1))]
    refill_tokens: i64,
    /// The period, in microseconds.
    #[cfg_attr(feature = "schema", schemars(example = 30_000_000))]
    refill_period_us: i64,
    #[cfg_attr(feature = "schema", schemars(example = 3_450_000))]
    reset_after_ms: Option<i64>,
    /// Until one token is available; null if one is, or if none ever will be.
    #[cfg_attr(feature = "schema", schemars(example = 480_000))]
    retry_after_ms: Option<i64>,
    blocked_until: Option<InstantText>,
}

/// An instant in RFC 3339, in UTC.
#[derive(Clone, Copy, Debug)]
pub struct InstantText(pub Time);

impl Serialize for InstantText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339())
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for InstantText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "InstantText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

impl<'a> From<&'a Decision> for DecisionBody<'a> {
    fn from(decision: &'a Decision) -> Self {
        Self {
            allowed: decision.allowed,
            reason: decision.reason.into(),
            policy: decision.policy.as_deref(),
            limit: decision.limit,
            remaining: decision.remaining,
            reset_after_ms: millis(decision.reset_after),
            retry_after_ms: millis(decision.retry_after),
            blocked_until: decision.blocked_until.map(InstantText),
            mode: decision.mode.into(),
            degraded: decision.degraded,
            revision: &decision.revision,
            message: decision.message.as_deref(),
            ticket: decision.ticket.as_deref(),
            cached: decision.cached,
            unlisted: decision.unlisted,
            status: decision.status,
            policies: AsJson(&decision.rows),
        }
    }
}

impl<'a> From<&'a DecisionRow> for DecisionRowBody<'a> {
    fn from(row: &'a DecisionRow) -> Self {
        Self {
            policy: &row.policy,
            attribute: row.attribute.as_deref(),
            allowed: row.allowed,
            reason: row.reason.into(),
            limit: row.limit,
            remaining: row.remaining,
            balance: row.balance,
            reset_after_ms: millis(row.reset_after),
            retry_after_ms: millis(row.retry_after),
            blocked_until: row.blocked_until.map(InstantText),
            charged: row.charged,
            mode: row.mode.into(),
            windows: AsJson(&row.windows),
        }
    }
}

impl From<&WindowQuota> for WindowBody {
    fn from(window: &WindowQuota) -> Self {
        Self {
            limit: window.limit,
            window_ms: window.span.ceil_millis(),
            remaining: window.remaining,
            reset_after_ms: millis(window.reset_after),
            retry_after_ms: millis(window.retry_after),
        }
    }
}

impl<'a> From<&'a Settlement> for SettlementBody<'a> {
    fn from(settlement: &'a Settlement) -> Self {
        Self {
            state: settlement.state.into(),
            policies: AsJson(&settlement.rows),
            body_truncated: settlement.body_truncated,
            body_invalid: settlement.body_invalid,
            durable: None,
        }
    }
}

#[cfg(feature = "shared")]
impl<'a> From<&'a SettleAnswer> for SettlementBody<'a> {
    fn from(answer: &'a SettleAnswer) -> Self {
        Self { durable: answer.durable, ..Self::from(&answer.settlement) }
    }
}

impl<'a> From<&'a SettledRow> for SettledRowBody<'a> {
    fn from(row: &'a SettledRow) -> Self {
        Self {
            policy: &row.policy,
            charged: row.charged,
            balance: row.balance,
            blocked_until: row.blocked_until.map(InstantText),
            blocked_by: row.blocked_by.map(OriginWord::from),
            reason: row.reason.as_deref(),
            status: row.status,
            message: row.message.as_deref(),
        }
    }
}

impl<'a> From<&'a BucketState> for BucketStateBody<'a> {
    fn from(state: &'a BucketState) -> Self {
        Self {
            policy: &state.policy,
            size: state.size,
            balance: state.balance,
            available: state.balance.max(0),
            refill_tokens: state.refill_tokens,
            refill_period_us: state.refill_period.micros(),
            reset_after_ms: millis(state.reset_after),
            retry_after_ms: millis(state.retry_after),
            blocked_until: state.blocked_until.map(InstantText),
        }
    }
}

/// Serializes a domain value, and a slice of its rows, by its body.
macro_rules! serialize_by_body {
    ($($value:ty => $body:ty),* $(,)?) => {$(
        impl Serialize for AsJson<&$value> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$body>::from(self.0).serialize(serializer)
            }
        }

        impl Serialize for AsJson<&[$value]> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(<$body>::from))
            }
        }
    )*};
}

serialize_by_body! {
    Decision => DecisionBody<'_>,
    DecisionRow => DecisionRowBody<'_>,
    WindowQuota => WindowBody,
    Settlement => SettlementBody<'_>,
    SettledRow => SettledRowBody<'_>,
    CreditResult => CreditBody<'_>,
    BucketState => BucketStateBody<'_>,
}

fn millis(span: Option<Span>) -> Option<i64> {
    span.map(Span::ceil_millis)
}

const fn has_no_rows(rows: &AsJson<&[WindowQuota]>) -> bool {
    rows.0.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
