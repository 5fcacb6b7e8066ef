//! The properties P1 to P16 that users may rely on, tested on the engine with random histories.
//!
//! The comparison with the oracle checks every figure; these tests check promises that need no
//! model. P7 (floods) is tested with the memory store; P12 and P13 belong to locks and tenants.

use catraca::{BlockProposal, Catalog, Check, Decision, Engine, ManualClock, Outcome, Settle};
use catraca::{Span, Subject, Time};
use catraca_core::policy::Mode;
use catraca_testkit::generate::Rng;

const START: i64 = 1_700_000_000_000_000;
const SEED: u64 = 77;

/// An engine whose clock the test moves.
struct Bench {
    engine: Engine,
    clock: ManualClock,
}

impl Bench {
    fn new(catalog: &str) -> Self {
        let clock = ManualClock::at(Time::from_micros(START));
        let catalog = Catalog::parse(catalog).expect("a good catalog");
        Self { engine: Engine::builder(catalog).clock(clock.clone()).build(), clock }
    }

    fn now(&self) -> i64 {
        use catraca::Clock;
        self.clock.now().micros()
    }

    fn wait(&self, micros: i64) {
        self.clock.advance(Span::from_micros(micros));
    }

    fn ask(&self, cost: i64) -> Check<'static> {
        Check::new("p", [("ip", "198.51.100.7")]).cost(cost)
    }

    fn check(&self, cost: i64) -> Decision {
        self.engine.check(&self.ask(cost)).expect("a good call")
    }

    fn peek(&self, cost: i64) -> Decision {
        self.engine.peek(&self.ask(cost)).expect("a good call")
    }

    /// Checks random costs at random instants; returns the instants and costs of the admitted ones.
    fn history(&self, rng: &mut Rng, step: i64, cost: i64, count: usize) -> Vec<(i64, i64)> {
        let mut admitted = Vec::new();
        for _ in 0..count {
            self.wait(below(rng, step));
            let units = 1 + below(rng, cost);
            if self.check(units).allowed {
                admitted.push((self.now(), units));
            }
        }
        admitted
    }
}

fn below(rng: &mut Rng, bound: i64) -> i64 {
    (rng.next_u64() % bound.max(1) as u64) as i64
}

fn policy(rest: &str) -> String {
    format!("[policy.p]\nby = [\"ip\"]\n{rest}\n")
}

/// The largest sum of units in an interval of `span` that starts at an admission, end excluded.
fn most_in(admitted: &[(i64, i64)], span: i64) -> i64 {
    let sum = |from: i64| -> i64 {
        let inside = admitted.iter().filter(|(at, _)| (from..from + span).contains(at));
        inside.map(|(_, units)| units).sum()
    };
    admitted.iter().map(|(at, _)| sum(*at)).max().unwrap_or(0)
}

/// covers: 001-04
#[test]
fn p1_a_bucket_admits_at_most_its_size_and_what_it_gained() {
    for (size, tokens, period) in [(5, 1, 1_000_000), (10, 7, 3_000_000), (3, 40, 86_400_000_000)] {
        let seconds = period / 1_000_000;
        let text = format!("bucket = {{ size = {size}, refill = \"{tokens} per {seconds}s\" }}");
        let bench = Bench::new(&policy(&text));
        let admitted = bench.history(&mut Rng::new(SEED), period / 3, 2, 400);
        assert!(!admitted.is_empty());
        for (from, (start, _)) in admitted.iter().enumerate() {
            let mut taken = 0;
            for (at, units) in &admitted[from..] {
                taken += units;
                let gained = i128::from(at - start) * i128::from(tokens);
                let bound = i128::from(size) * i128::from(period) + gained;
                assert!(i128::from(taken) * i128::from(period) <= bound);
            }
        }
    }
}

/// covers: 002-04, 002-03, B-68
#[test]
fn p2_no_window_ever_holds_more_than_its_limit() {
    for (limit, seconds) in [(1, 1), (5, 2), (30, 60)] {
        let bench = Bench::new(&policy(&format!("window = \"{limit} per {seconds}s\"")));
        let span = seconds * 1_000_000;
        let admitted = bench.history(&mut Rng::new(SEED), 2 * span / limit, 2, 600);
        let most = most_in(&admitted, span);
        assert!(most <= limit, "{most} of {limit}");
        assert!(most >= limit - 1, "the history must press against the limit");
    }
}

#[test]
fn p3_a_fixed_window_may_double_and_never_more() {
    let bench = Bench::new(&policy("fixed = \"10 per 1s\""));
    let admitted = bench.history(&mut Rng::new(SEED), 120_000, 2, 2_000);
    let most = most_in(&admitted, 1_000_000);
    assert!(most <= 20 && most > 10, "{most}");
}

