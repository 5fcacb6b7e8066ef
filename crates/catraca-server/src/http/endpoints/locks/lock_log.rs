//! DEBUG log lines: one for every call about locks, with `[server] log_level = "debug"`.
//!
//! A line never holds the proof of a lease.

use hyper::http::header::HeaderName;
use serde_json::Value;
use tracing::debug;

use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// The most characters of a name in a line.
const NAME_CHARS_MAX: usize = 200;

/// Logs a call about locks. The body holds the proof of the lease, so only the fields named here
/// are read from it.
pub fn log_lock_call(request: &ApiRequest, result: &ApiResult) {
    let context = request.context();
    if !context.observer.logs.try_reserve_call_line(context.app.now()) {
        return;
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let field = |name: &str| body.get(name).and_then(field_text);
    let names = ["key", "keys", "calendar", "calendars"].into_iter().find_map(field);
    let header = |name: &'static str| {
        let response = result.as_ref().ok()?;
        let value = response.headers().get(HeaderName::from_static(name))?;
        value.to_str().ok().map(str::to_owned)
    };
    let status = match result {
        Ok(response) => response.status(),
        Err(problem) => problem.status,
    };
    debug!(
        namespace = request.namespace(),
        route = request.route,
        tenant = field("tenant"),
        key = names,
        version = header("x-lock-version").or_else(|| field("version")),
        fence = header("x-lock-fence"),
        status = status.as_u16(),
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
