//! The `Limiter` trait: one generic function over the engine, over `App` and behind pointers.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use catraca::core::credit_plan::CreditRejection;
use catraca::{
    Catalog, Check, CheckRef, Credit, Engine, Error, Limiter, LimiterGate, ManualClock, Outcome,
    Refusal, Settle, Subject,
};

const CATALOG: &str = r#"
[policy.lookup]
by     = ["payer"]
bucket = { size = 100, refill = "2 per 1m" }
cost   = { "200" = 10, "404" = 20, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
"#;

fn engine() -> Engine {
    let catalog = Catalog::parse(CATALOG).unwrap();
    Engine::builder(catalog).clock(ManualClock::default()).build()
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Every operation of the trait, for any limiter. Returns the free units at its end.
async fn use_every_operation(limiter: impl Limiter) -> Result<Option<i64>, Error> {
    let outcome = Outcome::status(200);
    let payer = Subject::from([("payer", "a")]);
    let check = Check::new("lookup", payer.clone()).reference("E1");
    assert!(limiter.check(&check).await?.allowed);

    let settle = Settle {
        namespace: "default",
        check: CheckRef::Reference("E1", payer.clone()),
        outcome: &outcome,
    };
    let settled = limiter.settle(&settle).await?;
    assert_eq!((settled.rows[0].charged, settled.rows[0].balance), (10, Some(90)));

    let credit =
        Credit { namespace: "default", reference: "E1", event: "payment", subject: &payer };
    assert_eq!(limiter.credit(&credit).await?, Ok(vec![("lookup".into(), 1)]));
    assert_eq!(limiter.credit(&credit).await?, Err(CreditRejection::Duplicate));

    let unknown = limiter.check(&Check::new("lokup", payer.clone())).await;
    assert!(matches!(unknown, Err(Error::Refused(Refusal::UnknownGate(_)))), "{unknown:?}");
    let forged = limiter.settle(&Settle::ticket("forged", &outcome)).await;
    assert!(matches!(forged, Err(Error::Refused(_))), "{forged:?}");
    Ok(limiter.peek(&Check::new("lookup", payer)).await?.rows[0].balance)
}

#[test]
fn an_engine_answers_at_once() {
    let engine = Arc::new(engine());
    assert_eq!(ready(use_every_operation(&*engine)).unwrap(), Some(91));
    let payer = [("payer", "b")];
    assert!(ready(Limiter::check(&engine, &Check::new("lookup", payer))).unwrap().allowed);
}

#[test]
fn a_future_that_is_not_polled_charges_nothing() {
    let engine = engine();
    let check = Check::new("lookup", [("payer", "a")]);
    drop(Limiter::check(&engine, &check));
    assert_eq!(engine.peek(&check).unwrap().rows[0].balance, Some(100));
}

/// What a program does with a gate in its state, over any limiter.
async fn use_gate(gate: &LimiterGate<impl Limiter>) -> Result<Vec<Option<i64>>, Error> {
    let mut left = vec![gate.peek(["a"]).await?.remaining];
    left.push(gate.check(["a"]).await?.remaining);
    left.push(gate.check_cost(["a"], 30).await?.remaining);
    let ticket = gate.decide(&gate.request(["a"]).reference("E1")).await?.ticket.unwrap();
    let outcome = Outcome::status(404);
    left.push(gate.limiter().settle(&Settle::ticket(&ticket, &outcome)).await?.rows[0].balance);
    Ok(left)
}

#[test]
fn a_gate_of_a_limiter_is_checked_as_by_name() {
    let by_gate = LimiterGate::new(Arc::new(engine()), "lookup", ["payer"]);
    let left = ready(use_gate(&by_gate.clone())).unwrap();
    let engine = engine();
    let check = Check::new("lookup", [("payer", "a")]);
    let mut expected = vec![engine.peek(&check).unwrap().remaining];
    expected.push(engine.check(&check).unwrap().remaining);
    expected.push(engine.check(&check.clone().cost(30)).unwrap().remaining);
    let ticket = engine.check(&check).unwrap().ticket.unwrap();
    let settled = engine.settle(&Settle::ticket(&ticket, &Outcome::status(404))).unwrap();
    expected.push(settled.rows[0].balance);
    assert_eq!(left, expected);
    assert_eq!(ready(by_gate.peek(["b"])).unwrap().rows[0].balance, Some(100));
    let shop = by_gate.clone().namespace("shop");
    assert_eq!(ready(shop.peek(["a"])).unwrap().rows[0].balance, Some(100));
    let misspelt = LimiterGate::new(by_gate.limiter(), "lokup", ["payer"]);
    let refused = ready(misspelt.check(["a"]));
    assert!(matches!(refused, Err(Error::Refused(Refusal::UnknownGate(_)))), "{refused:?}");
}

#[cfg(feature = "shared")]
#[test]
fn an_application_is_used_in_the_same_way() {
    let app = catraca::App::local(engine()).build();
    assert_eq!(ready(use_every_operation(Arc::new(app))).unwrap(), Some(91));
}
