//! A denial as problem+json, with the problem types of the IANA registry.

use catraca_core::decision::Decision;
use http::StatusCode;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "schema")]
use super::denial_kind::QUOTA_EXCEEDED;
use super::{DenialKind, retry_after_secs};
use crate::json::ReasonWord;

/// A denial, as a gateway forwards it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "Denial"))]
pub struct ProblemDenial<'a> {
    #[cfg_attr(
        feature = "schema",
        schemars(extend("format" = "uri"), example = QUOTA_EXCEEDED)
    )]
    r#type: &'static str,
    #[cfg_attr(feature = "schema", schemars(example = &"Too Many Requests"))]
    title: Option<&'a str>,
    #[cfg_attr(feature = "schema", schemars(example = 429))]
    status: u16,
    /// The policy's message.
    #[cfg_attr(feature = "schema", schemars(example = &"Slow down: try again in 1 minute."))]
    detail: Option<&'a str>,
    #[cfg_attr(feature = "schema", schemars(example = &"over_limit"))]
    reason: ReasonWord,
    #[cfg_attr(feature = "schema", schemars(example = &"login"))]
    policy: Option<&'a str>,
    #[serde(rename = "violated-policies")]
    #[cfg_attr(feature = "schema", schemars(example = ["login"]))]
    violated_policies: Vec<&'a str>,
    /// Whole seconds; null if the request will never pass.
    #[cfg_attr(feature = "schema", schemars(example = 60))]
    retry_after: Option<i64>,
}

impl<'a> ProblemDenial<'a> {
    /// The body of a denial with this status.
    pub fn new(decision: &'a Decision, status: StatusCode) -> Self {
        let denying = decision.rows.iter().filter(|row| !row.allowed);
        Self {
            r#type: DenialKind::of(decision.reason).problem_type,
            title: status.canonical_reason(),
            status: status.as_u16(),
            detail: decision.message.as_deref(),
            reason: decision.reason.into(),
            policy: decision.policy.as_deref(),
            violated_policies: denying.map(|row| &*row.policy).collect(),
            retry_after: retry_after_secs(decision),
        }
    }

    /// The body as JSON text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
