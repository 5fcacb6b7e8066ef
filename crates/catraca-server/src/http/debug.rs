//! A line for every decision and every call about locks, when `[server] log_level` asks for it.
//!
//! Must not write a private value, an address, the proof of a lease or a name that a caller made
//! up for a gate, and must cost nothing while nobody asks.

use axum::http::header::HeaderName;
use catraca::core::catalog::Kind;
use catraca::{Check, Decision, Error};
use serde_json::Value;
use tracing::debug;

use super::Front;
use super::problem::Answer;

/// Characters of a name that are shown.
const SHOWN_MAX: usize = 200;

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
        let clear = own.is_some_and(|own| !own.private && own.kind != Kind::Ip);
        let pseudonym = front.engine.pseudonym(name, value).ok()?;
        // Quoted, so that a value cannot pass for another attribute.
        Some(if clear { format!("{name}={value:?}") } else { format!("{name}={pseudonym}") })
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// What became of a call about locks. Its body holds a proof: only what is named here is taken.
pub fn locked(front: &Front, (namespace, route): (&str, &str), body: &[u8], answer: &Answer) {
    if !front.observer.logs.has_room_for_call(front.engine.now()) {
        return;
    }
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |name: &str| asked.get(name).and_then(shown);
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
        status = answer.status().as_u16(),
        "locks"
    );
}

/// A number, a text, or the texts of a list, no longer than a line should be.
fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts?.join(", ")
        }
        _ => return None,
    };
    Some(text.chars().take(SHOWN_MAX).collect())
}
