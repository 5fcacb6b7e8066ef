//! The CPU time of settles whose ban rules read a large body.
//!
//! Prints the times; asserts only ratios that hold on any machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use catraca::{Catalog, Check, Engine, Event, Outcome, Settle};
use rustix::time::{ClockId, clock_gettime};

const RULES: usize = 16;
const FOUR: [&str; 4] = ["a", "b", "c", "d"];
const ONE_MIB: &str = "[settle]\nbody_bytes_max = 1048576";

/// Sixteen rules: four patterns, four loops, four scans and four fields.
fn catalog(settings: &str, identities: &[&str]) -> Catalog {
    let rules: Vec<String> = (0..RULES).map(rule).collect();
    let text = format!(
        "{settings}\n[policy.api]\neach = {identities:?}\nban = [\n{}\n]\n",
        rules.join(",\n")
    );
    Catalog::parse(&text).unwrap()
}

fn rule(at: usize) -> String {
    let when = match at % 4 {
        0 => format!("body.text.matches('^[a-w ]*{at}[xyz]+$')"),
        1 => format!("body.items.exists(x, x.code == {at} && x.kind == 'n')"),
        2 => format!("body.text.contains('needle {at}')"),
        _ => format!("body.reject_id == {at}"),
    };
    format!("{{ when = \"{when}\", for = \"10m\" }}")
}

/// A JSON body of about this many bytes: half text, half list.
fn body(bytes: usize) -> serde_json::Value {
    let items: Vec<_> = (0..bytes / 2 / 32)
        .map(|at| serde_json::json!({"code": 1_000_000 + at, "kind": "rejected"}))
        .collect();
    let text = "lorem ipsum dolor ".repeat(bytes / 2 / 18);
    serde_json::json!({"items": items, "text": text, "reject_id": 0})
}

fn settle_ms(engine: &Engine, outcome: &Outcome, rounds: u32) -> f64 {
    let subject = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    let mut spent = 0.0;
    for _ in 0..rounds {
        let ticket = engine.check(&Check::new("api", subject)).unwrap().ticket.unwrap();
        let call = Settle::ticket(&ticket, outcome);
        let start = cpu_ms();
        engine.settle(&call).unwrap();
        spent += cpu_ms() - start;
    }
    spent / f64::from(rounds)
}

/// The CPU time of this thread, which does not depend on other work of the machine.
fn cpu_ms() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 * 1e3 + spent.tv_nsec as f64 / 1e6
}

#[test]
fn identities_do_not_multiply_the_cost_of_rules() {
    for (bytes, rounds) in [(1_000, 50), (60_000, 20), (1_000_000, 5)] {
        let outcome = Outcome { status: Some(200), body: body(bytes), ..Outcome::default() };
        let ms = |identities: &[&str]| {
            let engine = Engine::builder(catalog(ONE_MIB, identities)).build();
            settle_ms(&engine, &outcome, rounds)
        };
        let one = ms(&FOUR[..1]);
        let four = ms(&FOUR);
        let bytes = outcome.body.to_string().len();
        println!("{bytes} bytes, {RULES} rules: {one:.3} ms, with four identities {four:.3} ms");
        // It would be four times as much if the rules ran once per row.
        assert!(bytes < 10_000 || four < 2.5 * one, "{one} ms and {four} ms");
    }
}

#[test]
fn a_rule_is_judged_once_for_all_identities_of_a_check() {
    let failed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&failed);
    let engine = Engine::builder(catalog("", &FOUR)).listener(move |event| {
        if let Event::ConditionsFailed { policy, count, .. } = event {
            assert_eq!(&**policy, "api");
            counter.fetch_add(*count, Ordering::Relaxed);
        }
    });
    let outcome = Outcome { status: Some(200), ..Outcome::default() };
    settle_ms(&engine.build(), &outcome, 1);
    assert_eq!(failed.load(Ordering::Relaxed), RULES as u32);
}

#[test]
fn a_body_over_the_maximum_is_not_seen_and_that_is_told() {
    let engine = Engine::builder(catalog("[settle]\nbody_bytes_max = 999", &FOUR)).build();
    let subject = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    for (bytes, truncated) in [(999, false), (1_000, true)] {
        let body = serde_json::json!({"reject_id": 7, "fill": "x".repeat(bytes - 25)});
        assert_eq!(body.to_string().len(), bytes);
        let outcome = Outcome { status: Some(200), body, ..Outcome::default() };
        let mut check = Check::new("api", subject);
        let who = if truncated { "over" } else { "within" };
        check.subject = subject.map(|(name, _)| (name, who)).into_iter().collect();
        let ticket = engine.check(&check).unwrap().ticket.unwrap();
        let settled = engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
        assert_eq!(settled.body_truncated, truncated);
        let banned = settled.rows.iter().filter(|row| row.blocked_by.is_some());
        assert_eq!(banned.count(), if truncated { 0 } else { 4 });
        // A repeated settle returns the first result.
        let again = engine.settle(&Settle::ticket(&ticket, &outcome)).unwrap();
        assert_eq!(again.body_truncated, truncated);
    }
}
