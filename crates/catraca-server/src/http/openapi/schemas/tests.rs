//! Tests that real responses of an engine match their schemas.

use catraca::json::AsJson;
use catraca::{Catalog, Check, Engine, ManualClock, Outcome, Settle, Subject};
use serde_json::Value;

use super::super::reserialize;
use super::*;
use crate::http::bodies::schema_values;

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

fn assert_matches_schema<T>(response: &impl Serialize)
where
    T: serde::de::DeserializeOwned + Serialize,
{
    let text = serde_json::to_string(response).unwrap();
    assert_eq!(reserialize::<T>(&text).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn settlements_credits_and_states_match_their_schemas() {
    let engine = engine();
    let subject: Subject<'_> = [("ip", "192.0.2.1")].into_iter().collect();
    for (name, status) in [("a", 404), ("b", 402), ("c", 200), ("d", 200)] {
        assert_matches_schema::<BucketState>(&AsJson(
            &engine.bucket_state("default", "read", &subject).unwrap(),
        ));
        let mut check = Check::new("read", [("ip", "192.0.2.1")]);
        check.reference = Some(name);
        let Some(ticket) = engine.check(&check).unwrap().ticket else { continue };
        assert_matches_schema::<CreditOutcome>(&AsJson(
            &engine.credit("default", name, "payment", &subject).unwrap(),
        ));
        let outcome = Outcome { status: Some(status), ..Outcome::default() };
        for _ in 0..2 {
            let settle = Settle::ticket(&ticket, &outcome);
            assert_matches_schema::<Settlement>(&AsJson(&engine.settle(&settle).unwrap()));
        }
        assert_matches_schema::<CreditOutcome>(&AsJson(
            &engine.credit("default", name, "payment", &subject).unwrap(),
        ));
    }
}

#[test]
fn the_words_are_those_of_core() {
    use catraca::core::cell::block::Origin;
    use catraca::core::credit_plan::CreditRejection;
    use catraca::core::policy::Mode;
    use catraca::settlement::SettleState;
    fn known<T: serde::de::DeserializeOwned>(words: &[&str]) {
        for word in words {
            serde_json::from_value::<T>(Value::from(*word)).unwrap();
        }
    }
    let origins = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    known::<schema_values::Origin>(&origins.map(catraca::json::origin_name));
    known::<schema_values::Mode>(&[Mode::Enforce, Mode::Shadow, Mode::Off].map(Mode::as_str));
    let settled = [SettleState::Applied, SettleState::Again, SettleState::Expired];
    known::<SettlementState>(&settled.map(SettleState::as_str));
    let reasons = [
        CreditRejection::Unknown,
        CreditRejection::OtherSubject,
        CreditRejection::Duplicate,
        CreditRejection::NotSettled,
        CreditRejection::NotCreditable,
    ];
    known::<CreditRefusal>(&reasons.map(CreditRejection::as_str));
}
