//! Writes a decision as JSON by hand, because it is the response to almost every request.
//!
//! The format is defined in `catraca::json`; a test compares the two, byte for byte.

use catraca::{Decision, DecisionRow, Span, Time, WindowQuota};

/// Capacity for a decision of one policy, so that writing it allocates once.
pub const TYPICAL_BYTES: usize = 512;

/// Appends a decision to `out`.
pub fn write(decision: &Decision, out: &mut Vec<u8>) {
    let json = &mut DecisionWriter(out);
    json.raw(if decision.allowed { "{\"allowed\":true" } else { "{\"allowed\":false" });
    json.word(",\"reason\":", decision.reason.as_str());
    json.text(",\"policy\":", decision.policy.as_deref());
    json.number(",\"limit\":", decision.limit);
    json.number(",\"remaining\":", decision.remaining);
    json.millis(",\"reset_after_ms\":", decision.reset_after);
    json.millis(",\"retry_after_ms\":", decision.retry_after);
    json.instant(",\"blocked_until\":", decision.blocked_until);
    json.word(",\"mode\":", decision.mode.as_str());
    json.raw(if decision.degraded { ",\"degraded\":true" } else { ",\"degraded\":false" });
    json.text(",\"revision\":", Some(&decision.revision));
    json.text(",\"message\":", decision.message.as_deref());
    json.text(",\"ticket\":", decision.ticket.as_deref());
    if decision.cached {
        json.raw(",\"cached\":true");
    }
    if decision.unlisted {
        json.raw(",\"unlisted\":true");
    }
    if let Some(status) = decision.status {
        json.number(",\"status\":", Some(i64::from(status)));
    }
    json.raw(",\"policies\":[");
    for (index, row) in decision.rows.iter().enumerate() {
        json.raw(if index == 0 { "{\"policy\":" } else { ",{\"policy\":" });
        write_row(row, json);
    }
    json.raw("]}");
}

fn write_row(row: &DecisionRow, json: &mut DecisionWriter<'_>) {
    json.text("", Some(&row.policy));
    if let Some(attribute) = &row.attribute {
        json.text(",\"attribute\":", Some(attribute));
    }
    json.raw(if row.allowed { ",\"allowed\":true" } else { ",\"allowed\":false" });
    json.word(",\"reason\":", row.reason.as_str());
    json.number(",\"limit\":", row.limit);
    if row.window.is_some() {
        json.millis(",\"window_ms\":", row.window);
    }
    json.number(",\"remaining\":", row.remaining);
    if row.balance.is_some() {
        json.number(",\"balance\":", row.balance);
    }
    json.millis(",\"reset_after_ms\":", row.reset_after);
    json.millis(",\"retry_after_ms\":", row.retry_after);
    if row.blocked_until.is_some() {
        json.instant(",\"blocked_until\":", row.blocked_until);
    }
    if let Some(level) = row.level {
        json.number(",\"level\":", Some(i64::from(level)));
    }
    json.number(",\"charged\":", Some(row.charged));
    json.word(",\"mode\":", row.mode.as_str());
    if !row.windows.is_empty() {
        write_windows(&row.windows, json);
    }
    json.raw("}");
}

fn write_windows(windows: &[WindowQuota], json: &mut DecisionWriter<'_>) {
    json.raw(",\"windows\":[");
    for (index, window) in windows.iter().enumerate() {
        let field = if index == 0 { "{\"limit\":" } else { ",{\"limit\":" };
        json.number(field, Some(window.limit));
        json.millis(",\"window_ms\":", Some(window.span));
        json.number(",\"remaining\":", Some(window.remaining));
        json.millis(",\"reset_after_ms\":", window.reset_after);
        json.millis(",\"retry_after_ms\":", window.retry_after);
        json.raw("}");
    }
    json.raw("]");
}

/// Appends JSON to a buffer. `field` is everything before the value: comma, quoted name, colon.
struct DecisionWriter<'a>(&'a mut Vec<u8>);

