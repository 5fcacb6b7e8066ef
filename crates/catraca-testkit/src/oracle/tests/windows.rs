//! Sliding windows, fixed windows and in-flight counts, to the microsecond.

use super::*;
use crate::oracle::answer::Reason;

fn one(algorithm: Algorithm) -> Oracle {
    oracle(vec![Policy::new("w", algorithm)])
}

fn sliding(limit: i64, span: Micros) -> Oracle {
    one(Algorithm::Window(vec![(limit, span)]))
}

fn counting_denied(algorithm: Algorithm) -> Oracle {
    let mut policy = Policy::new("w", algorithm);
    policy.count_denied = true;
    oracle(vec![policy])
}

#[test]
fn early_units_age_out_before_late_ones() {
    let mut oracle = sliding(10, 2 * S);
    assert_eq!(oracle.admitted(5, T), 5);
    assert_eq!(oracle.admitted(6, T + 1_800 * MS), 5);
    assert_eq!(oracle.admitted(6, T + 2 * S), 5);
}

#[test]
fn two_a_minute_frees_the_first_after_fifty_eight_seconds() {
    let mut oracle = sliding(2, MIN);
    assert!(oracle.passes(T) && oracle.passes(T + S));
    let denied = oracle.go(&plain(), T + 2 * S);
    assert_eq!((denied.retry_ms, denied.reset_ms), (Some(58_000), Some(59_000)));
}

#[test]
fn an_entry_counts_until_exactly_its_span() {
    let mut oracle = sliding(1, S);
    assert!(oracle.passes(T));
    assert!(!oracle.passes(T + S - 1));
    assert!(oracle.passes(T + S));
}

#[test]
fn mixed_costs_fill_the_window() {
    let mut oracle = sliding(10, MIN);
    assert!(oracle.go(&request(5), T).allowed);
    assert_eq!(oracle.admitted(4, T), 4);
    assert_eq!(oracle.go(&request(2), T).reason, Reason::OverLimit);
    assert!(oracle.go(&request(1), T).allowed);
    oracle.reset("w", &ip()).expect("known");
    assert!(oracle.go(&request(10), T).allowed);
}

#[test]
fn a_large_cost_waits_for_as_many_units_as_it_needs() {
    let mut oracle = sliding(4, 10 * S);
    for second in 0..4 {
        assert!(oracle.passes(T + second * S));
    }
    assert_eq!(oracle.go(&request(3), T + 4 * S).retry_ms, Some(8_000));
    assert_eq!(oracle.go(&request(5), T + 4 * S).reason, Reason::TooCostly);
}

#[test]
fn several_windows_show_the_one_with_least_left() {
    let mut oracle = one(Algorithm::Window(vec![(6, MIN), (2, S)]));
    let first = oracle.go(&plain(), T);
    assert_eq!((first.limit, first.remaining), (Some(2), Some(1)));
    assert!(oracle.passes(T));
    assert_eq!(oracle.go(&plain(), T).retry_ms, Some(1_000));
    assert_eq!(oracle.admitted(3, T + S), 2);
    assert_eq!(oracle.admitted(3, T + 2 * S), 2);
    let denied = oracle.go(&plain(), T + 3 * S);
    assert_eq!((denied.limit, denied.retry_ms), (Some(6), Some(57_000)));
    assert_eq!(oracle.go(&request(3), T + 3 * S).reason, Reason::TooCostly);
}

#[test]
fn a_tie_shows_the_window_listed_first() {
    let mut oracle = one(Algorithm::Window(vec![(2, MIN), (2, S)]));
    assert_eq!(oracle.go(&request(2), T).reset_ms, Some(60_000));
    assert_eq!(oracle.go(&plain(), T).retry_ms, Some(60_000));
}

#[test]
fn a_fixed_window_opens_at_its_first_unit() {
    let mut oracle = one(fixed(10, MIN));
    assert_eq!(oracle.peek(&plain(), T).expect("well formed").reset_ms, Some(0));
    assert!(oracle.go(&request(0), T).allowed);
    assert_eq!(oracle.go(&request(11), T + S).reason, Reason::TooCostly);
    assert_eq!(oracle.go(&request(5), T + 2 * S).remaining, Some(5));
    assert!(!oracle.peek(&request(6), T + 2 * S).expect("well formed").allowed);
    assert_eq!(oracle.go(&request(6), T + 3 * S).retry_ms, Some(59_000));
    assert!(!oracle.go(&request(6), T + 62 * S - 1).allowed);
    assert!(oracle.go(&request(6), T + 62 * S).allowed);
}

#[test]
fn an_aligned_window_ends_on_the_clock() {
    let mut oracle = one(Algorithm::Fixed { limit: 1, span: MIN, aligned: true });
    let minute = 28_333_333 * MIN;
    assert!(oracle.passes(minute + 20 * S));
    assert_eq!(oracle.go(&plain(), minute + 25 * S).retry_ms, Some(35_000));
    assert!(!oracle.passes(minute + MIN - 1));
    assert!(oracle.passes(minute + MIN));
}

#[test]
fn the_wait_rounds_up() {
    let mut oracle = one(fixed(1, 57 * S + 1));
    assert!(oracle.passes(T));
    assert_eq!(oracle.go(&plain(), T).retry_ms, Some(57_001));
    assert_eq!(oracle.go(&plain(), T + 57 * S).retry_ms, Some(1));
}

#[test]
fn counted_denials_push_the_oldest_out() {
    let mut oracle = counting_denied(Algorithm::Window(vec![(2, 10 * S)]));
    assert!(oracle.passes(T) && oracle.passes(T + S));
    // The denial at 5 s replaces the entry of 0 s: free again when the entry of 1 s leaves.
    assert_eq!(oracle.go(&plain(), T + 5 * S).retry_ms, Some(6_000));
    assert_eq!(oracle.go(&plain(), T + 6 * S).retry_ms, Some(9_000));
    assert!(!oracle.passes(T + 15 * S - 1));
    assert_eq!(oracle.go(&plain(), T + 15 * S - 1).retry_ms, Some(10_000));
}

#[test]
fn a_counted_denial_fills_a_fixed_window() {
    let mut oracle = counting_denied(fixed(10, MIN));
    assert!(oracle.go(&request(8), T).allowed);
    assert_eq!(oracle.go(&request(5), T + S).remaining, Some(0));
    assert!(!oracle.passes(T + 2 * S));
    assert!(oracle.passes(T + MIN));
}

#[test]
fn leases_end_by_themselves_or_at_settle() {
    let mut policy = Policy::new("w", Algorithm::Inflight(2));
    policy.hold = 10 * S;
    let mut oracle = oracle(vec![policy]);
    assert!(oracle.passes(T));
    let second = oracle.go(&request(7), T + S);
    assert_eq!((second.remaining, second.rows[0].charged), (Some(0), 1));
    let denied = oracle.go(&plain(), T + 2 * S);
    assert_eq!((denied.retry_ms, denied.reset_ms), (Some(8_000), Some(9_000)));
    assert_eq!(oracle.settle_last(&status(200), T + 3 * S), [1]);
    assert!(oracle.passes(T + 3 * S));
    assert!(!oracle.passes(T + 10 * S - 1));
    assert!(oracle.passes(T + 10 * S));
}
