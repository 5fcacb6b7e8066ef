//! Checks that are planned ahead, and settles without sealing, have the results of others.

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
    let rules = unsealed.current_rules();
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
        let plan = unsealed.plan_check(&rules, check).unwrap();
        unsealed.validate_planned(&plan).unwrap();
        let (decision, ticket) = unsealed.check_planned(plan).unwrap();
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

const LISTED: &str = r#"
    default = "site"

    [policy.site]
    by     = ["ip"]
    window = "2 per 1m"
    block  = "10s"

    [policy.login]
    by     = ["ip", "user"]
    window = "3 per 1m"

    [[allowlist]]
    range = "198.51.100.1"
    until = 1970-01-01T00:01:00Z

    [[blocklist]]
    range = "198.51.100.2"
    until = 1970-01-01T00:02:00Z
"#;

/// Lists expire and operators act between plan and decision, and invalid checks stay invalid.
#[test]
fn checks_planned_before_the_first_decision_are_decided_as_others() {
    let clock = ManualClock::default();
    let build = || Engine::builder(Catalog::parse(LISTED).unwrap()).clock(clock.clone()).build();
    let planned = build();
    let other = build();
    let long = "x".repeat(300);
    let subjects =
        ["1", "2", "3", "4", "no address", &long].map(|last| format!("198.51.100.{last}"));
    let gates = ["site", "login", "undeclared", "", "login"];
    let check = |step: usize| {
        let mut check = Check::new(gates[step % 5], [("ip", &*subjects[step % 6])]);
        // Without `user`, a check of `login` is refused, unless a list decides.
        if !step.is_multiple_of(4) {
            check.subject = check.subject.with("user", "anna");
        }
        check.lists = !step.is_multiple_of(7);
        check
    };
    let rules = planned.current_rules();
    let plans: Vec<_> = (0..300).map(|step| planned.plan_check(&rules, check(step))).collect();
    let mut refused = 0;
    for (step, plan) in plans.into_iter().enumerate() {
        clock.set(Time::from_millis(step as i64 * 500));
        for engine in [&planned, &other] {
            let subject = Check::new("site", [("ip", "198.51.100.3")]).subject;
            match step % 50 {
                10 => engine.reset("default", "site", &subject).unwrap(),
                20 => _ = engine.unblock("default", "site", &subject).unwrap(),
                _ => {}
            }
        }
        let expected = other.check(&check(step)).map_err(|error| error.to_string());
        let validated = plan.as_ref().map_or_else(
            |error| Err(error.to_string()),
            |plan| planned.validate_planned(plan).map_err(|error| error.to_string()),
        );
        let found = plan.and_then(|plan| planned.check_planned(plan));
        let found = found.map(|(decision, _)| decision).map_err(|error| error.to_string());
        assert_eq!(validated.err(), expected.clone().err(), "step {step}");
        assert_eq!(found, expected, "step {step}");
        refused += u32::from(found.is_err());
    }
    assert!((50..250).contains(&refused), "{refused} of 300 are refused");
}
