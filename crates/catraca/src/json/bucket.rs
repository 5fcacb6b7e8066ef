//! JSON body of a bucket's state.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::{InstantText, millis};
use crate::settlement::BucketState;

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
    /// The refill as the catalog writes it.
    #[cfg_attr(feature = "schema", schemars(example = &"2 per 1m"))]
    refill: String,
    /// Its tokens.
    #[cfg_attr(feature = "schema", schemars(example = 2))]
    refill_tokens: i64,
    /// Its period, in microseconds.
    #[cfg_attr(feature = "schema", schemars(example = 60_000_000))]
    refill_period_us: i64,
    #[cfg_attr(feature = "schema", schemars(example = 3_450_000))]
    reset_after_ms: Option<i64>,
    /// Until one token is available; null if one is, or if none ever will be.
    #[cfg_attr(feature = "schema", schemars(example = 480_000))]
    retry_after_ms: Option<i64>,
    blocked_until: Option<InstantText>,
}

impl<'a> From<&'a BucketState> for BucketStateBody<'a> {
    fn from(state: &'a BucketState) -> Self {
        Self {
            policy: &state.policy,
            size: state.size,
            balance: state.balance,
            available: state.balance.max(0),
            refill: state.refill.to_string(),
            refill_tokens: state.refill.amount,
            refill_period_us: state.refill.per.micros(),
            reset_after_ms: millis(state.reset_after),
            retry_after_ms: millis(state.retry_after),
            blocked_until: state.blocked_until.map(InstantText),
        }
    }
}
