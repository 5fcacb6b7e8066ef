//! Reset, which forgets one key, and reconcile, which takes an upstream's view of buckets.
//!
//! Must not forget more than was named.

use catraca::Observed;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::super::wire::{Object, OwnedSubject};
use super::super::words;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, instant, told};

/// Buckets in one view.
const STATES_MAX: usize = 100;

/// What to forget: one key of a policy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "policy": "login", "subject": { "ip": "198.51.100.7" }, "why": "a test of ours",
}))]
pub struct Forgotten {
    policy: String,
    /// Whose; without it the call is refused.
    subject: Option<OwnedSubject>,
    /// Kept for whole policies, which the memory store cannot reset; must be left out.
    confirm: Option<String>,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// A key that starts anew.
#[derive(Serialize, JsonSchema)]
pub struct WasReset {
    /// Always true.
    reset: bool,
    #[schemars(example = &"login")]
    policy: String,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/reset`.
pub fn reset(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Forgotten = call.wire()?;
    let Some(subject) = wire.subject.filter(|_| wire.confirm.is_none()) else {
        let detail = "name one `subject` and leave out `confirm`: a whole policy cannot be reset, \
                      since the store keeps digests and cannot tell which keys are its own; to \
                      begin anew for everybody, rename the policy in the catalog and reload, or \
                      turn it off meanwhile with PUT /v1/policies/NAME/mode";
        return Err(Problem::bad("whole-policy", detail));
    };
    let why = bounded("why", wire.why.as_deref())?;
    let subject = desk.by.subject(subject.subject())?;
    let forget = || desk.front.reset(desk.by.namespace(), &wire.policy, &subject);
    let ((), durable) = desk.acted(why, forget)?;
    told(&WasReset { reset: true, policy: wire.policy, durable })
}

/// An upstream's view of buckets.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "subject": { "participant": "12345678" }, "observed_at": words::NOON,
    "states": [{ "policy": "lookups", "available": 49_500 }],
}))]
pub struct View {
    /// Whose buckets.
    subject: OwnedSubject,
    /// When the upstream looked; not in the future.
    #[schemars(extend("format" = "date-time"))]
    observed_at: String,
    #[serde(deserialize_with = "states")]
    #[schemars(length(min = 1, max = STATES_MAX))]
    states: Vec<Observation>,
}

/// One bucket as the upstream sees it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    policy: String,
    /// Whole tokens.
    available: i64,
}

fn states<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Observation>, D::Error> {
    let states: Vec<Object<Observation>> = Vec::deserialize(deserializer)?;
    Ok(states.into_iter().map(|Object(state)| state).collect())
}

/// Buckets as they are after an upstream's view.
#[derive(Serialize, JsonSchema)]
pub struct Reconciled {
    buckets: Vec<Changed>,
}

/// How an upstream's view changed a bucket.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReconciledBucket")]
pub struct Changed {
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
pub fn reconcile(desk: &Desk<'_>, call: &Call) -> Answered {
    let view: View = call.wire()?;
    if view.states.is_empty() || view.states.len() > STATES_MAX {
        let detail = format!("a view has 1 to {STATES_MAX} `states`");
        return Err(Problem::bad("bad-states", detail));
    }
    let at = instant("observed_at", Some(&view.observed_at))?.unwrap_or(desk.engine.now());
    if at > desk.engine.now() {
        return Err(Problem::bad("bad-instant", "`observed_at` has not come yet"));
    }
    let states = view.states.iter();
    let states = states.map(|state| Observed { policy: &state.policy, available: state.available });
    let states: Vec<Observed<'_>> = states.collect();
    let subject = desk.by.subject(view.subject.subject())?;
    let drifts = desk.front.reconcile(desk.by.namespace(), &subject, at, &states)?;
    let buckets = drifts.iter().map(|one| {
        let policy = one.policy.to_string();
        Changed { policy, before: one.before, after: one.after }
    });
    told(&Reconciled { buckets: buckets.collect() })
}
