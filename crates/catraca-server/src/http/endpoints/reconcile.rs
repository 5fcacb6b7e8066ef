//! `POST /v1/buckets/reconcile`: corrects buckets to the balances that an upstream reports, as
//! figures or as the XML of the DICT.

use catraca::Time;
use catraca::engine::OBSERVATIONS_MAX;
use catraca::settlement::{Reconciliation, SkippedState};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::admin::parse_instant;
use crate::http::bodies::problem::{Problem, respond_json};
use crate::http::bodies::schema_values;
use crate::http::bodies::wire::{JsonObject, OwnedSubject};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;
use crate::http_wire::dict_states::{ObservedBucket, read_states};

/// The balances of buckets as an upstream reports them: `states` and `observed_at`, or `xml`.
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
    observed_at: Option<String>,
    #[serde(default, deserialize_with = "states")]
    #[schemars(length(min = 1, max = OBSERVATIONS_MAX))]
    states: Option<Vec<ObservedBucket>>,
    /// The answer of the DICT's `listBucketStates` or `getBucketState`, which has the instant too.
    xml: Option<String>,
}

/// Each state must be an object; a derived `Deserialize` would also accept a list of its fields.
fn states<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ObservedBucket>>, D::Error> {
    let states: Vec<JsonObject<ObservedBucket>> = Vec::deserialize(deserializer)?;
    Ok(Some(states.into_iter().map(|JsonObject(state)| state).collect()))
}

/// The buckets of a reconciliation.
#[derive(Serialize, JsonSchema)]
pub struct ReconcileResult {
    buckets: Vec<ReconciledBucket>,
    /// States for which there is no bucket here.
    skipped: Vec<SkippedBucket>,
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

/// A state for which there is no bucket here.
#[derive(Serialize, JsonSchema)]
pub struct SkippedBucket {
    /// The policy, as the upstream names it.
    #[schemars(example = &"CLAIMS_READ")]
    policy: String,
    /// Why: no policy has this name, it has no bucket, or the subject lacks an attribute.
    #[schemars(example = &"no policy is called `CLAIMS_READ`")]
    why: String,
}

/// `POST /v1/buckets/reconcile`.
pub async fn reconcile(request: &ApiRequest) -> ApiResult {
    let body: ReconcileRequest = request.json_body()?;
    let subject = request.caller.with_fixed_attributes(body.subject.subject())?;
    let (observed_at, states) = read_observation(&body)?;
    let states: Vec<_> = states.iter().map(ObservedBucket::observation).collect();
    let app = request.app();
    let Reconciliation { drifts, skipped, .. } =
        app.reconcile(request.namespace(), &subject, observed_at, &states).await?;
    let buckets = drifts.iter().map(|drift| {
        let policy = drift.policy.to_string();
        ReconciledBucket { policy, before: drift.before, after: drift.after }
    });
    let skip =
        |state: SkippedState| SkippedBucket { policy: state.policy, why: state.why.to_string() };
    respond_json(&ReconcileResult {
        buckets: buckets.collect(),
        skipped: skipped.into_iter().map(skip).collect(),
    })
}

/// The instant and the balances of the body, in either form.
fn read_observation(body: &ReconcileRequest) -> Result<(Time, Vec<ObservedBucket>), Problem> {
    match body {
        ReconcileRequest { xml: Some(xml), observed_at: None, states: None, .. } => {
            let read = read_states(xml)
                .map_err(|why| Problem::bad("bad-states", format!("`xml`: {why}")))?;
            Ok((read.at, read.buckets))
        }
        ReconcileRequest { xml: None, observed_at: Some(at), states: Some(states), .. } => {
            let at = parse_instant("observed_at", Some(at))?.unwrap_or(Time::ZERO);
            let copy = |state: &ObservedBucket| ObservedBucket {
                policy: state.policy.clone(),
                available: state.available,
                capacity: state.capacity,
            };
            Ok((at, states.iter().map(copy).collect()))
        }
        _ => {
            let detail = "send `states` and `observed_at`, or `xml` with the answer of the DICT";
            Err(Problem::bad("bad-states", detail))
        }
    }
}
