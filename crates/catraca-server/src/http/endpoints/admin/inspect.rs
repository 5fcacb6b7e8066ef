//! `POST /v1/inspect`: all there is to know of a subject.

use std::collections::BTreeMap;

use catraca::app::Inspection;
use catraca::json::DecisionRowBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, to_json};
use crate::http::bodies::record_bodies::BlockBody;
use crate::http::bodies::wire::OwnedSubject;

/// The subject to inspect.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "subject": { "customer": "c-4711" } }))]
pub struct InspectRequest {
    subject: OwnedSubject,
    /// The namespace; required as soon as there are several, unless the key is bound to one.
    namespace: Option<String>,
}

/// All there is to know of a subject.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Inspection")]
pub struct InspectionBody<'a> {
    #[schemars(example = &"default")]
    namespace: String,
    /// `allowlisted` or `blocklisted` if a list decides for this subject, before its policies; null
    /// otherwise.
    list: Option<&'static str>,
    /// Every policy that applies to these attributes, as a check of cost one would see it.
    policies: Vec<InspectedPolicyBody<'a>>,
    /// The facts about the values of the subject.
    facts: BTreeMap<&'a str, &'a str>,
    /// The active blocks that name a value of the subject, newest first.
    blocks: Vec<BlockBody>,
}

/// One policy that applies to a subject.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InspectedPolicy")]
struct InspectedPolicyBody<'a> {
    #[serde(flatten)]
    row: DecisionRowBody<'a>,
    /// The message for the caller, if the policy would deny it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// `POST /v1/inspect`.
pub async fn inspect(request: &ApiRequest) -> ApiResult {
    let body: InspectRequest = request.json_body()?;
    let subject = request.caller.with_fixed_attributes(body.subject.subject())?;
    let namespace = request.act_namespace(body.namespace.as_deref()).await?;
    let app = request.app();
    let Inspection { list, policies, facts, blocks } = app.inspect(&namespace, &subject).await?;
    let now = app.now();
    let policies = policies.iter().map(|found| InspectedPolicyBody {
        row: DecisionRowBody::from(&found.row),
        message: found.message.as_deref(),
    });
    to_json(&InspectionBody {
        namespace,
        list: list.map(|reason| reason.as_str()),
        policies: policies.collect(),
        facts: facts.iter().map(|(name, fact)| (name.as_str(), fact.as_str())).collect(),
        blocks: blocks.iter().map(|row| BlockBody::new(app, row, now)).collect(),
    })
}
