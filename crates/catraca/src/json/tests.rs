//! Bodies that were written are read back as the same values.

use catraca_core::catalog::Catalog;
use catraca_core::decision::Decision;
use catraca_core::outcome::Outcome;
use catraca_core::request::Check;
use catraca_core::subject::Subject;
use catraca_core::time::{Span, Time};

use super::{AsJson, CreditBody, DecisionBody, SettlementBody};
use crate::clock::ManualClock;
use crate::engine::{Credit, Engine, Settle};

const CATALOG: &str = r#"
    default = "other"
    [policy.login]
    by      = ["ip"]
    window  = ["1 per 1m", "1 per 1s"]
    block   = "15m"
    message = "Não \"agora\": {retry_after}"
    [policy.pay]
    each    = ["customer", "session"]
    ban     = [{ when = "status == 402", for = "10m", reason = "r", status = 400 }]
    [policy.read]
    by      = ["ip"]
    bucket  = { size = 3, refill = "1 per 1m" }
    cost    = { "200" = 1, "404" = 9, default = 1 }
    credit  = { paid = { amount = 1, on = ["200"] } }
    debt    = true
    [policy.other]
    by      = ["ip"]
    fixed   = "2 per 1h"
    [gate.all]
    policies = ["login", "pay", "read", "other"]
"#;

fn engine() -> Engine {
    let clock = ManualClock::at(Time::from_millis(1_700_000_000_000));
    Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock).build()
}

fn read_back(decision: &Decision) -> Decision {
    let json = serde_json::to_string(&AsJson(decision)).unwrap();
    let body: DecisionBody<'_> = serde_json::from_str(&json).unwrap();
    let read = body.into_decision(decision.at);
    assert_eq!(serde_json::to_string(&AsJson(&read)).unwrap(), json);
    #[cfg(feature = "client")]
    {
        let body: DecisionBody<'_> = super::read_json(&json).unwrap();
        assert_eq!(body.into_decision(decision.at), read);
    }
    read
}

/// The decision as a body has it: in milliseconds.
fn as_body_has_it(mut decision: Decision) -> Decision {
    let millis = |span: &mut Option<Span>| {
        *span = span.map(|span| Span::from_millis(span.ceil_millis()));
    };
    millis(&mut decision.reset_after);
    millis(&mut decision.retry_after);
    for row in &mut decision.rows {
        millis(&mut row.window);
        millis(&mut row.reset_after);
        millis(&mut row.retry_after);
        for window in &mut row.windows {
            millis(&mut window.reset_after);
            millis(&mut window.retry_after);
        }
    }
    decision
}

#[test]
fn a_decision_is_read_back() {
    let engine = engine();
    let mut blocked = 0;
    for gate in ["all", "login", "login", "login", "undeclared", "read", "pay"] {
        let subject = [("ip", "198.51.100.7"), ("customer", "c"), ("session", "s")];
        let decision = engine.check(&Check::new(gate, subject)).unwrap();
        blocked += u32::from(decision.blocked_until.is_some());
        assert_eq!(read_back(&decision), as_body_has_it(decision));
    }
    assert!(blocked > 1);
}

#[test]
fn a_settlement_and_a_credit_are_read_back() {
    let engine = engine();
    let subject = || Subject::from([("ip", "::1"), ("customer", "c"), ("session", "s")]);
    for (gate, status, reference) in [("pay", 402, "p"), ("read", 200, "r"), ("read", 404, "s")] {
        let check = Check::new(gate, subject()).reference(reference);
        let ticket = engine.check(&check).unwrap().ticket.unwrap();
        let outcome = Outcome::status(status);
        let settlement = engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
        let json = serde_json::to_string(&AsJson(&settlement)).unwrap();
        let body: SettlementBody<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(body.into_settlement(settlement.at), settlement);
    }
    for (reference, event) in [("r", "paid"), ("r", "paid"), ("s", "paid"), ("no", "paid")] {
        let credited = engine.credit(&Credit::new(reference, event, &subject())).unwrap();
        let json = serde_json::to_string(&AsJson(&credited)).unwrap();
        let body: CreditBody<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(body.into_result().unwrap(), credited, "{json}");
    }
}

#[test]
fn a_body_of_a_newer_server_is_read() {
    let engine = engine();
    let decision = engine.check(&Check::new("login", [("ip", "::1")])).unwrap();
    let json = serde_json::to_string(&AsJson(&decision)).unwrap();
    let newer = json.replacen('{', r#"{"added_later":{"a":1},"#, 1);
    let body: DecisionBody<'_> = serde_json::from_str(&newer).unwrap();
    assert!(body.into_decision(decision.at).allowed);
}
