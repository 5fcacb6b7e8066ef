//! While the store is available, a node answers exactly as an engine with local memory.

use std::sync::Arc;

use catraca::{
    App, BlockProposal, Catalog, Check, Credit, Engine, ManualClock, Outcome, Settle, Subject,
};

use super::helpers::{Remote, START, builder, check, node, pair, poll_ready, secs, settle};

const CATALOG: &str = r#"
[policy.read]
by     = ["ip"]
bucket = { size = 5, refill = "1 per 1m" }
cost   = { "200" = 1, "404" = 3, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true
[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "5m"
[gate.both]
policies = ["read", "login"]
"#;

#[test]
fn every_verb_answers_as_in_process() {
    let (shared, _, clock) = pair(CATALOG, 3);
    let twin = ManualClock::at(START);
    let local = builder(CATALOG, &twin).build();
    let references: Vec<String> = (0..12).map(|step| format!("E{step}")).collect();
    for (step, reference) in references.iter().enumerate() {
        let subject = Subject::from_iter([("ip", "192.0.2.1")]);
        let check = Check { reference: Some(reference), ..Check::new("both", subject.clone()) };
        let mut one = poll_ready(shared.check(&check)).unwrap();
        let mut other = local.check(&check).unwrap();
        // Each engine issues its own tickets, so they are not compared.
        let ticket = one.ticket.take();
        let twin_ticket = other.ticket.take();
        let cached = std::mem::take(&mut one.cached);
        assert!(cached || one == other, "step {step}: {one:#?} {other:#?}");
        assert_eq!((one.allowed, one.retry_after), (other.allowed, other.retry_after));
        assert_eq!(poll_ready(shared.peek(&check)).unwrap(), local.peek(&check).unwrap());
        let status = if step % 2 == 0 { 200 } else { 404 };
        let outcome = Outcome { status: Some(status), ..Outcome::default() };
        assert_eq!(ticket.is_some(), twin_ticket.is_some());
        if let Some(twin_ticket) = twin_ticket {
            let call = Settle::reference(reference, [("ip", "192.0.2.1")], &outcome);
            let settled = settle(&shared, &call);
            assert_eq!(settled, local.settle(&Settle::ticket(&twin_ticket, &outcome)).unwrap());
            let call = Credit::new(reference, "payment", &subject);
            let credit = poll_ready(shared.credit(&call)).unwrap();
            let twin_credit = local.credit(&call).unwrap();
            assert_eq!(credit, twin_credit);
        }
        let states = poll_ready(shared.buckets("default", &subject)).unwrap();
        assert_eq!(states, local.buckets("default", &subject).unwrap());
        clock.advance(secs(37));
        twin.advance(secs(37));
    }
}

#[test]
fn nodes_share_every_limit_and_every_block() {
    let (one, store, clock) = pair(CATALOG, 2);
    let other = node(CATALOG, &store, &clock, 2);
    let allowed = |app: &App| check(app, "login", "192.0.2.1").allowed;
    let seen = [&one, &other, &one, &other, &one].map(allowed);
    assert_eq!(seen, [true, true, true, false, false]);
    let subject = Subject::from_iter([("ip", "192.0.2.9")]);
    let proposal = BlockProposal::by_operator(secs(60), Some("seen elsewhere"));
    let blocked = poll_ready(one.block_unaudited("default", "login", &subject, proposal)).unwrap();
    assert_eq!(blocked.len(), 1);
    assert!(!check(&other, "login", "192.0.2.9").allowed, "at once");
    assert!(poll_ready(other.unblock_unaudited("default", "login", &subject)).unwrap());
    assert!(check(&other, "login", "192.0.2.9").allowed);
    poll_ready(one.reset_unaudited("default", "login", &Subject::from_iter([("ip", "192.0.2.1")])))
        .unwrap();
    assert!(allowed(&one), "a reset applies here at once");
}

#[test]
fn a_secret_must_be_given() {
    let clock = ManualClock::at(START);
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let store = Arc::new(Remote::new(&clock));
    let refused = App::over_store(builder, store, Default::default()).err().unwrap();
    assert!(refused.to_string().contains("must share a secret"), "{refused}");
}

/// covers: X-06
#[test]
fn an_outcome_is_priced_by_its_status_its_class_and_its_body() {
    let catalog = r#"
[policy.read]
by     = ["ip"]
bucket = { size = 100, refill = "1 per 1h" }
cost   = { "200" = 1, "404" = 20, "5xx" = 7, default = 3 }
ban    = [ { when = "body.reject_id == 5", for = "10m", reason = "rejected" } ]
"#;
    let reject = |id: i64| serde_json::json!({ "reject_id": id });
    let table = [
        (200, None, 1, false),
        (404, None, 20, false),
        (500, None, 7, false),
        (503, Some(reject(4)), 7, false),
        (418, None, 3, false),
        (200, Some(reject(5)), 1, true),
        (500, Some(reject(5)), 7, true),
    ];
    for (number, (status, body, charged, banned)) in table.into_iter().enumerate() {
        let (app, _, _) = pair(catalog, 1);
        let decision = check(&app, "read", "192.0.2.1");
        let outcome = Outcome { status: Some(status), body: body.into(), ..Outcome::default() };
        let ticket = decision.ticket.unwrap();
        let settled = settle(&app, &Settle::ticket(&ticket, &outcome));
        assert_eq!(settled.rows[0].charged, charged, "row {number}");
        let after = check(&app, "read", "192.0.2.1");
        assert_eq!(!after.allowed, banned, "row {number}");
        assert_eq!(after.remaining, Some(if banned { 0 } else { 99 - charged }), "row {number}");
    }
}
