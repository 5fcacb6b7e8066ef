//! JSON body of a settle.

use std::borrow::Cow;

use catraca_core::time::Time;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InstantText, JsonRows, OriginWord, SettleStateWord, is_false};
#[cfg(feature = "shared")]
use crate::app::SettleAnswer;
use crate::settlement::{SettledRow, Settlement};

/// The result of a settle.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Settlement"))]
pub struct SettlementBody<'a> {
    state: SettleStateWord,
    /// Every policy that was charged.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SettledRowBody<'static>>"))]
    policies: JsonRows<'a, SettledRow>,
    /// True if a ban rule could not read the body, because it is larger than the catalog's
    /// `body_bytes_max`; absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    body_truncated: bool,
    /// True if a ban rule could not read the body, because it is not readable as JSON; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    body_invalid: bool,
    /// Whether it is on disk; present if the settle left a debt or started a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// One policy's part of a settlement.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "SettledRow"))]
pub struct SettledRowBody<'a> {
    #[cfg_attr(feature = "schema", schemars(example = &"lookups"))]
    policy: Cow<'a, str>,
    /// The attribute, if the policy counts each attribute on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<Cow<'a, str>>,
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
    reason: Option<Cow<'a, str>>,
    /// The status for the request that triggered a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The message for the client of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
}

impl<'a> From<&'a Settlement> for SettlementBody<'a> {
    fn from(settlement: &'a Settlement) -> Self {
        Self {
            state: settlement.state.into(),
            policies: JsonRows::borrow(&settlement.rows),
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
            policy: Cow::Borrowed(&row.policy),
            attribute: row.attribute.as_deref().map(Cow::Borrowed),
            charged: row.charged,
            balance: row.balance,
            blocked_until: row.blocked_until.map(InstantText),
            blocked_by: row.blocked_by.map(OriginWord::from),
            reason: row.reason.as_deref().map(Cow::Borrowed),
            status: row.status,
            message: row.message.as_deref().map(Cow::Borrowed),
        }
    }
}

impl SettlementBody<'_> {
    /// The settlement. A body has no instant, so the caller gives that of the settle.
    #[doc(hidden)]
    pub fn into_settlement(self, at: Time) -> Settlement {
        Settlement {
            state: self.state.into(),
            at,
            rows: self.policies.into_vec(),
            body_truncated: self.body_truncated,
            body_invalid: self.body_invalid,
        }
    }

    /// Whether it is on disk; `None` if nothing had to be.
    pub const fn durable(&self) -> Option<bool> {
        self.durable
    }
}

impl From<SettledRowBody<'_>> for SettledRow {
    fn from(row: SettledRowBody<'_>) -> Self {
        Self {
            policy: (*row.policy).into(),
            attribute: row.attribute.as_deref().map(Into::into),
            charged: row.charged,
            balance: row.balance,
            blocked_until: row.blocked_until.map(|InstantText(until)| until),
            blocked_by: row.blocked_by.map(Into::into),
            reason: row.reason.as_deref().map(Into::into),
            status: row.status,
            message: row.message.map(Cow::into_owned),
        }
    }
}
