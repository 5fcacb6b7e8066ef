//! Section 8: the expiry of state, made visible by terms that change between two calls.

use super::*;
use crate::oracle::answer::Reason;
use crate::oracle::catalog::{Length, Mode, Tier};

/// A policy with other terms for the plan `pro`.
fn tiered(base: Algorithm, pro: Algorithm) -> Policy {
    let mut policy = Policy::new("p", base);
    policy.tiers = vec![Tier {
        attribute: "plan".to_owned(),
        value: "pro".to_owned(),
        algorithm: Some(pro),
        block: None,
        cost: None,
        credits: None,
    }];
    policy
}

fn pro(cost: i64) -> CheckRequest {
    CheckRequest { subject: subject_of(&[("ip", "192.0.2.1"), ("plan", "pro")]), ..request(cost) }
}

/// A whole second, so that expiry, at whole seconds, is easy to compute.
const SECOND: Micros = 1_700_000_000 * S;

#[test]
fn a_full_bucket_is_untouched_from_the_next_whole_second() {
    let mut oracle = oracle(vec![tiered(bucket(100, 1, HOUR), bucket(2, 1, S))]);
    let at = SECOND + 400 * MS;
    assert!(oracle.go(&pro(1), at).allowed);
    // Full under its own terms at 1.4 s, so it expires at 2 s.
    assert_eq!(oracle.balance("p", &ip(), SECOND + 2 * S - 1), Some(1));
    assert_eq!(oracle.balance("p", &ip(), SECOND + 2 * S), Some(100));
}

#[test]
fn a_touch_under_a_shorter_span_forgets_what_it_no_longer_counts() {
    let hour = Algorithm::Window(vec![(3, HOUR)]);
    let mut oracle = oracle(vec![tiered(hour, Algorithm::Window(vec![(3, S)]))]);
    assert!(oracle.go(&request(2), SECOND).allowed);
    let peeked = |oracle: &mut Oracle, request: &CheckRequest, now| {
        oracle.peek(request, now).expect("well formed").remaining
    };
    assert_eq!(peeked(&mut oracle, &request(1), SECOND + S), Some(1));
    assert_eq!(peeked(&mut oracle, &pro(1), SECOND + S), Some(3));
    assert_eq!(peeked(&mut oracle, &request(1), SECOND + S), Some(3));
}

#[test]
fn a_window_is_forgotten_under_the_span_of_its_last_write() {
    let minute = Algorithm::Window(vec![(3, MIN)]);
    let mut oracle = oracle(vec![tiered(minute, Algorithm::Window(vec![(3, S)]))]);
    assert!(oracle.go(&pro(2), SECOND + 400 * MS).allowed);
    assert_eq!(oracle.go(&request(0), SECOND + 2 * S - 1).remaining, Some(1));
    assert_eq!(oracle.go(&request(0), SECOND + 2 * S).remaining, Some(3));
}

#[test]
fn another_number_of_windows_starts_empty() {
    let mut oracle = oracle(vec![Policy::new("p", Algorithm::Window(vec![(3, HOUR)]))]);
    assert!(oracle.go(&request(3), T).allowed);
    let policies = vec![Policy::new("p", Algorithm::Window(vec![(3, HOUR), (2, MIN)]))];
    oracle.reload(Catalog { policies, ..oracle.catalog().clone() });
    assert!(oracle.go(&request(2), T).allowed);
}

#[test]
fn a_fixed_window_is_forgotten_under_the_span_of_its_last_write() {
    let mut oracle = oracle(vec![tiered(fixed(2, HOUR), fixed(2, S))]);
    assert!(oracle.go(&pro(2), SECOND + 400 * MS).allowed);
    assert!(!oracle.go(&request(1), SECOND + 2 * S - 1).allowed);
    assert!(oracle.go(&request(1), SECOND + 2 * S).allowed);
}

#[test]
fn a_refund_into_a_full_bucket_gives_nothing_and_writes_nothing() {
    let mut policy = Policy::new("p", bucket(5, 1, S));
    policy.terms.cost = table(&[("500", 0)]);
    let mut oracle = oracle(vec![policy]);
    assert!(oracle.go(&request(2), T).allowed);
    assert_eq!(oracle.settle_last(&status(500), T + S), [1]);
    assert!(oracle.go(&request(2), T + S).allowed);
    assert_eq!(oracle.settle_last(&status(500), T + 10 * S), [2]);
}

#[test]
fn a_debt_ends_where_the_arithmetic_ends() {
    let mut policy = Policy::new("p", bucket(104_249, 7, 24 * HOUR));
    policy.terms.cost = table(&[("404", 104_249)]);
    policy.debt = true;
    let mut oracle = oracle(vec![policy]);
    assert!(oracle.go(&request(3), T).allowed);
    // 104,249 times the reduced period is the last product within 2^53.
    assert_eq!(oracle.settle_last(&status(404), T), [104_249]);
    assert_eq!(oracle.balance("p", &ip(), T), Some(0));
}

#[test]
fn what_did_not_enforce_at_the_check_starts_shadow_blocks_only() {
    let mut policy = Policy::new("p", bucket(1, 1, HOUR));
    policy.terms.cost = table(&[("404", 9)]);
    policy.terms.block = Some(Length::Fixed(MIN));
    policy.mode = Mode::Shadow;
    let mut oracle = oracle(vec![policy.clone()]);
    assert!(oracle.passes(T));
    let mode = |mode| Policy { mode, ..policy.clone() };
    oracle.reload(Catalog { policies: vec![mode(Mode::Enforce)], ..oracle.catalog().clone() });
    oracle.settle_last(&status(404), T);
    // A shadow block does not apply to an enforcing row: over the limit, not blocked.
    assert_eq!(oracle.go(&plain(), T + S).reason, Reason::OverLimit);
}
