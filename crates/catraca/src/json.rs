//! JSON bodies of decisions and results, the same on every interface.
//!
//! Domain types have no serde attributes; [`AsJson`] borrows a value and serializes it. It must not
//! add or omit information.

use catraca_core::cell::block::Origin;
use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::time::{Span, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::settlement::{BucketState, CreditResult, SettledRow, Settlement};

/// Serializes the borrowed value as its JSON body.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<T>(pub T);

impl Serialize for AsJson<&Decision> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        decision_fields(self.0, &mut map)?;
        map.end()
    }
}

/// Writes the fields of a decision into a map that may have other fields.
pub fn decision_fields<M: SerializeMap>(decision: &Decision, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("allowed", &decision.allowed)?;
    map.serialize_entry("reason", decision.reason.as_str())?;
    map.serialize_entry("policy", &decision.policy.as_deref())?;
    map.serialize_entry("limit", &decision.limit)?;
    map.serialize_entry("remaining", &decision.remaining)?;
    map.serialize_entry("reset_after_ms", &millis(decision.reset_after))?;
    map.serialize_entry("retry_after_ms", &millis(decision.retry_after))?;
    map.serialize_entry("blocked_until", &instant(decision.blocked_until))?;
    map.serialize_entry("mode", decision.mode.as_str())?;
    map.serialize_entry("degraded", &decision.degraded)?;
    map.serialize_entry("revision", &*decision.revision)?;
    map.serialize_entry("message", &decision.message)?;
    map.serialize_entry("ticket", &decision.ticket)?;
    if decision.cached {
        map.serialize_entry("cached", &true)?;
    }
    if decision.unlisted {
        map.serialize_entry("unlisted", &true)?;
    }
    if let Some(status) = decision.status {
        map.serialize_entry("status", &status)?;
    }
    map.serialize_entry("policies", &AsJson(decision.rows.as_slice()))
}

impl Serialize for AsJson<&[DecisionRow]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AsJson))
    }
}

impl Serialize for AsJson<&DecisionRow> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("policy", &*row.policy)?;
        if let Some(attribute) = &row.attribute {
            map.serialize_entry("attribute", &**attribute)?;
        }
        map.serialize_entry("allowed", &row.allowed)?;
        map.serialize_entry("reason", row.reason.as_str())?;
        map.serialize_entry("limit", &row.limit)?;
        map.serialize_entry("remaining", &row.remaining)?;
        if let Some(balance) = row.balance {
            map.serialize_entry("balance", &balance)?;
        }
        map.serialize_entry("reset_after_ms", &millis(row.reset_after))?;
        map.serialize_entry("retry_after_ms", &millis(row.retry_after))?;
        if let Some(until) = instant(row.blocked_until) {
            map.serialize_entry("blocked_until", &until)?;
        }
        map.serialize_entry("charged", &row.charged)?;
        map.serialize_entry("mode", row.mode.as_str())?;
        map.end()
    }
}

impl Serialize for AsJson<&Settlement> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", self.0.state.as_str())?;
        let rows: Vec<AsJson<&SettledRow>> = self.0.rows.iter().map(AsJson).collect();
        map.serialize_entry("policies", &rows)?;
        if self.0.body_truncated {
            map.serialize_entry("body_truncated", &true)?;
        }
        map.end()
    }
}

impl Serialize for AsJson<&SettledRow> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("policy", &*row.policy)?;
        map.serialize_entry("charged", &row.charged)?;
        map.serialize_entry("balance", &row.balance)?;
        map.serialize_entry("blocked_until", &instant(row.blocked_until))?;
        map.serialize_entry("blocked_by", &row.blocked_by.map(origin_name))?;
        map.serialize_entry("reason", &row.reason.as_deref())?;
        if let Some(status) = row.status {
            map.serialize_entry("status", &status)?;
        }
        if let Some(message) = &row.message {
            map.serialize_entry("message", message)?;
        }
        map.end()
    }
}

impl Serialize for AsJson<&CreditResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("applied", &self.0.is_ok())?;
        map.serialize_entry("reason", &self.0.as_ref().err().map(|reason| reason.as_str()))?;
        if let Ok(given) = self.0 {
            let given: Vec<CreditedPolicyJson<'_>> = given
                .iter()
                .map(|(policy, amount)| CreditedPolicyJson { policy, amount: *amount })
                .collect();
            map.serialize_entry("policies", &given)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct CreditedPolicyJson<'a> {
    policy: &'a str,
    amount: i64,
}

impl Serialize for AsJson<&BucketState> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let state = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("policy", &*state.policy)?;
        map.serialize_entry("size", &state.size)?;
        map.serialize_entry("balance", &state.balance)?;
        map.serialize_entry("available", &state.balance.max(0))?;
        map.serialize_entry("refill_tokens", &state.refill_tokens)?;
        map.serialize_entry("refill_period_us", &state.refill_period.micros())?;
        map.serialize_entry("reset_after_ms", &millis(state.reset_after))?;
        map.serialize_entry("retry_after_ms", &millis(state.retry_after))?;
        map.serialize_entry("blocked_until", &instant(state.blocked_until))?;
        map.end()
    }
}

/// The name of a block's origin on every interface.
pub const fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Excess => "excess",
        Origin::Ban => "ban",
        Origin::Operator => "operator",
        Origin::Upstream => "upstream",
    }
}

fn millis(span: Option<Span>) -> Option<i64> {
    span.map(Span::ceil_millis)
}

fn instant(at: Option<Time>) -> Option<String> {
    at.map(Time::to_rfc3339)
}
