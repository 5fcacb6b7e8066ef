//! DEBUG log lines: one for every check and every call about locks, with `[server] log_level =
//! "debug"`.
//!
//! A line never holds a private value, an address, the proof of a lease, or an unlisted gate's
//! name, which a caller may choose freely.

use axum::http::header::HeaderName;
use catraca::core::catalog::AttributeKind;
use catraca::{Check, Decision, Error};
use serde_json::Value;
use tracing::debug;

use super::App;
use super::response::problem::FullResponse;

/// The most characters of a name in a line.
const NAME_CHARS_MAX: usize = 200;

/// Logs a check and its decision.
pub fn log_decision(app: &App, check: &Check<'_>, result: &Result<Decision, Error>) {
    if !app.observer.logs.try_reserve_call_line(app.engine.now()) {
        return;
    }
    let namespace = check.namespace;
    let caller = caller(app, check);
    match result {
        Ok(decision) => {
            let gate = if decision.unlisted { "(unlisted)" } else { check.gate };
            let allowed = decision.allowed;
            let reason = decision.reason.as_str();
            let policy = decision.policy.as_deref();
            debug!(namespace, gate, caller, allowed, reason, policy, "check decided");
        }
        // The error itself is not logged: it may quote any input, and the caller gets it in the
        // response.
        Err(_) => debug!(namespace, caller, "check not decided: the call or the store failed"),
    }
}

/// The attributes of the caller that the catalog reads. Those that it describes and does not mark
/// private are shown in clear, all others as pseudonyms; values of invalid form are left out.
fn caller(app: &App, check: &Check<'_>) -> String {
    let catalog = app.engine.catalog();
    let read = check.subject.pairs().iter().filter(|(name, _)| catalog.is_caller_attribute(name));
    let texts = read.filter_map(|(name, value)| {
        let attribute = catalog.attributes.get(*name);
        let clear = attribute.is_some_and(|own| !own.private && own.kind != AttributeKind::Ip);
        let pseudonym = app.engine.pseudonym(name, value).ok()?;
        // Quoted, so that a value cannot look like another attribute.
        Some(if clear { format!("{name}={value:?}") } else { format!("{name}={pseudonym}") })
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Logs a call about locks. The body holds the proof of the lease, so only the fields named here
/// are read from it.
pub fn log_lock_call(
    app: &App,
    namespace: &str,
    route: &str,
    body: &[u8],
    response: &FullResponse,
) {
    if !app.observer.logs.try_reserve_call_line(app.engine.now()) {
        return;
    }
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let field = |name: &str| request.get(name).and_then(field_text);
    let names = ["key", "keys", "calendar", "calendars"].into_iter().find_map(field);
    let header = |name: &'static str| {
        let value = response.headers().get(HeaderName::from_static(name))?;
        value.to_str().ok().map(str::to_owned)
    };
    debug!(
        namespace,
        route,
        tenant = field("tenant"),
        key = names,
        version = header("x-lock-version").or_else(|| field("version")),
        fence = header("x-lock-fence"),
        status = response.status().as_u16(),
        "lock call"
    );
}

/// A number, a string, or a list of strings, cut to `NAME_CHARS_MAX`; none for anything else.
fn field_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts?.join(", ")
        }
        _ => return None,
    };
    Some(text.chars().take(NAME_CHARS_MAX).collect())
}
