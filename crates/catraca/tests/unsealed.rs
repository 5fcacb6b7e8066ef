//! A check and a settle without sealing have the results of those with a sealed ticket.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use catraca::{Catalog, Check, Engine, ManualClock, Outcome, Settle, Time};

const CATALOG: &str = r#"
    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 10, refill = "1 per 1m" }
    cost   = { "200" = 1, "404" = 6 }
    debt   = true

    [policy.partner]
    by     = ["partner"]
    window = "30 per 1m"
    cost   = { "200" = 1, "404" = 3 }

    [gate.lookup]
    policies = ["lookup", "partner"]
"#;

fn engine(clock: &ManualClock) -> Engine {
    Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock.clone()).build()
}

#[test]
fn results_are_those_of_sealed_tickets() {
    let clock = ManualClock::default();
    let sealed = engine(&clock);
    let unsealed = engine(&clock);
    let mut denied = 0;
    for step in 0..60 {
        clock.set(Time::from_millis(step * 7_000));
        let payer = if step % 3 == 0 { "anna" } else { "bert" };
        let reference = format!("R{}", step / 2);
        let mut check = Check::new("lookup", [("payer", payer), ("partner", "p")]);
        check.reference = Some(&reference);
        let status = Some(if step % 4 == 0 { 404 } else { 200 });
        let outcome = Outcome { status, ..Outcome::default() };

        let mut expected = sealed.check(&check).unwrap();
        let (decision, ticket) = unsealed.check_unsealed(&check).unwrap();
        let token = expected.ticket.take();
        assert_eq!(decision, expected, "step {step}");
        assert_eq!(ticket.is_some(), token.is_some(), "step {step}");
        denied += u32::from(!decision.allowed);

        // Some outcomes come after the ticket has expired.
        let late = if step % 5 == 0 { 3_600_000 } else { 1 };
        clock.set(Time::from_millis(step * 7_000 + late));
        let Some((ticket, token)) = ticket.zip(token) else { continue };
        // The second settle returns the result of the first.
        for _ in 0..2 {
            let expected = sealed.settle(&Settle::ticket(&token, &outcome)).unwrap();
            let found = unsealed.settle_unsealed("default", ticket.clone(), &outcome).unwrap();
            assert_eq!(found, expected, "step {step}");
        }
    }
    assert!(denied > 0);
}
