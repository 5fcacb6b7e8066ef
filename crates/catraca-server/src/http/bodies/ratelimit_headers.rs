//! Rate-limit headers of a decision: `RateLimit-Policy` and `RateLimit` as structured fields,
//! `Retry-After`, `Catraca-Degraded`, and `X-RateLimit-*` on request.

use std::fmt::Write;

use catraca::core::policy::Mode;
use catraca::{Decision, DecisionRow, Span};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The largest integer of a structured field (RFC 9651).
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Writes the headers of a decision.
pub fn write(decision: &Decision, x_ratelimit: bool, headers: &mut HeaderMap) {
    let rows = || decision.rows.iter().filter(|row| row.mode == Mode::Enforce);
    let policies = join(rows().filter_map(policy_item));
    // When a block or a ban without a limit denies, rows with room are left out: a client that
    // reads `r > 0` would retry at once.
    let all_rows = decision.allowed || decision.limit.is_some();
    let limits = join(rows().filter(|row| all_rows || !row.allowed).filter_map(limit_item));
    put(headers, "ratelimit-policy", &policies);
    put(headers, "ratelimit", &limits);
    if let Some(seconds) = retry_after(decision) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if decision.degraded {
        put(headers, "catraca-degraded", "?1");
    }
    if x_ratelimit {
        write_x_ratelimit(decision, headers);
    }
}

/// `Retry-After` in whole seconds, rounded up, at least one; none when allowed, or when waiting
/// never helps.
pub fn retry_after(decision: &Decision) -> Option<i64> {
    decision.retry_after.filter(|_| !decision.allowed).map(seconds)
}

/// `"name";q=limit;w=window in seconds`; windows below a second are left out.
fn policy_item(row: &DecisionRow) -> Option<String> {
    let mut item = format!("\"{}\";q={}", row.policy, clamp_integer(row.limit?));
    if let Some(window) = row.window.filter(|window| *window >= Span::from_secs(1)) {
        let _ = write!(item, ";w={}", clamp_integer(window.ceil_secs()));
    }
    Some(item)
}

/// `"name";r=remaining;t=seconds until there is room, or until the quota is full again`.
fn limit_item(row: &DecisionRow) -> Option<String> {
    let mut item = format!("\"{}\";r={}", row.policy, clamp_integer(row.remaining?));
    let wait = row.retry_after.or(row.reset_after).filter(|wait| *wait > Span::ZERO);
    if let Some(wait) = wait {
        let _ = write!(item, ";t={}", clamp_integer(seconds(wait)));
    }
    Some(item)
}

/// The de-facto headers; `X-RateLimit-Reset` is a Unix time in seconds, rounded up.
fn write_x_ratelimit(decision: &Decision, headers: &mut HeaderMap) {
    let Some((limit, remaining)) = decision.limit.zip(decision.remaining) else { return };
    put(headers, "x-ratelimit-limit", &limit.to_string());
    put(headers, "x-ratelimit-remaining", &remaining.to_string());
    if let Some(reset) = decision.reset_after {
        let at = decision.at.after(reset).micros();
        put(headers, "x-ratelimit-reset", &((at + 999_999) / 1_000_000).to_string());
    }
}

/// Rounded up, at least one: a client that retries after it finds room.
fn seconds(span: Span) -> i64 {
    span.ceil_secs().max(1)
}

/// Within the range of a structured-field integer, and not negative.
fn clamp_integer(number: i64) -> i64 {
    number.clamp(0, INTEGER_MAX)
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// Inserts a header unless its value is empty.
fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.insert(HeaderName::from_static(name), value);
    }
}
