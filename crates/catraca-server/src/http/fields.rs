//! Rate-limit headers: `RateLimit-Policy` and `RateLimit` as structured fields, `Retry-After`, a
//! word when the store could not tell all, and the older ones on request.
//!
//! Must only write what parses back: names are catalog names, numbers are whole.

use std::fmt::Write;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use catraca::core::policy::Mode;
use catraca::{Decision, Row, Span};

/// The largest whole number that a structured field may hold.
const NUMBER_MAX: i64 = 999_999_999_999_999;

/// Writes the headers of a decision.
pub fn write(decision: &Decision, x_ratelimit: bool, headers: &mut HeaderMap) {
    let rows = || decision.rows.iter().filter(|row| row.mode == Mode::Enforce);
    let policies = join(rows().filter_map(policy_item));
    // Where a ban without a limit of its own keeps somebody out, what has room must not invite.
    let speaks = decision.allowed || decision.limit.is_some();
    let limits = join(rows().filter(|row| speaks || !row.allowed).filter_map(limit_item));
    put(headers, "ratelimit-policy", &policies);
    put(headers, "ratelimit", &limits);
    if let Some(seconds) = retry_after(decision) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if decision.degraded {
        put(headers, "catraca-degraded", "?1");
    }
    if x_ratelimit {
        older(decision, headers);
    }
}

/// Whole seconds, rounded up, at least one; absent when allowed or never.
pub fn retry_after(decision: &Decision) -> Option<i64> {
    decision.retry_after.filter(|_| !decision.allowed).map(seconds)
}

fn policy_item(row: &Row) -> Option<String> {
    let mut item = format!("\"{}\";q={}", row.policy, bounded(row.limit?));
    if let Some(window) = row.window.filter(|window| *window >= Span::from_secs(1)) {
        let _ = write!(item, ";w={}", bounded(window.ceil_secs()));
    }
    Some(item)
}

fn limit_item(row: &Row) -> Option<String> {
    let mut item = format!("\"{}\";r={}", row.policy, bounded(row.remaining?));
    let wait = row.retry_after.or(row.reset_after).filter(|wait| *wait > Span::ZERO);
    if let Some(wait) = wait {
        let _ = write!(item, ";t={}", bounded(seconds(wait)));
    }
    Some(item)
}

fn older(decision: &Decision, headers: &mut HeaderMap) {
    let Some((limit, remaining)) = decision.limit.zip(decision.remaining) else { return };
    put(headers, "x-ratelimit-limit", &limit.to_string());
    put(headers, "x-ratelimit-remaining", &remaining.to_string());
    if let Some(reset) = decision.reset_after {
        let at = decision.at.after(reset).micros();
        put(headers, "x-ratelimit-reset", &((at + 999_999) / 1_000_000).to_string());
    }
}

fn seconds(span: Span) -> i64 {
    span.ceil_secs().max(1)
}

fn bounded(number: i64) -> i64 {
    number.clamp(0, NUMBER_MAX)
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.insert(HeaderName::from_static(name), value);
    }
}
