//! JSON body of a decision.

use std::borrow::Cow;

use catraca_core::decision::{Decision, DecisionRow, WindowQuota};
use catraca_core::time::{Span, Time};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstantText, JsonRows, ModeWord, ReasonWord, from_millis, is_false, millis};

/// Whether a request may pass. A denial is a decision, not an error.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Decision"))]
pub struct DecisionBody<'a> {
    allowed: bool,
    reason: ReasonWord,
    /// The policy that decided, or the tightest when allowed; null if no limit applies.
    #[cfg_attr(feature = "schema", schemars(example = &"login"))]
    policy: Option<Cow<'a, str>>,
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
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(example = &"9f2c61d0a7b3e845"))]
    revision: Cow<'a, str>,
    /// Text for the caller.
    message: Option<Cow<'a, str>>,
    /// The ticket to settle this check with; null if there is nothing to settle.
    ticket: Option<Cow<'a, str>>,
    /// True if a cached block decided, without a call to the store; absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    cached: bool,
    /// True if the catalog does not name the gate; absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    unlisted: bool,
    /// The status for a gateway to respond with, if a ban rule names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// Every policy of the gate.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<DecisionRowBody<'static>>"))]
    policies: JsonRows<'a, DecisionRow>,
}

/// One policy's part of a decision.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "DecisionRow"))]
pub struct DecisionRowBody<'a> {
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(example = &"login"))]
    policy: Cow<'a, str>,
    /// The attribute, if the policy counts each attribute on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<Cow<'a, str>>,
    allowed: bool,
    reason: ReasonWord,
    #[cfg_attr(feature = "schema", schemars(example = 10))]
    limit: Option<i64>,
    /// The length of the limit's window, or how long an empty bucket takes to fill; absent if
    /// nothing is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(example = 900_000))]
    window_ms: Option<i64>,
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
    /// The escalation level of the active block: how many escalating offences are remembered. The
    /// next one lasts longer. Absent without a block, and if none escalated.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u32>,
    /// What this check was charged, or holds until it is settled.
    #[cfg_attr(feature = "schema", schemars(example = 1))]
    charged: i64,
    mode: ModeWord,
    /// The windows in the order of the policy, if it has several; absent otherwise. The numbers of
    /// the row are those of the window with the smallest share left.
    #[serde(default, skip_serializing_if = "JsonRows::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<WindowBody>>"))]
    windows: JsonRows<'a, WindowQuota>,
}

/// One of several windows of a policy.
#[derive(Clone, Debug, Deserialize, Serialize)]
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

impl<'a> From<&'a Decision> for DecisionBody<'a> {
    fn from(decision: &'a Decision) -> Self {
        Self {
            allowed: decision.allowed,
            reason: decision.reason.into(),
            policy: decision.policy.as_deref().map(Cow::Borrowed),
            limit: decision.limit,
            remaining: decision.remaining,
            reset_after_ms: millis(decision.reset_after),
            retry_after_ms: millis(decision.retry_after),
            blocked_until: decision.blocked_until.map(InstantText),
            mode: decision.mode.into(),
            degraded: decision.degraded,
            revision: Cow::Borrowed(&decision.revision),
            message: decision.message.as_deref().map(Cow::Borrowed),
            ticket: decision.ticket.as_deref().map(Cow::Borrowed),
            cached: decision.cached,
            unlisted: decision.unlisted,
            status: decision.status,
            policies: JsonRows::borrow(&decision.rows),
        }
    }
}

impl<'a> From<&'a DecisionRow> for DecisionRowBody<'a> {
    fn from(row: &'a DecisionRow) -> Self {
        Self {
            policy: Cow::Borrowed(&row.policy),
            attribute: row.attribute.as_deref().map(Cow::Borrowed),
            allowed: row.allowed,
            reason: row.reason.into(),
            limit: row.limit,
            window_ms: millis(row.window),
            remaining: row.remaining,
            balance: row.balance,
            reset_after_ms: millis(row.reset_after),
            retry_after_ms: millis(row.retry_after),
            blocked_until: row.blocked_until.map(InstantText),
            level: row.level,
            charged: row.charged,
            mode: row.mode.into(),
            windows: JsonRows::borrow(&row.windows),
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

impl DecisionBody<'_> {
    /// The decision. A body has no instant, so the caller gives that of the decision.
    #[doc(hidden)]
    pub fn into_decision(self, at: Time) -> Decision {
        let revision = (*self.revision).into();
        let mut decision = Decision::without_policy(self.allowed, self.reason.into(), revision, at);
        decision.policy = self.policy.as_deref().map(Into::into);
        decision.limit = self.limit;
        decision.remaining = self.remaining;
        decision.reset_after = from_millis(self.reset_after_ms);
        decision.retry_after = from_millis(self.retry_after_ms);
        decision.blocked_until = self.blocked_until.map(|InstantText(until)| until);
        decision.mode = self.mode.into();
        decision.degraded = self.degraded;
        decision.cached = self.cached;
        decision.message = self.message.map(Cow::into_owned);
        decision.status = self.status;
        decision.ticket = self.ticket.map(Cow::into_owned);
        decision.unlisted = self.unlisted;
        decision.rows = self.policies.into_vec().into();
        decision
    }
}

impl From<DecisionRowBody<'_>> for DecisionRow {
    fn from(row: DecisionRowBody<'_>) -> Self {
        Self {
            policy: (*row.policy).into(),
            attribute: row.attribute.as_deref().map(Into::into),
            allowed: row.allowed,
            reason: row.reason.into(),
            limit: row.limit,
            remaining: row.remaining,
            window: from_millis(row.window_ms),
            balance: row.balance,
            reset_after: from_millis(row.reset_after_ms),
            retry_after: from_millis(row.retry_after_ms),
            blocked_until: row.blocked_until.map(|InstantText(until)| until),
            level: row.level,
            charged: row.charged,
            mode: row.mode.into(),
            windows: row.windows.into_vec(),
        }
    }
}

impl From<WindowBody> for WindowQuota {
    fn from(window: WindowBody) -> Self {
        Self {
            limit: window.limit,
            span: Span::from_millis(window.window_ms),
            remaining: window.remaining,
            reset_after: from_millis(window.reset_after_ms),
            retry_after: from_millis(window.retry_after_ms),
        }
    }
}