/// covers: B-41, 001-07, 002-16
#[test]
fn p4_the_announced_wait_is_enough_and_a_microsecond_less_is_not() {
    let limits = [
        "bucket = { size = 3, refill = \"7 per 1s\" }",
        "window = \"3 per 1s\"",
        "window = [\"5 per 2s\", \"2 per 100ms\"]",
        "window = \"3 per 1s\"\nblock = \"700ms\"",
        "window = \"2 per 1s\"\n\
         block = { first = \"1s\", factor = 2, max = \"9s\", forget = \"1m\" }",
        "fixed = \"3 per 1s\"",
        "inflight = 2\nhold = \"3s\"",
    ];
    for limit in limits {
        let bench = Bench::new(&policy(limit));
        let mut rng = Rng::new(SEED);
        let mut denied = 0;
        for _ in 0..400 {
            bench.wait(below(&mut rng, 200_000));
            let cost = 1 + below(&mut rng, 2);
            let Some(wait) = bench.check(cost).retry_after else { continue };
            denied += 1;
            bench.wait(wait.micros() - 1);
            assert!(!bench.peek(cost).allowed, "{limit}: a microsecond early");
            bench.wait(1);
            assert!(bench.check(cost).allowed, "{limit}: at the announced instant");
        }
        assert!(denied > 20, "{limit}: {denied} denials");
    }
}

/// covers: 002-13
#[test]
fn p5_denied_calls_change_nothing() {
    for limit in ["bucket = { size = 3, refill = \"1 per 1s\" }", "window = \"3 per 1s\""] {
        let bench = Bench::new(&policy(limit));
        let mut rng = Rng::new(SEED);
        for _ in 0..300 {
            bench.wait(below(&mut rng, 300_000));
            let before = bench.peek(1);
            if !bench.check(3).allowed {
                assert_eq!(bench.peek(1), before, "{limit}");
            }
        }
    }
}

#[test]
fn p6_waiting_never_makes_it_worse() {
    let bench = Bench::new(&policy("window = [\"4 per 2s\", \"2 per 300ms\"]\nblock = \"1s\""));
    let mut rng = Rng::new(SEED);
    for _ in 0..200 {
        bench.history(&mut rng, 100_000, 2, 4);
        let mut free = bench.peek(1).allowed;
        for _ in 0..8 {
            bench.wait(below(&mut rng, 300_000));
            let later = bench.peek(1).allowed;
            assert!(later || !free, "free, and after a wait not");
            free = later;
        }
    }
}

/// covers: B-38
#[test]
fn p8_a_block_never_ends_earlier_unless_an_operator_says_so() {
    let bench = Bench::new(&policy("window = \"2 per 1s\"\nblock = \"2s\""));
    let mut rng = Rng::new(SEED);
    let mut until = None;
    for _ in 0..2_000 {
        bench.wait(below(&mut rng, 400_000));
        if rng.next_u64().is_multiple_of(5) {
            let span = Span::from_micros(1 + below(&mut rng, 5_000_000));
            let subject = Subject::from([("ip", "198.51.100.7")]);
            let proposal = BlockProposal::by_operator(span, None);
            bench.engine.block("default", "p", &subject, proposal).expect("a good call");
        }
        let now = bench.check(1).blocked_until;
        if let Some(earlier) = until.filter(|until| *until > Time::from_micros(bench.now())) {
            assert!(now >= Some(earlier), "{now:?} after {earlier:?}");
        }
        until = now;
    }
}

/// covers: X-03, 001-24, B-24
#[test]
fn p9_what_was_paid_is_what_is_missing_and_settling_twice_is_settling_once() {
    let text = "bucket = { size = 50, refill = \"1 per 24h\" }\ndebt = true\n\
                cost = { \"200\" = 1, \"404\" = 20, \"5xx\" = 0, default = 3 }";
    let bench = Bench::new(&policy(text));
    let mut rng = Rng::new(SEED);
    let mut paid = 0;
    let subject = Subject::from([("ip", "198.51.100.7")]);
    for _ in 0..40 {
        let check = Check::new("p", [("ip", "198.51.100.7")]);
        let decision = bench.engine.check(&check).expect("a good call");
        let Some(ticket) = decision.ticket else { break };
        let outcome = Outcome::status([200, 404, 500, 302][below(&mut rng, 4) as usize]);
        let first = bench.engine.settle(&Settle::ticket(&ticket, &outcome)).expect("settled");
        let other = Outcome::status(404);
        let again = bench.engine.settle(&Settle::ticket(&ticket, &other)).expect("settled");
        assert_eq!(first.rows, again.rows);
        paid += first.rows[0].charged;
        let states = bench.engine.buckets("default", &subject).expect("a good call");
        assert_eq!(states[0].balance, 50 - paid);
    }
    assert!(paid > 50, "the history must reach debt");
}

