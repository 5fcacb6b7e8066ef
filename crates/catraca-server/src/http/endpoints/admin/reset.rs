//! Reset of one key or of a whole policy, and reconciliation of buckets with an upstream.

use catraca::BucketObservation;
use catraca::app::TEXT_MAX;
use catraca::engine::OBSERVATIONS_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{ApiRequest, ApiResult, Problem, parse_instant, to_json};
use crate::http::bodies::schema_values;
use crate::http::bodies::wire::{JsonObject, OwnedSubject};

/// What to reset: one key of a policy, or the whole policy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "policy": "login", "subject": { "ip": "198.51.100.7" }, "why": "a test of ours",
}))]
pub struct ResetRequest {
    policy: String,
    /// The namespace; required of a key that is bound to none, as soon as there are several. A
    /// whole policy is reset in all of them.
    namespace: Option<String>,
    /// The subject whose key is reset; without it, the whole policy is.
    subject: Option<OwnedSubject>,
    /// The policy's name again; required to reset the whole policy.
    confirm: Option<String>,
    /// For the audit; required to reset the whole policy.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// The result of a reset.
#[derive(Serialize, JsonSchema)]
pub struct ResetResult {
    /// Always true.
    reset: bool,
    #[schemars(example = &"login")]
    policy: String,
    /// The number of blocks that a reset of the whole policy ended; null for one key, and if they
    /// could not be counted. They have no effect in either case.
    blocks: Option<u64>,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/reset`.
pub async fn reset(request: &ApiRequest) -> ApiResult {
    let ResetRequest { policy, namespace, subject, confirm, why } = request.json_body()?;
    let why = why.as_deref().filter(|why| !why.is_empty());
    let operator = request.operator(why);
    let app = request.app();
    let (blocks, durable) = match (subject, confirm, why) {
        (Some(subject), None, _) => {
            let subject = request.caller.with_fixed_attributes(subject.subject())?;
            let namespace = request.act_namespace(namespace.as_deref()).await?;
            (None, app.reset(&operator, &namespace, &policy, &subject).await?)
        }
        (None, Some(again), Some(_)) if again == policy => {
            request.caller.require_all_namespaces()?;
            let reset = app.reset_policy(&operator, &policy).await?;
            (reset.blocks, reset.durable)
        }
        (subject, confirm, why) => {
            return Err(confirm_required(subject.is_some(), confirm.as_deref(), why));
        }
    };
    to_json(&ResetResult { reset: true, policy, blocks, durable })
}

/// Why a reset was refused: a whole policy is reset only with `confirm` and `why`.
fn confirm_required(subject: bool, confirm: Option<&str>, why: Option<&str>) -> Problem {
    let detail = match (subject, confirm, why) {
        (true, ..) => "`subject` resets one key and `confirm` the whole policy: send one of them",
        (false, None, _) => {
            "without `subject` the whole policy is reset, for all subjects: repeat its name in \
             `confirm` if that is intended, and send `why`"
        }
        (false, Some(_), None) => "send `why` the whole policy is reset: the audit records it",
        _ => "`confirm` must be equal to `policy`",
    };
    Problem::bad("confirm-required", detail)
}

/// The balances of buckets as an upstream reports them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "subject": { "participant": "12345678" }, "observed_at": schema_values::NOON,
    "states": [{ "policy": "lookups", "available": 49_500 }],
}))]
pub struct ReconcileRequest {
    /// Whose buckets.
    subject: OwnedSubject,
    /// When the upstream read the balances; not in the future.
    #[schemars(extend("format" = "date-time"))]
    observed_at: String,
    #[serde(deserialize_with = "states")]
    #[schemars(length(min = 1, max = OBSERVATIONS_MAX))]
    states: Vec<ObservedBucket>,
}

/// The balance of one bucket as the upstream reports it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedBucket {
    policy: String,
    /// Whole tokens.
    available: i64,
}

/// Each state must be an object; a derived `Deserialize` would also accept a list of its fields.
fn states<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ObservedBucket>, D::Error> {
    let states: Vec<JsonObject<ObservedBucket>> = Vec::deserialize(deserializer)?;
    Ok(states.into_iter().map(|JsonObject(state)| state).collect())
}

/// The buckets of a reconciliation.
#[derive(Serialize, JsonSchema)]
pub struct ReconcileResult {
    buckets: Vec<ReconciledBucket>,
}

/// The balance of a bucket before and after a reconciliation.
#[derive(Serialize, JsonSchema)]
pub struct ReconciledBucket {
    #[schemars(example = &"lookups")]
    policy: String,
    /// Tokens before.
    #[schemars(example = 50_000)]
    before: i64,
    /// Tokens after.
    #[schemars(example = 49_500)]
    after: i64,
}

/// `POST /v1/buckets/reconcile`.
pub async fn reconcile(request: &ApiRequest) -> ApiResult {
    let body: ReconcileRequest = request.json_body()?;
    let app = request.app();
    let at = parse_instant("observed_at", Some(&body.observed_at))?.unwrap_or(app.now());
    let states = body.states.iter();
    let states =
        states.map(|state| BucketObservation { policy: &state.policy, available: state.available });
    let states: Vec<BucketObservation<'_>> = states.collect();
    let subject = request.caller.with_fixed_attributes(body.subject.subject())?;
    let drifts = app.reconcile(request.namespace(), &subject, at, &states).await?;
    let buckets = drifts.iter().map(|drift| {
        let policy = drift.policy.to_string();
        ReconciledBucket { policy, before: drift.before, after: drift.after }
    });
    to_json(&ReconcileResult { buckets: buckets.collect() })
}
