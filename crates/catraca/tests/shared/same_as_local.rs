//! While the store is available, a shared engine answers exactly as an engine with local memory.

use catraca::{
    BlockOrder, Catalog, Check, CheckRef, Engine, ManualClock, Outcome, Settle, Subject,
};

use crate::helpers::{Remote, SECRET, START, node, pair, poll_ready, secs};

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
    let catalog = Catalog::parse(CATALOG).unwrap();
    let local = Engine::builder(catalog).clock(twin.clone()).secret(SECRET).build();
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
            let by_name = CheckRef::Reference(reference, Subject::from_iter([("ip", "192.0.2.1")]));
            let settle = Settle { namespace: "default", check: by_name, outcome: &outcome };
            let settled = poll_ready(shared.settle(&settle)).unwrap();
            assert_eq!(settled, local.settle(&Settle::ticket(&twin_ticket, &outcome)).unwrap());
            let credit =
                poll_ready(shared.credit("default", reference, "payment", &subject)).unwrap();
            let twin_credit = local.credit("default", reference, "payment", &subject).unwrap();
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
    let allowed = |engine: &catraca::SharedEngine<Remote>| {
        crate::helpers::check(engine, "login", "192.0.2.1").allowed
    };
    let seen = [&one, &other, &one, &other, &one].map(allowed);
    assert_eq!(seen, [true, true, true, false, false]);
    let subject = Subject::from_iter([("ip", "192.0.2.9")]);
    let order = BlockOrder {
        namespace: "default",
        policy: "login",
        subject: subject.clone(),
        span: secs(60),
        reason: Some("seen elsewhere"),
    };
    assert_eq!(poll_ready(one.block(&order)).unwrap().len(), 1);
    assert!(!crate::helpers::check(&other, "login", "192.0.2.9").allowed, "at once");
    assert!(poll_ready(other.unblock("default", "login", &subject)).unwrap());
    assert!(crate::helpers::check(&other, "login", "192.0.2.9").allowed);
    poll_ready(one.reset("default", "login", &Subject::from_iter([("ip", "192.0.2.1")]))).unwrap();
    assert!(allowed(&one), "a reset applies here at once");
}

#[test]
fn a_secret_must_be_given() {
    let clock = ManualClock::at(START);
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let refused = builder.share(Remote::new(&clock), Default::default()).unwrap_err();
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
        let (engine, _, _) = pair(catalog, 1);
        let decision = crate::helpers::check(&engine, "read", "192.0.2.1");
        let outcome = Outcome { status: Some(status), body: body.into(), ..Outcome::default() };
        let ticket = decision.ticket.unwrap();
        let settled = poll_ready(engine.settle(&Settle::ticket(&ticket, &outcome))).unwrap();
        assert_eq!(settled.rows[0].charged, charged, "row {number}");
        let after = crate::helpers::check(&engine, "read", "192.0.2.1");
        assert_eq!(!after.allowed, banned, "row {number}");
        assert_eq!(after.remaining, Some(if banned { 0 } else { 99 - charged }), "row {number}");
    }
}
