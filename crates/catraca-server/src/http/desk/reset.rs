//! Reset, which forgets one key, and reconcile, which takes an upstream's view of buckets.
//!
//! Must not forget more than was named.

use catraca::Observed;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::wire::OwnedSubject;
use super::{Answered, Call, Desk, Problem, bounded, instant};

/// Buckets in one view.
const STATES_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    policy: String,
    subject: Option<OwnedSubject>,
    confirm: Option<String>,
    why: Option<String>,
}

/// `POST /v1/reset`.
pub fn reset(desk: &Desk<'_>, call: &Call) -> Answered {
    let wire: Wire = call.wire()?;
    let Some(subject) = wire.subject.filter(|_| wire.confirm.is_none()) else {
        let detail = "name one `subject` and leave out `confirm`: the memory store keeps digests, \
                      so it cannot tell which keys are one policy's, and a whole policy cannot be \
                      reset; turn it off with PUT /v1/policies/NAME/mode meanwhile";
        return Err(Problem::bad("whole-policy", detail));
    };
    let why = bounded("why", wire.why.as_deref())?;
    let subject = desk.by.subject(subject.subject())?;
    let forget = || desk.engine.reset(desk.by.namespace(), &wire.policy, &subject);
    let ((), durable) = desk.acted(why, forget)?;
    Ok(json!({ "reset": true, "policy": wire.policy, "durable": durable }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    subject: OwnedSubject,
    observed_at: String,
    states: Vec<State>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    policy: String,
    available: i64,
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
    let drifts = desk.engine.reconcile(desk.by.namespace(), &subject, at, &states)?;
    let buckets: Vec<Value> = drifts
        .iter()
        .map(|one| json!({ "policy": &*one.policy, "before": one.before, "after": one.after }))
        .collect();
    Ok(json!({ "buckets": buckets }))
}
