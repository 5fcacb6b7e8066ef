//! A line for every decision and every call about locks, when `[server] log_level` asks for it.
//!
//! Must not write a private value, an address, the proof of a lease or a name that a caller made
//! up for a gate, and must cost nothing while nobody asks.

use axum::http::header::HeaderName;
use catraca::{Check, Decision, Error};
use serde_json::Value;
use tracing::debug;

use super::Front;
use super::problem::Answer;

/// What became of a check.
pub fn decided(front: &Front, check: &Check<'_>, decided: &Result<Decision, Error>) {
    if !front.observer.logs.has_room_for_call(front.engine.now()) {
        return;
    }
    let (namespace, caller) = (check.namespace, caller(front, check));
    match decided {
        Ok(decision) => {
            let gate = if decision.unlisted { "(unlisted)" } else { check.gate };
            let (allowed, reason) = (decision.allowed, decision.reason.as_str());
            let policy = decision.policy.as_deref();
            debug!(namespace, gate, caller, allowed, reason, policy, "decided");
        }
        // What is wrong with it is told to whoever asked; it may quote anything.
        Err(_) => debug!(namespace, caller, "not decided"),
    }
}

/// The attributes that the catalog knows: those that it describes and does not call private as they
/// are, all others as pseudonyms. What cannot be read is left out.
fn caller(front: &Front, check: &Check<'_>) -> String {
    let catalog = front.engine.catalog();
    let known = check.subject.pairs().iter().filter(|(name, _)| catalog.is_sent(name));
    let shown = known.filter_map(|(name, value)| {
        let own = catalog.attributes.get(*name);
        let clear = own.is_some_and(|own| !own.private) && *name != "ip";
        let pseudonym = front.engine.pseudonym(name, value).ok()?;
        Some(format!("{name}={}", if clear { value } else { pseudonym.as_str() }))
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// What became of a call about locks. Its body holds a proof: only what is named here is taken.
pub fn locked(front: &Front, (namespace, route): (&str, &str), body: &[u8], answer: &Answer) {
    if !front.observer.logs.has_room_for_call(front.engine.now()) {
        return;
    }
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |name: &str| asked.get(name).map(Value::to_string);
    let names = ["key", "keys", "calendar", "calendars"].into_iter().find_map(said);
    let told = |name: &'static str| {
        let value = answer.headers().get(HeaderName::from_static(name))?;
        value.to_str().ok().map(str::to_owned)
    };
    debug!(
        namespace,
        route,
        tenant = said("tenant"),
        key = names,
        version = told("x-lock-version").or_else(|| said("version")),
        fence = told("x-lock-fence"),
        result = answer.status().as_u16(),
        "locks"
    );
}
