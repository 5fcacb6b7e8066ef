//! Policies: list and show them, and override the mode of one, which is the kill switch.

use catraca::App;
use catraca::app::TEXT_MAX;
use catraca::core::catalog::Catalog;
use catraca::core::policy::{BanRule, KeySpec, Mode, Policy, Tier};
use catraca::explain::{describe_block, describe_price, tier_condition};
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, Problem, to_json};
use crate::http::bodies::schema_values;

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
    /// Other terms for some callers; the first tier whose condition holds applies.
    tiers: Vec<TierBody>,
    /// Rules that ban on an outcome.
    bans: Vec<BanBody>,
    debt: bool,
    /// The policy used instead if a key attribute is missing, or if no tier matches.
    otherwise: Option<String>,
    /// The mode in effect.
    #[schemars(with = "catraca::json::ModeWord")]
    mode: &'static str,
    /// Whether an operator set the mode.
    overridden: bool,
}

/// The terms of the callers that match a condition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tier")]
struct TierBody {
    /// The attributes and their values; those of private attributes are not shown.
    #[schemars(example = &"plan = gold")]
    when: String,
    #[schemars(example = &"window 100 per 15m")]
    limit: String,
    /// How long an excess blocks.
    #[schemars(example = &"30m")]
    block: Option<String>,
    /// The price of a request.
    #[schemars(example = &"the request's cost, or 1")]
    cost: String,
}

/// A rule that bans on an outcome.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ban")]
struct BanBody {
    #[schemars(example = &"scanning accounts")]
    reason: String,
    /// The condition.
    #[schemars(example = &"status == 404")]
    when: String,
    /// How long the ban lasts.
    #[schemars(example = &"24h")]
    r#for: String,
    /// The rate of outcomes that starts the ban; null if the first one does.
    #[schemars(example = &"20 per 1m")]
    after: Option<String>,
    /// The status of the response to a banned caller, if the rule sets one.
    #[schemars(example = 403)]
    status: Option<u16>,
    /// The message to a banned caller, if the rule has one.
    message: Option<String>,
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
pub async fn list(request: &ApiRequest) -> ApiResult {
    let [group] = request.query_params(["group"])?;
    let app = &request.app();
    let catalog = app.catalog();
    let listed = catalog.policies_of(group);
    let listed = listed.map_err(|error| Problem::bad("bad-query", error.to_string()))?;
    let policies = listed.into_iter().map(|policy| policy_body(app, &catalog, policy)).collect();
    to_json(&PolicyList { revision: catalog.revision.to_string(), policies })
}

/// `GET /v1/policies/{name}`.
pub async fn show(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let app = &request.app();
    let catalog = app.catalog();
    let policy = policy_body(app, &catalog, find(&catalog, request.path_param(0))?);
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
    #[schemars(with = "catraca::json::ModeWord")]
    before: &'static str,
    #[schemars(with = "catraca::json::ModeWord", example = &"shadow")]
    after: &'static str,
    /// Whether a mode set by an operator is in effect.
    overridden: bool,
    /// Whether it is on disk.
    durable: bool,
    /// Other nodes that do not know of it yet; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes_behind: Vec<String>,
}

/// `PUT /v1/policies/{name}/mode`.
pub async fn set_mode(request: &ApiRequest) -> ApiResult {
    let body: NewMode = request.json_body()?;
    let operator = request.operator(body.why.as_deref());
    let mode = body.mode.as_deref().map(parse_mode).transpose()?;
    let policy = request.path_param(0);
    let changed = request.app().set_mode(&operator, policy, mode).await?;
    to_json(&ChangedMode {
        policy: policy.to_owned(),
        before: changed.before.as_str(),
        after: changed.after.as_str(),
        overridden: mode.is_some(),
        durable: changed.durable,
        nodes_behind: request.app().nodes_behind(changed.durable),
    })
}

fn policy_body(app: &App, catalog: &Catalog, policy: &Policy) -> PolicyBody {
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
        limit: terms.map(|terms| terms.describe_limit()),
        block: terms.and_then(|terms| terms.block).map(describe_block),
        tiers: policy.tiers.iter().map(|tier| tier_body(catalog, tier)).collect(),
        bans: policy.bans.iter().map(ban_body).collect(),
        debt: policy.debt,
        otherwise: policy.otherwise.map(|id| catalog.policy(id).name.to_string()),
        mode: app.effective_mode(policy).as_str(),
        overridden: app.engine().mode_override(&policy.name).is_some(),
    }
}

fn tier_body(catalog: &Catalog, tier: &Tier) -> TierBody {
    TierBody {
        when: tier_condition(catalog, tier),
        limit: tier.terms.describe_limit(),
        block: tier.terms.block.map(describe_block),
        cost: describe_price(&tier.terms),
    }
}

fn ban_body(ban: &BanRule) -> BanBody {
    BanBody {
        reason: ban.reason.to_string(),
        when: ban.when.source().to_owned(),
        r#for: describe_block(ban.penalty),
        after: ban.after.map(|rate| rate.to_string()),
        status: ban.status,
        message: ban.message.as_deref().map(str::to_owned),
    }
}

fn find<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Policy, Problem> {
    let found = catalog.find(name).map(|(_, policy)| policy);
    found.ok_or_else(|| {
        let detail = format!("there is no policy `{name}`");
        Problem::new(StatusCode::NOT_FOUND, "unknown-policy", detail)
    })
}

fn parse_mode(word: &str) -> Result<Mode, Problem> {
    let all = [Mode::Enforce, Mode::Shadow, Mode::Off];
    let detail = "`mode` is one of enforce, shadow and off, or null for that of the catalog";
    let found = all.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| Problem::bad("bad-mode", detail))
}
