//! Section 8: the expiry of state, made visible by terms that change between two calls.

use super::*;
use crate::oracle::answer::Reason;
use crate::oracle::catalog::{Length, Mode};

/// An oracle with one policy.
fn only(algorithm: Algorithm) -> Oracle {
    oracle(vec![Policy::new("p", algorithm)])
}

/// Gives the policy other terms, by a reload.
fn switch(oracle: &mut Oracle, algorithm: Algorithm) {
    let policies = vec![Policy::new("p", algorithm)];
    oracle.reload(Catalog { policies, ..oracle.catalog().clone() });
}

fn window(span: Micros) -> Algorithm {
    Algorithm::Window(vec![(3, span)])
}

/// A whole second, so that expiry, at whole seconds, is easy to compute.
const SECOND: Micros = 1_700_000_000 * S;

#[test]
fn a_full_bucket_is_untouched_from_the_next_whole_second() {
    let mut oracle = only(bucket(2, 1, S));
    assert!(oracle.go(&request(1), SECOND + 400 * MS).allowed);
    switch(&mut oracle, bucket(100, 1, HOUR));
    // Full under its own terms at 1.4 s, so it expires at 2 s.
    assert_eq!(oracle.balance("p", &ip(), SECOND + 2 * S - 1), Some(1));
    assert_eq!(oracle.balance("p", &ip(), SECOND + 2 * S), Some(100));
}

#[test]
fn a_check_under_a_shorter_span_forgets_what_it_no_longer_counts_and_a_peek_does_not() {
    let mut oracle = only(window(HOUR));
    assert!(oracle.go(&request(2), SECOND).allowed);
    let peeked = |oracle: &mut Oracle, span| {
        switch(oracle, window(span));
        oracle.peek(&request(1), SECOND + S).expect("well formed").remaining
    };
    assert_eq!(peeked(&mut oracle, HOUR), Some(1));
    assert_eq!(peeked(&mut oracle, S), Some(3));
    assert_eq!(peeked(&mut oracle, HOUR), Some(1));
    switch(&mut oracle, window(S));
    assert!(oracle.go(&request(0), SECOND + S).allowed);
    assert_eq!(peeked(&mut oracle, HOUR), Some(3));
}

#[test]
fn a_window_is_forgotten_under_the_span_of_its_last_write() {
    let mut oracle = only(window(S));
    assert!(oracle.go(&request(2), SECOND + 400 * MS).allowed);
    switch(&mut oracle, window(MIN));
    assert_eq!(oracle.go(&request(0), SECOND + 2 * S - 1).remaining, Some(1));
    assert_eq!(oracle.go(&request(0), SECOND + 2 * S).remaining, Some(3));
}

#[test]
fn another_number_of_windows_keeps_the_units() {
    let mut oracle = only(window(HOUR));
    assert!(oracle.go(&request(2), T).allowed);
    switch(&mut oracle, Algorithm::Window(vec![(3, HOUR), (2, MIN)]));
    assert!(!oracle.go(&request(1), T).allowed);
    assert!(oracle.go(&request(1), T + MIN).allowed);
}

#[test]
fn a_fixed_window_is_forgotten_under_the_span_of_its_last_write() {
    let mut oracle = only(fixed(2, S));
    assert!(oracle.go(&request(2), SECOND + 400 * MS).allowed);
    switch(&mut oracle, fixed(2, HOUR));
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
