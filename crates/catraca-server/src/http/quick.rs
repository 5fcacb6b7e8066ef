//! A decision as JSON, written by hand: the one answer that is made for every request.
//!
//! The shape itself is `catraca::shape`; a test holds the two equal, byte for byte. Must not add or
//! hide a fact.

use catraca::{Decision, Row, Span, Time};

/// Room for a decision of one policy, so that writing it allocates once.
pub const USUAL_BYTES: usize = 512;

/// Writes a decision.
pub fn write(decision: &Decision, out: &mut Vec<u8>) {
    let put = &mut Put(out);
    put.raw(if decision.allowed { "{\"allowed\":true" } else { "{\"allowed\":false" });
    put.word(",\"reason\":", decision.reason.as_str());
    put.text(",\"policy\":", decision.policy.as_deref());
    put.number(",\"limit\":", decision.limit);
    put.number(",\"remaining\":", decision.remaining);
    put.millis(",\"reset_after_ms\":", decision.reset_after);
    put.millis(",\"retry_after_ms\":", decision.retry_after);
    put.instant(",\"blocked_until\":", decision.blocked_until);
    put.word(",\"mode\":", decision.mode.as_str());
    put.raw(if decision.degraded { ",\"degraded\":true" } else { ",\"degraded\":false" });
    put.text(",\"revision\":", Some(&decision.revision));
    put.text(",\"message\":", decision.message.as_deref());
    put.text(",\"ticket\":", decision.ticket.as_deref());
    if decision.cached {
        put.raw(",\"cached\":true");
    }
    if decision.unlisted {
        put.raw(",\"unlisted\":true");
    }
    if let Some(status) = decision.status {
        put.number(",\"status\":", Some(i64::from(status)));
    }
    put.raw(",\"policies\":[");
    for (place, one) in decision.rows.iter().enumerate() {
        put.raw(if place == 0 { "{\"policy\":" } else { ",{\"policy\":" });
        row(one, put);
    }
    put.raw("]}");
}

fn row(row: &Row, put: &mut Put<'_>) {
    put.text("", Some(&row.policy));
    if let Some(attribute) = &row.attribute {
        put.text(",\"attribute\":", Some(attribute));
    }
    put.raw(if row.allowed { ",\"allowed\":true" } else { ",\"allowed\":false" });
    put.word(",\"reason\":", row.reason.as_str());
    put.number(",\"limit\":", row.limit);
    put.number(",\"remaining\":", row.remaining);
    if row.balance.is_some() {
        put.number(",\"balance\":", row.balance);
    }
    put.millis(",\"reset_after_ms\":", row.reset_after);
    put.millis(",\"retry_after_ms\":", row.retry_after);
    if row.blocked_until.is_some() {
        put.instant(",\"blocked_until\":", row.blocked_until);
    }
    put.number(",\"charged\":", Some(row.charged));
    put.word(",\"mode\":", row.mode.as_str());
    put.raw("}");
}

/// Where the bytes go. A field is what stands before its value, comma and name included.
struct Put<'a>(&'a mut Vec<u8>);

impl Put<'_> {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// One of our own words, which need no escapes.
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
                // Writing a text to memory cannot fail.
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

/// Whether a byte stands for itself in a JSON text.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use catraca::shape::Shape;
    use catraca::{Catalog, Check, Engine, ManualClock};

    use super::super::api;
    use super::*;

    const CATALOG: &str = r#"
        default = "other"
        [policy.login]
        by      = ["ip"]
        window  = "1 per 1m"
        block   = "15m"
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

    fn same(decision: &Decision) {
        let mut quick = Vec::new();
        write(decision, &mut quick);
        let shape = serde_json::to_string(&Shape(decision)).unwrap();
        assert_eq!(String::from_utf8(quick).unwrap(), shape);
        let described = api::described::<api::Decision>(&shape).unwrap();
        assert_eq!(described, serde_json::from_str::<serde_json::Value>(&shape).unwrap());
    }

    fn asks() -> impl Iterator<Item = (&'static str, &'static str, Option<i64>)> {
        let gates = ["login", "pay", "read", "other", "all", "nobody"];
        let ips = ["198.51.100.7", "203.0.113.9", "192.0.2.1", ""];
        let costs = [None, Some(0), Some(2), Some(50)];
        let asked = move |gate, ip| costs.into_iter().map(move |cost| (gate, ip, cost));
        gates.into_iter().flat_map(move |gate| ips.into_iter().flat_map(move |ip| asked(gate, ip)))
    }

    #[test]
    fn every_kind_of_decision_is_written_as_its_shape() {
        let clock = ManualClock::default();
        let catalog = Catalog::parse(CATALOG).unwrap();
        let engine = Engine::builder(catalog).clock(clock).build();
        let banned = [("customer", "c"), ("session", "s")];
        let ticket = engine.check(&Check::new("pay", banned)).unwrap().ticket.unwrap();
        let outcome = catraca::Outcome { status: Some(402), ..catraca::Outcome::default() };
        engine.settle(&catraca::Settle::ticket(&ticket, &outcome)).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for (gate, ip, cost) in asks() {
            let mut check = Check::new(gate, [("ip", ip), ("customer", "c"), ("session", "s")]);
            check.cost = cost;
            let Ok(decision) = engine.check(&check) else { continue };
            seen.insert(decision.reason.as_str());
            same(&decision);
        }
        let all = ["allowlisted", "blocked", "blocklisted", "missing", "ok", "over_limit"];
        assert!(all.iter().all(|reason| seen.contains(reason)), "{seen:?}");
        assert!(seen.contains("too_costly"));
    }
}
