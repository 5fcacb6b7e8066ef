//! Token buckets: exact refill, debt, changed terms, and the figures of the DICT anti-scan
//! policies.

use super::*;
use crate::oracle::answer::Reason;

fn one(algorithm: Algorithm) -> Oracle {
    oracle(vec![Policy::new("b", algorithm)])
}

/// PF: 100 tokens, 2 per minute, 404 costs 20, debt.
fn antiscan() -> Oracle {
    let mut policy = Policy::new("user", bucket(100, 2, MIN));
    policy.terms.cost = table(&[("200", 1), ("404", 20), ("default", 0)]);
    policy.debt = true;
    oracle(vec![policy])
}

#[test]
fn a_burst_then_the_rate() {
    let mut oracle = one(bucket(5, 5, S));
    assert_eq!(oracle.admitted(6, T), 5);
    assert_eq!(oracle.admitted(6, T + 2 * S), 5);
}

#[test]
fn remaining_counts_down_and_starts_again() {
    let mut oracle = one(bucket(4, 1, S));
    let left: Vec<_> = (0..5).map(|_| oracle.go(&plain(), T).remaining).collect();
    assert_eq!(left, [Some(3), Some(2), Some(1), Some(0), Some(0)]);
    assert_eq!(oracle.go(&plain(), T + HOUR).remaining, Some(3));
}

#[test]
fn no_part_of_a_token_is_lost() {
    let mut oracle = one(bucket(10, 10, 100));
    assert_eq!(oracle.admitted(10, T), 10);
    assert_eq!(oracle.admitted(10, T + 97), 9);
    assert_eq!(oracle.admitted(2, T + 100), 1);
}

#[test]
fn the_wait_is_exact_from_peek_and_check_alike() {
    let mut oracle = one(bucket(1, 1, S));
    assert!(oracle.passes(T));
    let now = T + 200 * MS;
    assert_eq!(oracle.peek(&plain(), now).expect("well formed").retry_ms, Some(800));
    assert_eq!(oracle.go(&plain(), now).retry_ms, Some(800));
    assert!(!oracle.passes(T + S - 1));
    assert!(oracle.passes(T + S));
}

#[test]
fn a_partial_bucket_says_how_long_and_never_for_too_much() {
    let mut oracle = one(bucket(100, 1, S));
    assert!(oracle.go(&request(30), T).allowed);
    let denied = oracle.go(&request(80), T);
    assert_eq!((denied.reason, denied.remaining), (Reason::OverLimit, Some(70)));
    assert_eq!(denied.retry_ms, Some(10_000));
    let never = oracle.go(&request(120), T);
    assert_eq!((never.reason, never.retry_ms), (Reason::TooCostly, None));
    assert_eq!(never.reset_ms, Some(30_000));
    assert!(oracle.go(&request(70), T).allowed);
}

#[test]
fn forty_a_day_and_twenty_five_thousand_a_minute_are_exact() {
    let mut daily = one(bucket(200, 40, 24 * HOUR));
    assert!(daily.go(&request(200), T).allowed);
    assert_eq!(daily.go(&plain(), T).retry_ms, Some(2_160_000));
    assert!(!daily.passes(T + 2_160 * S - 1));
    assert!(daily.passes(T + 2_160 * S));
    let mut fast = one(bucket(50_000, 25_000, MIN));
    assert!(fast.go(&request(50_000), T).allowed);
    // One token takes 2,400 microseconds.
    assert!(!fast.passes(T + 2_399));
    assert!(fast.passes(T + 2_400));
}

#[test]
fn five_tokens_and_a_404_leave_a_debt_of_fifteen() {
    let mut oracle = antiscan();
    assert!(oracle.go(&request(95), T).allowed);
    assert_eq!(oracle.settle_last(&Outcome { cost: None, ..status(200) }, T), [1]);
    // The settle made the 95 held a 1; take the other 94 for good.
    assert_eq!(oracle.balance("user", &ip(), T), Some(99));
    assert!(oracle.go(&request(94), T).allowed);
    assert_eq!(oracle.balance("user", &ip(), T), Some(5));
    let check = oracle.go(&plain(), T);
    assert_eq!((check.allowed, check.remaining), (true, Some(4)));
    assert_eq!(oracle.settle_last(&status(404), T), [20]);
    assert_eq!(oracle.balance("user", &ip(), T), Some(-15));
    let denied = oracle.go(&plain(), T);
    assert_eq!((denied.remaining, denied.retry_ms), (Some(0), Some(480_000)));
    assert!(!oracle.passes(T + 480 * S - 1));
    assert!(oracle.passes(T + 480 * S));
}

#[test]
fn category_h_at_one_token_waits_ninety_seconds_after_a_404() {
    let mut policy = Policy::new("psp", bucket(50, 2, MIN));
    policy.terms.cost = table(&[("200", 1), ("404", 3), ("default", 0)]);
    policy.debt = true;
    let mut oracle = oracle(vec![policy]);
    assert!(oracle.go(&request(49), T).allowed);
    assert!(oracle.go(&plain(), T).allowed);
    oracle.settle_last(&status(404), T);
    assert_eq!(oracle.balance("psp", &ip(), T), Some(-2));
    assert_eq!(oracle.go(&plain(), T).retry_ms, Some(90_000));
}

