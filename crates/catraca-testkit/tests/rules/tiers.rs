//! Tiers on the engine: in any order of tiers, every admitted request fits the limits of its
//! own tier over the units of its counter.

use catraca::{BlockProposal, Catalog, Check, Engine, ManualClock, Outcome, Settle, Span, Time};
use catraca_testkit::generate::Rng;

const SITE: &str = r#"
    [policy.site]
    by     = ["ip"]
    window = "10 per 1m"
    tier   = [
      { when = { method = "POST" }, window = ["5 per 1m", "3 per 1s"] },
      { when = { kind = "robot" }, window = "2 per 1m" },
      { when = { export = "yes" }, cost = 4 },
    ]

    [facts.ip."198.51.100.9"]
    kind = "robot"
"#;

fn site() -> (Engine, ManualClock) {
    let clock = ManualClock::at(Time::from_millis(1_767_225_600_000));
    let catalog = Catalog::parse(SITE).unwrap();
    (Engine::builder(catalog).clock(clock.clone()).build(), clock)
}

fn request<'a>(ip: &'a str, name: &'a str, value: &'a str) -> Check<'a> {
    Check::new("site", [("ip", ip), (name, value)])
}

#[test]
fn a_thousand_alternating_requests_get_the_limits_of_both_tiers() {
    let (engine, _) = site();
    let mut admitted = [0, 0];
    for number in 0..1_000 {
        let method = ["GET", "POST"][number % 2];
        let check = request("198.51.100.7", "method", method);
        admitted[number % 2] += i32::from(engine.check(&check).unwrap().allowed);
    }
    println!("10 per 1m, POST 5 per 1m and 3 per 1s: admitted {admitted:?} of [500, 500]");
    assert_eq!(admitted, [10, 3]);
}

#[test]
fn tiers_with_the_limit_or_the_span_of_the_policy_share_the_counter_of_the_key() {
    let (engine, _) = site();
    let export = request("198.51.100.7", "export", "yes");
    let plain = request("198.51.100.7", "method", "GET");
    assert_eq!(engine.check(&export).unwrap().rows[0].remaining, Some(6));
    assert_eq!(engine.check(&plain).unwrap().rows[0].remaining, Some(5), "of the same ten");
    let robot = request("198.51.100.9", "method", "GET");
    assert_eq!(engine.check(&robot).unwrap().rows[0].remaining, Some(1));
    engine.state_facts(None, "ip", "198.51.100.9", &[("kind", "person")]).unwrap();
    assert_eq!(engine.check(&robot).unwrap().rows[0].remaining, Some(8), "with the unit of before");
}

#[test]
fn a_block_of_one_tier_holds_in_all_and_a_reset_clears_the_counters_of_all() {
    let (engine, clock) = site();
    let [get, post] = ["GET", "POST"].map(|method| request("198.51.100.7", "method", method));
    for _ in 0..3 {
        assert!(engine.check(&post).unwrap().allowed);
    }
    let subject = get.subject.clone();
    let proposal = BlockProposal::by_operator(Span::from_secs(60), Some("abuse"));
    engine.block("default", "site", &post.subject, proposal).unwrap();
    assert!(!engine.check(&get).unwrap().allowed, "blocked by another method");
    engine.reset("default", "site", &subject).unwrap();
    clock.advance(Span::from_micros(1));
    assert_eq!(engine.peek(&get).unwrap().rows[0].remaining, Some(10));
    assert_eq!(engine.peek(&post).unwrap().rows[0].remaining, Some(5));
}

