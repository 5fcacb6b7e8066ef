//! Policies: list and show them, and override the mode of one, which is the kill switch.

use catraca::core::catalog::Catalog;
use catraca::core::policy::{KeySpec, Mode, Policy};
use catraca::explain::{describe_block, describe_limit};
use catraca::records::RecordKind;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminContext, AdminResult, ApiRequest, Problem, TEXT_MAX, check_text, not_found, to_json,
};
use crate::http::bodies::schema_values;

/// Held while a mode changes, so that two overrides of one policy are recorded in the order in
/// which they took effect.
static CHANGE_LOCK: Mutex<()> = Mutex::new(());

/// Every policy of the catalog in use.
#[derive(Serialize, JsonSchema)]
pub struct PolicyList {
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    policies: Vec<PolicyBody>,
}

/// A policy, summarised.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
pub struct PolicyBody {
    #[schemars(example = &"login")]
    policy: String,
    group: Option<String>,
    /// The attributes that form the key of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["ip"])]
    by: Option<Vec<String>>,
    /// The attributes that are counted one by one, in place of `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    each: Option<Vec<String>>,
    /// The limit; null if only its tiers have limits.
    #[schemars(example = &"window 10 per 15m")]
    limit: Option<String>,
    /// How long an excess blocks.
    #[schemars(example = &"30m")]
    block: Option<String>,
    #[schemars(example = 0)]
    tiers: usize,
    #[schemars(example = 0)]
    bans: usize,
    debt: bool,
    /// The policy used instead if a key attribute is missing, or if no tier matches.
    otherwise: Option<String>,
    /// The mode in effect.
    #[schemars(with = "schema_values::Mode")]
    mode: &'static str,
    /// Whether an operator set the mode.
    overridden: bool,
}

/// A policy, and the revision of its catalog.
#[derive(Serialize, JsonSchema)]
pub struct PolicyAtRevision {
    #[serde(flatten)]
    policy: PolicyBody,
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
}

/// `GET /v1/policies`.
pub fn list(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let [] = request.query_params([])?;
    let catalog = context.engine.catalog();
    let policies =
        catalog.policies.iter().map(|policy| policy_body(context, &catalog, policy)).collect();
    to_json(&PolicyList { revision: catalog.revision.to_string(), policies })
}

/// `GET /v1/policies/{name}`.
pub fn show(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let [] = request.query_params([])?;
    let catalog = context.engine.catalog();
    let policy = policy_body(context, &catalog, find(&catalog, request.path_param(0))?);
    to_json(&PolicyAtRevision { policy, revision: catalog.revision.to_string() })
}

/// The mode to set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMode {
    /// Null returns to the catalog's mode; it must be sent explicitly.
    // Without this, serde would take a missing field for null.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(with = "schema_values::ModeOrNull", example = &"shadow")]
    mode: Option<String>,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"too strict since noon")]
    why: Option<String>,
}

/// The mode of a policy before and after a change.
#[derive(Serialize, JsonSchema)]
pub struct ChangedMode {
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(with = "schema_values::Mode")]
    before: &'static str,
    #[schemars(with = "schema_values::Mode", example = &"shadow")]
    after: &'static str,
    /// Whether a mode set by an operator is in effect.
    overridden: bool,
    /// Whether it is on disk.
    durable: bool,
}

/// `PUT /v1/policies/{name}/mode`.
pub fn set_mode(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let body: NewMode = request.json_body()?;
    let why = check_text("why", body.why.as_deref())?;
    let mode = body.mode.as_deref().map(parse_mode).transpose()?;
    let catalog = context.engine.catalog();
    let policy = find(&catalog, request.path_param(0))?;
    // Refused before anything changes: without records the change would be lost at a restart.
    context.records()?;
    let _lock = CHANGE_LOCK.lock();
    let before = effective_mode(context, policy);
    context.engine.set_mode(&policy.name, mode)?;
    let durable =
        context.record_acts(why, vec![RecordKind::Mode(policy.name.to_string(), mode)])?;
    let after = effective_mode(context, policy);
    let policy = policy.name.to_string();
    to_json(&ChangedMode { policy, before, after, overridden: mode.is_some(), durable })
}

fn policy_body(context: &AdminContext<'_>, catalog: &Catalog, policy: &Policy) -> PolicyBody {
    let (by, each) = match &policy.key_spec {
        KeySpec::By(parts) => (Some(parts.iter().map(|part| part.join("|")).collect()), None),
        KeySpec::Each(names) => (None, Some(names.iter().map(|name| name.to_string()).collect())),
    };
    let terms = policy.base.as_ref();
    PolicyBody {
        policy: policy.name.to_string(),
        group: policy.group.as_deref().map(str::to_owned),
        by,
        each,
        limit: terms.map(|terms| describe_limit(&terms.limit)),
        block: terms.and_then(|terms| terms.block).map(describe_block),
        tiers: policy.tiers.len(),
        bans: policy.bans.len(),
        debt: policy.debt,
        otherwise: policy.otherwise.map(|id| catalog.policy(id).name.to_string()),
        mode: effective_mode(context, policy),
        overridden: context.engine.mode_override(&policy.name).is_some(),
    }
}

/// The mode that an operator set, or else the catalog's.
fn effective_mode(context: &AdminContext<'_>, policy: &Policy) -> &'static str {
    context.engine.mode_override(&policy.name).unwrap_or(policy.mode).as_str()
}

fn find<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Policy, Problem> {
    let found = catalog.find(name).map(|(_, policy)| policy);
    found.ok_or_else(|| not_found("unknown-policy", format!("there is no policy `{name}`")))
}

fn parse_mode(word: &str) -> Result<Mode, Problem> {
    let all = [Mode::Enforce, Mode::Shadow, Mode::Off];
    let detail = "`mode` is one of enforce, shadow and off, or null for that of the catalog";
    let found = all.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| Problem::bad("bad-mode", detail))
}
