//! The catalog, read-only, and the kill switch: a policy's mode, overridden at once.
//!
//! Must not show a secret: sections of the process are named, never shown.

use catraca::core::catalog::Catalog;
use catraca::core::policy::{Mode, Policy, Who};
use catraca::explain::{limit, penalty};
use catraca::records::Deed;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::words;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, missing, told};

/// Two overrides of one policy must be recorded in the order in which they came in force.
static TURN: Mutex<()> = Mutex::new(());

/// Every policy of the catalog in force.
#[derive(Serialize, JsonSchema)]
pub struct Policies {
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
    policies: Vec<PolicyShown>,
}

/// A policy in words.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
pub struct PolicyShown {
    #[schemars(example = &"login")]
    policy: String,
    group: Option<String>,
    /// Who is counted: the attributes of one key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = ["ip"])]
    by: Option<Vec<String>>,
    /// Or each of these on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    each: Option<Vec<String>>,
    /// How much; null without a limit of its own.
    #[schemars(example = &"window 10 per 15m")]
    limit: Option<String>,
    /// What an excess brings.
    #[schemars(example = &"30m")]
    block: Option<String>,
    #[schemars(example = 0)]
    tiers: usize,
    #[schemars(example = 0)]
    bans: usize,
    debt: bool,
    /// The policy that stands in for it.
    otherwise: Option<String>,
    /// The mode in force.
    #[schemars(with = "words::Mode")]
    mode: &'static str,
    /// Whether an operator set it.
    overridden: bool,
}

/// A policy in words, of one revision.
#[derive(Serialize, JsonSchema)]
pub struct PolicyOf {
    #[serde(flatten)]
    policy: PolicyShown,
    /// The catalog's revision.
    #[schemars(example = &"9f2c61d0a7b3e845")]
    revision: String,
}

/// `GET /v1/policies`.
pub fn all(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let policies = catalog.policies.iter().map(|policy| shown(desk, &catalog, policy)).collect();
    told(&Policies { revision: catalog.revision.to_string(), policies })
}

/// `GET /v1/policies/{name}`.
pub fn one(desk: &Desk<'_>, call: &Call) -> Answered {
    let [] = call.asked([])?;
    let catalog = desk.engine.catalog();
    let policy = shown(desk, &catalog, find(&catalog, call.part(0))?);
    told(&PolicyOf { policy, revision: catalog.revision.to_string() })
}

/// The mode that a policy shall have from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMode {
    /// Null gives the policy back to the catalog, and must be written out.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(with = "words::ModeOrNull", example = &"shadow")]
    mode: Option<String>,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"too strict since noon")]
    why: Option<String>,
}

/// The modes of a policy before and after.
#[derive(Serialize, JsonSchema)]
pub struct ChangedMode {
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(with = "words::Mode")]
    before: &'static str,
    #[schemars(with = "words::Mode", example = &"shadow")]
    after: &'static str,
    /// Whether an operator's mode is in force.
    overridden: bool,
    /// Whether it is on disk.
    durable: bool,
}

/// `PUT /v1/policies/{name}/mode`.
pub fn mode(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: NewMode = call.wire()?;
    let why = bounded("why", wire.why.as_deref())?;
    let wanted = wire.mode.as_deref().map(read_mode).transpose()?;
    let catalog = desk.engine.catalog();
    let policy = find(&catalog, call.part(0))?;
    desk.records()?;
    let _turn = TURN.lock();
    let before = in_force(desk, policy);
    desk.engine.set_mode(&policy.name, wanted)?;
    let durable = desk.recorded(why, vec![Deed::Mode(policy.name.to_string(), wanted)])?;
    let (policy, after) = (policy.name.to_string(), in_force(desk, policy));
    told(&ChangedMode { policy, before, after, overridden: wanted.is_some(), durable })
}

fn shown(desk: &Desk<'_>, catalog: &Catalog, policy: &Policy) -> PolicyShown {
    let (by, each) = match &policy.who {
        Who::By(parts) => (Some(parts.iter().map(|part| part.join("|")).collect()), None),
        Who::Each(names) => (None, Some(names.iter().map(|name| name.to_string()).collect())),
    };
    let terms = policy.base.as_ref();
    PolicyShown {
        policy: policy.name.to_string(),
        group: policy.group.as_deref().map(str::to_owned),
        by,
        each,
        limit: terms.map(|terms| limit(&terms.limit)),
        block: terms.and_then(|terms| terms.block).map(penalty),
        tiers: policy.tiers.len(),
        bans: policy.bans.len(),
        debt: policy.debt,
        otherwise: policy.otherwise.map(|id| catalog.policy(id).name.to_string()),
        mode: in_force(desk, policy),
        overridden: desk.engine.overridden(&policy.name).is_some(),
    }
}

fn in_force(desk: &Desk<'_>, policy: &Policy) -> &'static str {
    desk.engine.overridden(&policy.name).unwrap_or(policy.mode).as_str()
}

fn find<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Policy, Problem> {
    let found = catalog.find(name).map(|(_, policy)| policy);
    found.ok_or_else(|| missing("unknown-policy", format!("no policy is called `{name}`")))
}

fn read_mode(word: &str) -> Result<Mode, Problem> {
    let all = [Mode::Enforce, Mode::Shadow, Mode::Off];
    let detail = "`mode` is one of enforce, shadow and off, or null for the catalog's own";
    let found = all.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| Problem::bad("bad-mode", detail))
}