/// Any order of tiers: the units that a tier admitted in any of its windows fit its limits.
#[test]
fn every_admitted_request_fits_the_limits_of_its_tier() {
    let mut reached = [0; 3];
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let (engine, clock) = site();
        let mut admitted: [Vec<i64>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..400 {
            clock.advance(Span::from_micros(rng.within(0, 3) * rng.within(0, 300_000)));
            let now = engine.now().micros();
            let tier = rng.within(0, 1) as usize;
            let check = request("198.51.100.7", "method", ["GET", "POST"][tier]);
            if rng.chance(20) {
                engine.peek(&check).unwrap();
            } else if engine.check(&check).unwrap().allowed {
                admitted[tier].push(now);
            }
        }
        let most = |tier: usize, span: i64| {
            let instants = &admitted[tier];
            let within =
                |from: i64| instants.iter().filter(|at| (from..from + span).contains(*at)).count();
            instants.iter().map(|from| within(*from)).max().unwrap_or(0)
        };
        let minute = 60_000_000;
        let admitted = [most(0, minute), most(1, minute), most(1, 1_000_000)];
        for (index, limit) in [10, 5, 3].into_iter().enumerate() {
            assert!(admitted[index] <= limit, "seed {seed}: {admitted:?}");
            reached[index] = admitted[index].max(reached[index]);
        }
    }
    assert_eq!(reached, [10, 5, 3], "the histories must press against the limits");
}

/// The ticket knows the counter, even after a reload without the tier.
#[test]
fn a_settle_refunds_the_counter_of_the_ticket() {
    let text = r#"
        [policy.p]
        by     = ["ip"]
        window = "10 per 1m"
        cost   = "reported"
        reserve = 3
        tier   = [ { when = { method = "POST" }, window = "5 per 1m" } ]
    "#;
    let clock = ManualClock::at(Time::from_millis(1_767_225_600_000));
    let with_tier = Catalog::parse(text).unwrap();
    let engine = Engine::builder(with_tier.clone()).clock(clock.clone()).build();
    let [get, post] =
        ["GET", "POST"].map(|method| Check::new("p", [("ip", "198.51.100.7"), ("method", method)]));
    let ticket = engine.check(&post).unwrap().ticket.unwrap();
    engine.check(&get).unwrap();
    engine.reload(Catalog::parse(text.split("tier").next().unwrap()).unwrap());
    let mut outcome = Outcome::status(200);
    outcome.cost = Some(1);
    engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
    engine.reload(with_tier);
    assert_eq!(engine.peek(&get).unwrap().rows[0].remaining, Some(7));
    assert_eq!(engine.peek(&post).unwrap().rows[0].remaining, Some(4));
}

const PLANS: &str = r#"
    [policy.site]
    by     = ["user"]
    window = "10 per 1m"
    tier   = [
      { when = { plan = "gold" }, window = ["3 per 1s", "40 per 10m"] },
      { when = { plan = "iron" }, window = "2 per 10s" },
      { when = { plan = "zinc" }, window = "20 per 1m" },
    ]

    [policy.calls]
    by      = ["user"]
    bucket  = { size = 100, refill = "1 per 1m" }
    tier    = [ { when = { plan = "gold" }, bucket = { size = 10, refill = "1 per 1s" } } ]

    [policy.login]
    by     = ["user"]
    window = "3 per 1h"
    cost   = { "401" = 1, default = 0 }
    tier   = [ { when = { plan = "gold" }, window = "100 per 1m" } ]

    [policy.bulk]
    by    = ["user"]
    fixed = "10 per 1h"
    tier  = [
      { when = { plan = "gold" }, fixed = "3 per 1s" },
      { when = { plan = "iron" }, fixed = "20 per 1h" },
    ]

    [facts.user."ana"]
    plan = "gold"
"#;

fn on_plans() -> (Engine, ManualClock) {
    let clock = ManualClock::at(Time::from_millis(1_767_225_600_000));
    let catalog = Catalog::parse(PLANS).unwrap();
    (Engine::builder(catalog).clock(clock.clone()).build(), clock)
}