impl DecisionWriter<'_> {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A string that is known to need no escapes.
    fn word(&mut self, field: &str, word: &str) {
        self.raw(field);
        self.raw("\"");
        self.raw(word);
        self.raw("\"");
    }

    fn text(&mut self, field: &str, text: Option<&str>) {
        match text {
            Some(text) if text.bytes().all(is_plain) => self.word(field, text),
            Some(text) => {
                self.raw(field);
                // Writing to memory cannot fail.
                let _ = serde_json::to_writer(&mut *self.0, text);
            }
            None => self.null(field),
        }
    }

    fn number(&mut self, field: &str, number: Option<i64>) {
        let Some(number) = number else { return self.null(field) };
        self.raw(field);
        self.raw(itoa::Buffer::new().format(number));
    }

    fn millis(&mut self, field: &str, span: Option<Span>) {
        self.number(field, span.map(Span::ceil_millis));
    }

    fn instant(&mut self, field: &str, at: Option<Time>) {
        match at {
            Some(at) => self.word(field, &at.to_rfc3339()),
            None => self.null(field),
        }
    }

    fn null(&mut self, field: &str) {
        self.raw(field);
        self.raw("null");
    }
}

/// Whether a byte needs no escape in a JSON string. Bytes of UTF-8 sequences are above `b' '`.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use catraca::json::AsJson;
    use catraca::{Catalog, Check, Engine, ManualClock, Reason};

    use super::*;

    const CATALOG: &str = r#"
        default = "other"
        [policy.login]
        by      = ["ip"]
        window  = ["1 per 1m", "1 per 1s"]
        block   = { first = "15m", factor = 2, max = "1h", forget = "1d" }
        message = "Não \"agora\":\n\\ {retry_after}"
        [policy.pay]
        each    = ["customer", "session"]
        ban     = [{ when = "status == 402", for = "10m", reason = "r", status = 400 }]
        [policy.read]
        by      = ["ip"]
        bucket  = { size = 3, refill = "1 per 1m" }
        cost    = { "404" = 9, default = 1 }
        debt    = true
        mode    = "shadow"
        [policy.other]
        by      = ["ip"]
        fixed   = "2 per 1h"
        on_missing = "deny"
        [gate.all]
        policies = ["login", "pay", "read", "other"]
        [[blocklist]]
        range  = "203.0.113.0/24"
        [[allowlist]]
        range  = "192.0.2.0/24"
    "#;

    fn assert_same(decision: &Decision) {
        let mut written = Vec::new();
        write(decision, &mut written);
        let expected = serde_json::to_string(&AsJson(decision)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    fn checks() -> impl Iterator<Item = (&'static str, &'static str, Option<i64>)> {
        let gates = ["login", "pay", "read", "other", "all", "undeclared"];
        let ips = ["198.51.100.7", "203.0.113.9", "192.0.2.1", ""];
        let costs = [None, Some(0), Some(2), Some(50)];
        let costs_of = move |gate, ip| costs.into_iter().map(move |cost| (gate, ip, cost));
        gates
            .into_iter()
            .flat_map(move |gate| ips.into_iter().flat_map(move |ip| costs_of(gate, ip)))
    }

    #[test]
    fn every_kind_of_decision_is_written_as_its_json() {
        let clock = ManualClock::default();
        let catalog = Catalog::parse(CATALOG).unwrap();
        let engine = Engine::builder(catalog).clock(clock).build();
        let banned = [("customer", "c"), ("session", "s")];
        let ticket = engine.check(&Check::new("pay", banned)).unwrap().ticket.unwrap();
        let outcome = catraca::Outcome { status: Some(402), ..catraca::Outcome::default() };
        engine.settle(&catraca::Settle::ticket(&ticket, &outcome)).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut levels = std::collections::BTreeSet::new();
        for (gate, ip, cost) in checks() {
            let mut check = Check::new(gate, [("ip", ip), ("customer", "c"), ("session", "s")]);
            check.cost = cost;
            let Ok(decision) = engine.check(&check) else { continue };
            seen.insert(decision.reason.as_str());
            levels.extend(decision.rows.iter().map(|row| row.level));
            assert_same(&decision);
        }
        // A store in memory is always available.
        let others = Reason::ALL.iter().filter(|reason| **reason != Reason::Unavailable);
        assert_eq!(seen, others.map(|reason| reason.as_str()).collect());
        assert_eq!(levels.into_iter().collect::<Vec<_>>(), [None, Some(1)]);
    }
}
