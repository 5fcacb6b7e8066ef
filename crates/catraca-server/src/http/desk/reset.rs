//! Reset, which forgets one key or a policy for everybody, and reconcile, which takes an upstream's
//! view of buckets.
//!
//! Must not forget more than was named.

use catraca::Observed;
use catraca::core::request::COST_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::super::wire::{Object, OwnedSubject};
use super::super::words;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded, instant, told};

/// Buckets in one view.
const STATES_MAX: usize = 100;

/// What to forget: one key of a policy, or the policy for everybody.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "policy": "login", "subject": { "ip": "198.51.100.7" }, "why": "a test of ours",
}))]
pub struct Forgotten {
    policy: String,
    /// Whose; everybody's without it.
    subject: Option<OwnedSubject>,
    /// The policy's name once more, for everybody's.
    confirm: Option<String>,
    /// For the audit; everybody's asks for it.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// A key, or a policy, that starts anew.
#[derive(Serialize, JsonSchema)]
pub struct WasReset {
    /// Always true.
    reset: bool,
    #[schemars(example = &"login")]
    policy: String,
    /// How many blocks ended with a reset for everybody; null for one key, and while they could
    /// not be counted. They deny nobody in any case.
    blocks: Option<u64>,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/reset`.
pub fn reset(desk: &Desk<'_>, call: &Call) -> Answered {
    let Forgotten { policy, subject, confirm, why } = call.wire()?;
    let why = bounded("why", why.as_deref())?;
    let (blocks, durable) = match (subject, confirm, why) {
        (Some(subject), None, why) => (None, one(desk, &policy, &subject, why)?),
        (None, Some(again), Some(why)) if again == policy => everybody(desk, &policy, why)?,
        (subject, confirm, why) => return Err(unclear(subject.is_some(), confirm.as_deref(), why)),
    };
    told(&WasReset { reset: true, policy, blocks, durable })
}

/// Whoever forgets for everybody must mean it.
fn unclear(subject: bool, confirm: Option<&str>, why: Option<&str>) -> Problem {
    let detail = match (subject, confirm, why) {
        (true, ..) => "`subject` resets one key and `confirm` the policy for everybody: give one",
        (false, None, _) => {
            "without `subject` the policy is reset for everybody: repeat its name in `confirm` if \
             that is meant, and say `why`"
        }
        (false, Some(_), None) => "say `why` the policy is reset for everybody: the audit keeps it",
        _ => "`confirm` must be the name in `policy`, letter by letter",
    };
    Problem::bad("confirm-required", detail)
}

fn one(
    desk: &Desk<'_>,
    policy: &str,
    subject: &OwnedSubject,
    why: Option<&str>,
) -> Result<bool, Problem> {
    let subject = desk.by.subject(subject.subject())?;
    let forget = || desk.front.reset(desk.by.namespace(), policy, &subject);
    Ok(desk.acted(why, forget)?.1)
}

/// Everybody's keys are others from now on; then the blocks of before are ended by name.
fn everybody(desk: &Desk<'_>, policy: &str, why: &str) -> Result<(Option<u64>, bool), Problem> {
    let forget = || Ok(desk.engine.reset_policy(policy)?);
    let (_, durable) = desk.acted(Some(why), forget)?;
    desk.front.stir();
    let ended = if durable { swept(desk) } else { None };
    // Other nodes are told again, to forget what they knew of these.
    desk.front.stir();
    Ok((ended, durable))
}

/// What cannot be swept up now is with the next purge of the records.
fn swept(desk: &Desk<'_>) -> Option<u64> {
    let (records, mut blocks) = (desk.records().ok()?, 0);
    loop {
        let swept = records.sweep(desk.engine.now()).ok()?;
        blocks += swept.blocks.len() as u64;
        // They deny nobody: where they cannot be taken out, they lapse.
        let _ = desk.front.sweep(&swept.blocks);
        if !swept.more {
            return Some(blocks);
        }
    }
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
    let too_far = |state: &&Observation| state.available.unsigned_abs() > COST_MAX.unsigned_abs();
    if let Some(state) = view.states.iter().find(too_far) {
        let detail = format!(
            "{} tokens of `{}`: `available` lies between -{COST_MAX} and {COST_MAX}",
            state.available, state.policy
        );
        return Err(Problem::bad("bad-states", detail));
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