/// Facts that change in any order: a request is admitted if and only if it fits the windows of its
/// own tier, over the units of all tiers with the same spans.
#[test]
fn facts_that_change_the_tier_lose_no_units() {
    const S: i64 = 1_000_000;
    let tiers: [(&str, &[(i64, i64)]); 4] = [
        ("none", &[(10, 60 * S)]),
        ("gold", &[(3, S), (40, 600 * S)]),
        ("iron", &[(2, 10 * S)]),
        ("zinc", &[(20, 60 * S)]),
    ];
    // The tier with the span of the policy counts in the counter of the key.
    let counters = [0, 1, 2, 0];
    let mut admitted = [0; 4];
    let mut denied = [0; 4];
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let (engine, clock) = on_plans();
        let mut units: [Vec<i64>; 3] = Default::default();
        let mut tier = 1;
        for _ in 0..500 {
            clock.advance(Span::from_micros(rng.pick(&[0, 0, 1, S / 2, S, 4 * S, 20 * S])));
            let now = engine.now().micros();
            if rng.chance(10) {
                tier = rng.within(0, 3) as usize;
                engine.state_facts(None, "user", "ana", &[("plan", tiers[tier].0)]).unwrap();
            }
            let units = &mut units[counters[tier]];
            let used = |span: i64| units.iter().filter(|at| now - **at < span).count() as i64;
            let fits = tiers[tier].1.iter().all(|(limit, span)| used(*span) < *limit);
            let decision = engine.check(&Check::new("site", [("user", "ana")])).unwrap();
            assert_eq!(decision.allowed, fits, "seed {seed}, tier {tier}: {decision:?}");
            units.extend(fits.then_some(now));
            let counts = if fits { &mut admitted } else { &mut denied };
            counts[tier] += 1;
        }
    }
    println!("admitted {admitted:?}, denied {denied:?}");
    assert!(admitted.iter().chain(&denied).all(|count| *count > 50), "{admitted:?} {denied:?}");
}

/// Units that are held under a generous tier and refunded must not push out those that a strict
/// tier still counts.
#[test]
fn refunds_between_two_tiers_give_no_units() {
    let (engine, clock) = on_plans();
    let check = Check::new("login", [("user", "ana")]);
    let set_plan = |plan| engine.state_facts(None, "user", "ana", &[("plan", plan)]).unwrap();
    let settle = |status| {
        let decision = engine.check(&check).unwrap();
        if let Some(ticket) = decision.ticket {
            let outcome = Outcome::status(status);
            engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
        }
        decision.allowed
    };
    let mut failures = 0;
    for _ in 0..20 {
        // Longer than the window of the generous tier; all of it within the hour of the strict one.
        clock.advance(Span::from_secs(90));
        set_plan("none");
        failures += (0..3).filter(|_| settle(401)).count();
        set_plan("gold");
        let tickets: Vec<_> = (0..3).map(|_| engine.check(&check).unwrap().ticket).collect();
        for ticket in tickets.into_iter().flatten() {
            let outcome = Outcome::status(200);
            engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
        }
    }
    println!("3 per 1h with 20 changes of the plan: {failures} failed logins");
    assert_eq!(failures, 3);
}

#[test]
fn a_bucket_is_remembered_until_it_is_full_for_all_tiers() {
    let (engine, clock) = on_plans();
    let check = Check::new("calls", [("user", "ana")]);
    assert_eq!(engine.check(&check).unwrap().rows[0].remaining, Some(9));
    clock.advance(Span::from_secs(2));
    engine.state_facts(None, "user", "ana", &[("plan", "none")]).unwrap();
    assert_eq!(engine.peek(&check).unwrap().rows[0].remaining, Some(9), "not a full hundred");
}

#[test]
fn a_fixed_window_of_another_length_counts_apart_and_keeps_the_policys() {
    let (engine, clock) = on_plans();
    let check = Check::new("bulk", [("user", "ana")]);
    let remaining = || engine.check(&check).unwrap().rows[0].remaining;
    engine.state_facts(None, "user", "ana", &[("plan", "none")]).unwrap();
    assert_eq!(remaining(), Some(9));
    engine.state_facts(None, "user", "ana", &[("plan", "gold")]).unwrap();
    clock.advance(Span::from_secs(60));
    assert_eq!(remaining(), Some(2), "a window of one second");
    engine.state_facts(None, "user", "ana", &[("plan", "iron")]).unwrap();
    assert_eq!(remaining(), Some(18), "with the unit of the hour");
    engine.state_facts(None, "user", "ana", &[("plan", "none")]).unwrap();
    assert_eq!(remaining(), Some(7), "the window of the hour is still open");
}
