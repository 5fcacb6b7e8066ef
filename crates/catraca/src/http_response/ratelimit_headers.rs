//! Rate-limit headers of a decision: `RateLimit-Policy` and `RateLimit` as structured fields,
//! `Retry-After`, `Catraca-Degraded`, and `X-RateLimit-*` on request.

use std::fmt::Write;

use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::policy::Mode;
use catraca_core::time::Span;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::retry_after_secs;

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const DEGRADED: HeaderName = HeaderName::from_static("catraca-degraded");

/// One item fits in it, so that its text does not grow step by step.
const TYPICAL_BYTES: usize = 48;

/// The largest integer of a structured field (RFC 9651).
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Writes the headers of a decision. `RateLimit-Policy` and `RateLimit` are lists, so those of an
/// inner limiter are kept.
pub fn write(decision: &Decision, x_ratelimit: bool, headers: &mut HeaderMap) {
    // When a block or a ban without a limit denies, rows with room are left out: a client that
    // reads `r > 0` would retry at once.
    let all_rows = decision.allowed || decision.limit.is_some();
    let mut policies = String::with_capacity(TYPICAL_BYTES);
    let mut limits = String::with_capacity(TYPICAL_BYTES);
    for row in decision.rows.iter().filter(|row| row.mode == Mode::Enforce) {
        for_each_quota(row, |quota| {
            quota.write_policy(row, &mut policies);
            if all_rows || !row.allowed {
                quota.write_limit(row, &mut limits);
            }
        });
    }
    put(headers, RATELIMIT_POLICY, policies);
    put(headers, RATELIMIT, limits);
    if let Some(seconds) = retry_after_secs(decision) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if decision.degraded {
        headers.insert(DEGRADED, HeaderValue::from_static("?1"));
    }
    if x_ratelimit {
        write_x_ratelimit(decision, headers);
    }
}

/// One quota of a row: its limit, or one of its windows.
struct Quota {
    limit: i64,
    window: Option<Span>,
    remaining: i64,
    /// Until there is room, or until the quota is full again.
    wait: Option<Span>,
    /// Whether it is one of several windows. Their names contain their lengths.
    is_one_of_several: bool,
}

/// Calls `on_quota` with every quota of a row.
fn for_each_quota(row: &DecisionRow, mut on_quota: impl FnMut(Quota)) {
    let Some((limit, remaining)) = row.limit.zip(row.remaining) else { return };
    if row.windows.is_empty() {
        let wait = row.retry_after.or(row.reset_after);
        let window = row.window;
        return on_quota(Quota { limit, window, remaining, wait, is_one_of_several: false });
    }
    for window in &row.windows {
        on_quota(Quota {
            limit: window.limit,
            window: Some(window.span),
            remaining: window.remaining,
            wait: window.retry_after.or(window.reset_after),
            is_one_of_several: true,
        });
    }
}

impl Quota {
    /// `"name";q=limit;w=window in seconds`; windows below a second are left out.
    fn write_policy(&self, row: &DecisionRow, list: &mut String) {
        self.write_name(row, list);
        let _ = write!(list, ";q={}", clamp_integer(self.limit));
        if let Some(window) = self.window.filter(|window| *window >= Span::from_secs(1)) {
            let _ = write!(list, ";w={}", clamp_integer(window.ceil_secs()));
        }
    }

    /// `"name";r=remaining;t=seconds until there is room, or until the quota is full again`.
    fn write_limit(&self, row: &DecisionRow, list: &mut String) {
        self.write_name(row, list);
        let _ = write!(list, ";r={}", clamp_integer(self.remaining));
        if let Some(wait) = self.wait.filter(|wait| *wait > Span::ZERO) {
            // Rounded up, at least one: a client that retries after it finds room.
            let _ = write!(list, ";t={}", clamp_integer(wait.ceil_secs().max(1)));
        }
    }

    /// A separator if needed, and a name that is distinct among the items of a decision: that of
    /// the policy, with the attribute if it has `each`, and with the length of the window if there
    /// are several: `"pay:customer"`, `"global:60s"`.
    fn write_name(&self, row: &DecisionRow, list: &mut String) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push('"');
        list.push_str(&row.policy);
        if let Some(attribute) = &row.attribute {
            list.push(':');
            list.push_str(attribute);
        }
        if let Some(window) = self.window.filter(|_| self.is_one_of_several) {
            list.push(':');
            write_length(window, list);
        }
        list.push('"');
    }
}

/// A length in whole seconds, or in the first smaller unit that is exact.
fn write_length(span: Span, text: &mut String) {
    let micros = span.micros();
    let _ = match (micros % 1_000_000, micros % 1_000) {
        (0, _) => write!(text, "{}s", micros / 1_000_000),
        (_, 0) => write!(text, "{}ms", micros / 1_000),
        _ => write!(text, "{micros}us"),
    };
}

/// The de-facto headers; `X-RateLimit-Reset` is a Unix time in seconds, rounded up. They have room
/// for one window: the first listed if the request is allowed, the one that denies if not.
fn write_x_ratelimit(decision: &Decision, headers: &mut HeaderMap) {
    let Some(row) = decision.reported_row() else { return };
    let Some((mut limit, mut remaining)) = row.limit.zip(row.remaining) else { return };
    let mut reset_after = row.reset_after;
    if let Some(first) = row.windows.first().filter(|_| decision.allowed) {
        limit = first.limit;
        remaining = first.remaining;
        reset_after = first.reset_after;
    }
    headers.insert(HeaderName::from_static("x-ratelimit-limit"), limit.into());
    headers.insert(HeaderName::from_static("x-ratelimit-remaining"), remaining.into());
    if let Some(reset) = reset_after {
        let at = (decision.at.after(reset).micros() + 999_999) / 1_000_000;
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), at.into());
    }
}

/// Within the range of a structured-field integer, and not negative.
fn clamp_integer(number: i64) -> i64 {
    number.clamp(0, INTEGER_MAX)
}

/// Appends a header unless its value is empty.
fn put(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if !value.is_empty()
        && let Ok(value) = HeaderValue::try_from(value)
    {
        headers.append(name, value);
    }
}
