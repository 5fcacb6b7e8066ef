//! Rate-limit headers of a decision: `RateLimit-Policy` and `RateLimit` as structured fields,
//! `Retry-After`, `Catraca-Degraded`, and `X-RateLimit-*` on request.

use std::fmt::Write;

use catraca::core::policy::Mode;
use catraca::{Decision, DecisionRow, Span, WindowQuota};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The largest integer of a structured field (RFC 9651).
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Writes the headers of a decision.
pub fn write(decision: &Decision, x_ratelimit: bool, headers: &mut HeaderMap) {
    let rows = || decision.rows.iter().filter(|row| row.mode == Mode::Enforce);
    let policies = join(rows().flat_map(quota_items).map(|item| item.policy()));
    // When a block or a ban without a limit denies, rows with room are left out: a client that
    // reads `r > 0` would retry at once.
    let all_rows = decision.allowed || decision.limit.is_some();
    let limited = rows().filter(|row| all_rows || !row.allowed);
    let limits = join(limited.flat_map(quota_items).map(|item| item.limit()));
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

/// One quota of a row: its limit, or one of its windows.
struct QuotaItem {
    /// Distinct among the items of a decision.
    name: String,
    limit: i64,
    window: Option<Span>,
    remaining: i64,
    /// Until there is room, or until the quota is full again.
    wait: Option<Span>,
}

/// The quotas of a row. The name is that of the policy, with the attribute if it has `each`, and
/// with the length of the window if there are several: `"pay:customer"`, `"global:60s"`.
fn quota_items(row: &DecisionRow) -> Vec<QuotaItem> {
    let Some((limit, remaining)) = row.limit.zip(row.remaining) else { return Vec::new() };
    let attribute = row.attribute.as_ref().map(|name| format!(":{name}")).unwrap_or_default();
    let name = format!("{}{attribute}", row.policy);
    if row.windows.is_empty() {
        let wait = row.retry_after.or(row.reset_after);
        return vec![QuotaItem { name, limit, window: row.window, remaining, wait }];
    }
    let item = |window: &WindowQuota| QuotaItem {
        name: format!("{name}:{}", length_text(window.span)),
        limit: window.limit,
        window: Some(window.span),
        remaining: window.remaining,
        wait: window.retry_after.or(window.reset_after),
    };
    row.windows.iter().map(item).collect()
}

/// A length in whole seconds, or in the first smaller unit that is exact.
fn length_text(span: Span) -> String {
    let micros = span.micros();
    match (micros % 1_000_000, micros % 1_000) {
        (0, _) => format!("{}s", micros / 1_000_000),
        (_, 0) => format!("{}ms", micros / 1_000),
        _ => format!("{micros}us"),
    }
}

impl QuotaItem {
    /// `"name";q=limit;w=window in seconds`; windows below a second are left out.
    fn policy(&self) -> String {
        let mut item = format!("\"{}\";q={}", self.name, clamp_integer(self.limit));
        if let Some(window) = self.window.filter(|window| *window >= Span::from_secs(1)) {
            let _ = write!(item, ";w={}", clamp_integer(window.ceil_secs()));
        }
        item
    }

    /// `"name";r=remaining;t=seconds until there is room, or until the quota is full again`.
    fn limit(&self) -> String {
        let mut item = format!("\"{}\";r={}", self.name, clamp_integer(self.remaining));
        if let Some(wait) = self.wait.filter(|wait| *wait > Span::ZERO) {
            let _ = write!(item, ";t={}", clamp_integer(seconds(wait)));
        }
        item
    }
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
    put(headers, "x-ratelimit-limit", &limit.to_string());
    put(headers, "x-ratelimit-remaining", &remaining.to_string());
    if let Some(reset) = reset_after {
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