#[test]
fn at_nought_the_next_token_of_two_a_minute_takes_thirty_seconds() {
    let mut oracle = antiscan();
    assert!(oracle.go(&request(100), T).allowed);
    assert_eq!(oracle.go(&plain(), T).retry_ms, Some(30_000));
}

#[test]
fn cost_nothing_needs_a_token_and_takes_none() {
    let mut oracle = one(bucket(1, 1, S));
    assert_eq!(oracle.go(&request(0), T).remaining, Some(1));
    assert!(oracle.passes(T));
    assert_eq!(oracle.go(&request(0), T).reason, Reason::OverLimit);
}

#[test]
fn changed_terms_lose_the_part_under_way_and_count_time_anew() {
    let slow = || bucket(10, 1, 10 * S);
    let fast = || bucket(20, 1, S);
    let mut oracle = oracle(vec![Policy::new("b", slow())]);
    let switch = |oracle: &mut Oracle, algorithm| {
        let policies = vec![Policy::new("b", algorithm)];
        oracle.reload(Catalog { policies, ..oracle.catalog().clone() });
    };
    assert!(oracle.go(&request(10), T).allowed);
    // 15 s under the slow terms give one token and a half; the whole one is taken.
    assert!(oracle.go(&plain(), T + 15 * S).allowed);
    assert_eq!(oracle.balance("b", &ip(), T + 20 * S), Some(1));
    // The same state under the fast terms: the half is lost, five seconds give five tokens.
    switch(&mut oracle, fast());
    assert_eq!(oracle.balance("b", &ip(), T + 20 * S), Some(5));
    assert_eq!(oracle.balance("b", &ip(), T + 60 * S), Some(20));
}

#[test]
fn the_same_rate_in_other_words_is_no_change() {
    let mut oracle = one(bucket(10, 2, MIN));
    assert!(oracle.go(&request(10), T).allowed);
    let reload = |oracle: &mut Oracle, algorithm| {
        let policies = vec![Policy::new("b", algorithm)];
        oracle.reload(Catalog { policies, ..oracle.catalog().clone() });
    };
    assert!(oracle.passes(T + 45 * S));
    reload(&mut oracle, bucket(10, 1, 30 * S));
    assert_eq!(oracle.balance("b", &ip(), T + 60 * S), Some(1));
    reload(&mut oracle, bucket(10, 4, MIN));
    assert_eq!(oracle.balance("b", &ip(), T + 59 * S), Some(0));
    assert_eq!(oracle.balance("b", &ip(), T + 60 * S), Some(1));
}

#[test]
fn a_smaller_size_clamps_and_keeps_debt() {
    let mut oracle = antiscan();
    let small = |oracle: &mut Oracle| {
        let mut policy = oracle.catalog().policies[0].clone();
        policy.terms.algorithm = bucket(10, 2, MIN);
        oracle.reload(Catalog { policies: vec![policy], ..oracle.catalog().clone() });
    };
    assert!(oracle.passes(T));
    small(&mut oracle);
    assert_eq!(oracle.balance("user", &ip(), T), Some(10));
    let mut owing = antiscan();
    assert!(owing.go(&request(99), T).allowed);
    assert!(owing.passes(T));
    owing.settle_last(&status(404), T);
    small(&mut owing);
    assert_eq!(owing.balance("user", &ip(), T), Some(-19));
}

#[test]
fn a_margin_scales_the_size_only() {
    let mut policy = Policy::new("b", bucket(15, 60, MIN));
    policy.margin = Some(90);
    let mut oracle = oracle(vec![policy]);
    let first = oracle.go(&request(13), T);
    assert_eq!((first.limit, first.remaining), (Some(13), Some(0)));
    assert_eq!(first.reset_ms, Some(13_000));
}

#[test]
fn a_level_seen_upstream_wins_when_lower_or_newer() {
    let mut oracle = one(bucket(100, 1, S));
    oracle.reconcile("b", &ip(), 40, T, T + 5 * S).expect("in the past");
    assert_eq!(oracle.balance("b", &ip(), T + 5 * S), Some(45));
    // The bucket was written five seconds after the observation: a higher level is outdated and
    // ignored, a lower one still applies.
    oracle.reconcile("b", &ip(), 90, T, T + 6 * S).expect("in the past");
    assert_eq!(oracle.balance("b", &ip(), T + 6 * S), Some(46));
    oracle.reconcile("b", &ip(), 30, T, T + 6 * S).expect("in the past");
    assert_eq!(oracle.balance("b", &ip(), T + 6 * S), Some(36));
    oracle.reconcile("b", &ip(), 90, T + 6 * S, T + 7 * S).expect("in the past");
    assert_eq!(oracle.balance("b", &ip(), T + 7 * S), Some(91));
    assert!(oracle.reconcile("b", &ip(), 1, T + 9 * S, T + 8 * S).is_err());
}