/// covers: X-04, B-29
#[test]
fn p10_in_flight_checks_overshoot_by_no_more_than_they_may() {
    for (reserve, admitted_max) in [(1, 5), (20, 1)] {
        let text = format!(
            "bucket = {{ size = 20, refill = \"1 per 24h\" }}\ndebt = true\nreserve = {reserve}\n\
             cost = {{ \"404\" = 20, default = 1 }}"
        );
        let bench = Bench::new(&policy(&text));
        let check = Check::new("p", [("ip", "198.51.100.7")]);
        let asked: Vec<_> = (0..admitted_max).map(|_| bench.engine.check(&check)).collect();
        let tickets: Vec<_> = asked.into_iter().filter_map(|one| one.ok()?.ticket).collect();
        for ticket in &tickets {
            let outcome = Outcome::status(404);
            bench.engine.settle(&Settle::ticket(ticket, &outcome)).expect("settled");
        }
        let subject = Subject::from([("ip", "198.51.100.7")]);
        let balance = bench.engine.buckets("default", &subject).expect("a good call")[0].balance;
        let overshoot = tickets.len() as i64 * (20 - reserve);
        assert!(balance >= -overshoot, "{balance} with {} in flight", tickets.len());
        assert_eq!(balance, 20 - 20 * tickets.len() as i64);
    }
}

/// covers: X-02, B-60
#[test]
fn p11_a_denial_by_one_policy_leaves_the_others_untouched() {
    let text = "[policy.wide]\nby = [\"ip\"]\nwindow = \"100 per 1m\"\n\
                [policy.full]\nby = [\"ip\"]\nbucket = { size = 100, refill = \"1 per 24h\" }\n\
                [policy.tight]\nby = [\"ip\"]\nfixed = \"3 per 1m\"\n\
                [gate.p]\npolicies = [\"wide\", \"full\", \"tight\"]\n";
    let bench = Bench::new(text);
    for round in 0..50 {
        let decision = bench.check(1);
        let charged: Vec<i64> = decision.rows.iter().map(|row| row.charged).collect();
        assert_eq!(charged, if round < 3 { [1, 1, 1] } else { [0, 0, 0] });
        let left: Vec<_> = decision.rows.iter().map(|row| row.remaining).collect();
        let used = (round + 1).min(3);
        assert_eq!(left, [Some(100 - used), Some(100 - used), Some(3 - used)]);
    }
}

///
#[test]
fn p15_a_shadow_policy_changes_no_verdict_and_shows_what_it_would_have_done() {
    let text = |mode: &str| {
        format!(
            "[policy.real]\nby = [\"ip\"]\nwindow = \"8 per 1s\"\n\
             [policy.tried]\nby = [\"ip\"]\nwindow = \"3 per 1s\"\nmode = \"{mode}\"\n\
             [gate.p]\npolicies = [\"real\", \"tried\"]\n"
        )
    };
    let shadow = Bench::new(&text("shadow"));
    let off = Bench::new(&text("off"));
    let mut rng = Rng::new(SEED);
    let mut would_deny = 0;
    for _ in 0..500 {
        let step = below(&mut rng, 200_000);
        shadow.wait(step);
        off.wait(step);
        let seen = shadow.check(1);
        let plain = off.check(1);
        assert_eq!(seen.allowed, plain.allowed);
        assert_eq!(seen.rows[0].remaining, plain.rows[0].remaining);
        assert_eq!(seen.rows[1].mode, Mode::Shadow);
        would_deny += i64::from(!seen.rows[1].allowed);
    }
    assert!(would_deny > 50, "{would_deny}");
}

///
#[test]
fn p16_reloading_the_same_catalog_changes_nothing() {
    let text = policy("window = \"5 per 1s\"\nblock = \"1s\"");
    let steady = Bench::new(&text);
    let reloaded = Bench::new(&text);
    let mut rng = Rng::new(SEED);
    for _ in 0..300 {
        let step = below(&mut rng, 250_000);
        steady.wait(step);
        reloaded.wait(step);
        reloaded.engine.reload(Catalog::parse(&text).expect("a good catalog"));
        assert_eq!(steady.check(1), reloaded.check(1));
    }
}
