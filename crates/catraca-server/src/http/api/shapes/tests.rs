//! Real answers of an engine, read back through their descriptions.

use catraca::shape::Shape;
use catraca::{Catalog, Check, Engine, ManualClock, Outcome, Settle, Subject};
use serde_json::Value;

use super::super::super::words;
use super::super::described;
use super::*;

const CATALOG: &str = r#"
    [policy.read]
    by      = ["ip"]
    bucket  = { size = 3, refill = "1 per 1m" }
    cost    = { "404" = 9, default = 1 }
    credit  = { payment = { amount = 1, on = ["200"] } }
    ban     = [{ when = "status == 402", for = "10m", reason = "r", status = 400, message = "m" }]
    debt    = true
"#;

fn engine() -> Engine {
    let catalog = Catalog::parse(CATALOG).unwrap();
    Engine::builder(catalog).clock(ManualClock::default()).build()
}

fn same<T>(answer: &impl Serialize)
where
    T: serde::de::DeserializeOwned + Serialize,
{
    let text = serde_json::to_string(answer).unwrap();
    assert_eq!(described::<T>(&text).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn settlements_credits_and_states_are_as_described() {
    let engine = engine();
    let subject: Subject<'_> = [("ip", "192.0.2.1")].into_iter().collect();
    for (name, status) in [("a", 404), ("b", 402), ("c", 200), ("d", 200)] {
        same::<BucketState>(&Shape(&engine.bucket_state("default", "read", &subject).unwrap()));
        let mut check = Check::new("read", [("ip", "192.0.2.1")]);
        check.reference = Some(name);
        let Some(ticket) = engine.check(&check).unwrap().ticket else { continue };
        same::<Credited>(&Shape(&engine.credit("default", name, "payment", &subject).unwrap()));
        let outcome = Outcome { status: Some(status), ..Outcome::default() };
        for _ in 0..2 {
            let settle = Settle::ticket(&ticket, &outcome);
            same::<Settlement>(&Shape(&engine.settle(&settle).unwrap()));
        }
        same::<Credited>(&Shape(&engine.credit("default", name, "payment", &subject).unwrap()));
    }
}

#[test]
fn the_words_are_those_of_core() {
    use catraca::core::cell::block::Origin;
    use catraca::core::credit::NotCredited;
    use catraca::core::policy::Mode;
    use catraca::settlement::Settled;
    fn known<T: serde::de::DeserializeOwned>(words: &[&str]) {
        for word in words {
            serde_json::from_value::<T>(Value::from(*word)).unwrap();
        }
    }
    let origins = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    known::<words::Origin>(&origins.map(catraca::shape::origin));
    known::<words::Mode>(&[Mode::Enforce, Mode::Shadow, Mode::Off].map(Mode::as_str));
    let settled = [Settled::Applied, Settled::Again, Settled::Expired];
    known::<State>(&settled.map(Settled::as_str));
    let reasons = [
        NotCredited::Unknown,
        NotCredited::OtherSubject,
        NotCredited::Duplicate,
        NotCredited::NotSettled,
        NotCredited::NotCreditable,
    ];
    known::<words::NotCredited>(&reasons.map(NotCredited::as_str));
}
