//! Sliding windows, fixed windows and in-flight counts, to the microsecond.

use super::*;
use crate::oracle::answer::Reason;

fn one(algorithm: Algorithm) -> World {
    world(vec![Policy::new("w", algorithm)])
}

fn sliding(limit: i64, span: Micros) -> World {
    one(Algorithm::Window(vec![(limit, span)]))
}

fn counting_denied(algorithm: Algorithm) -> World {
    let mut policy = Policy::new("w", algorithm);
    policy.count_denied = true;
    world(vec![policy])
}

#[test]
fn early_units_age_out_before_late_ones() {
    let mut world = sliding(10, 2 * S);
    assert_eq!(world.admitted(5, T), 5);
    assert_eq!(world.admitted(6, T + 1_800 * MS), 5);
    assert_eq!(world.admitted(6, T + 2 * S), 5);
}

#[test]
fn two_a_minute_frees_the_first_after_fifty_eight_seconds() {
    let mut world = sliding(2, MIN);
    assert!(world.passes(T) && world.passes(T + S));
    let denied = world.go(&plain(), T + 2 * S);
    assert_eq!((denied.retry_ms, denied.reset_ms), (Some(58_000), Some(59_000)));
}

#[test]
fn an_entry_counts_until_exactly_its_span() {
    let mut world = sliding(1, S);
    assert!(world.passes(T));
    assert!(!world.passes(T + S - 1));
    assert!(world.passes(T + S));
}

#[test]
fn mixed_costs_fill_the_window() {
    let mut world = sliding(10, MIN);
    assert!(world.go(&ask(5), T).allowed);
    assert_eq!(world.admitted(4, T), 4);
    assert_eq!(world.go(&ask(2), T).reason, Reason::OverLimit);
    assert!(world.go(&ask(1), T).allowed);
    world.reset("w", &ip()).expect("known");
    assert!(world.go(&ask(10), T).allowed);
}

#[test]
fn a_large_cost_waits_for_as_many_units_as_it_needs() {
    let mut world = sliding(4, 10 * S);
    for second in 0..4 {
        assert!(world.passes(T + second * S));
    }
    assert_eq!(world.go(&ask(3), T + 4 * S).retry_ms, Some(8_000));
    assert_eq!(world.go(&ask(5), T + 4 * S).reason, Reason::TooCostly);
}

#[test]
fn several_windows_show_the_one_with_least_left() {
    let mut world = one(Algorithm::Window(vec![(6, MIN), (2, S)]));
    let first = world.go(&plain(), T);
    assert_eq!((first.limit, first.remaining), (Some(2), Some(1)));
    assert!(world.passes(T));
    assert_eq!(world.go(&plain(), T).retry_ms, Some(1_000));
    assert_eq!(world.admitted(3, T + S), 2);
    assert_eq!(world.admitted(3, T + 2 * S), 2);
    let denied = world.go(&plain(), T + 3 * S);
    assert_eq!((denied.limit, denied.retry_ms), (Some(6), Some(57_000)));
    assert_eq!(world.go(&ask(3), T + 3 * S).reason, Reason::TooCostly);
}

#[test]
fn a_tie_shows_the_window_listed_first() {
    let mut world = one(Algorithm::Window(vec![(2, MIN), (2, S)]));
    assert_eq!(world.go(&ask(2), T).reset_ms, Some(60_000));
    assert_eq!(world.go(&plain(), T).retry_ms, Some(60_000));
}

#[test]
fn a_fixed_window_opens_at_its_first_unit() {
    let mut world = one(fixed(10, MIN));
    assert_eq!(world.peek(&plain(), T).expect("well formed").reset_ms, Some(0));
    assert!(world.go(&ask(0), T).allowed);
    assert_eq!(world.go(&ask(11), T + S).reason, Reason::TooCostly);
    assert_eq!(world.go(&ask(5), T + 2 * S).remaining, Some(5));
    assert!(!world.peek(&ask(6), T + 2 * S).expect("well formed").allowed);
    assert_eq!(world.go(&ask(6), T + 3 * S).retry_ms, Some(59_000));
    assert!(!world.go(&ask(6), T + 62 * S - 1).allowed);
    assert!(world.go(&ask(6), T + 62 * S).allowed);
}

#[test]
fn an_aligned_window_ends_on_the_clock() {
    let mut world = one(Algorithm::Fixed { limit: 1, span: MIN, aligned: true });
    let minute = 28_333_333 * MIN;
    assert!(world.passes(minute + 20 * S));
    assert_eq!(world.go(&plain(), minute + 25 * S).retry_ms, Some(35_000));
    assert!(!world.passes(minute + MIN - 1));
    assert!(world.passes(minute + MIN));
}

#[test]
fn the_wait_rounds_up() {
    let mut world = one(fixed(1, 57 * S + 1));
    assert!(world.passes(T));
    assert_eq!(world.go(&plain(), T).retry_ms, Some(57_001));
    assert_eq!(world.go(&plain(), T + 57 * S).retry_ms, Some(1));
}

#[test]
fn counted_denials_push_the_oldest_out() {
    let mut world = counting_denied(Algorithm::Window(vec![(2, 10 * S)]));
    assert!(world.passes(T) && world.passes(T + S));
    // The denial at 5 s takes the place of the entry at 0 s: free again when that of 1 s leaves.
    assert_eq!(world.go(&plain(), T + 5 * S).retry_ms, Some(6_000));
    assert_eq!(world.go(&plain(), T + 6 * S).retry_ms, Some(9_000));
    assert!(!world.passes(T + 15 * S - 1));
    assert_eq!(world.go(&plain(), T + 15 * S - 1).retry_ms, Some(10_000));
}

#[test]
fn a_counted_denial_fills_a_fixed_window() {
    let mut world = counting_denied(fixed(10, MIN));
    assert!(world.go(&ask(8), T).allowed);
    assert_eq!(world.go(&ask(5), T + S).remaining, Some(0));
    assert!(!world.passes(T + 2 * S));
    assert!(world.passes(T + MIN));
}

#[test]
fn leases_end_by_themselves_or_at_settle() {
    let mut policy = Policy::new("w", Algorithm::Inflight(2));
    policy.hold = 10 * S;
    let mut world = world(vec![policy]);
    assert!(world.passes(T));
    let second = world.go(&ask(7), T + S);
    assert_eq!((second.remaining, second.rows[0].charged), (Some(0), 1));
    let denied = world.go(&plain(), T + 2 * S);
    assert_eq!((denied.retry_ms, denied.reset_ms), (Some(8_000), Some(9_000)));
    assert_eq!(world.settle_last(&status(200), T + 3 * S), [1]);
    assert!(world.passes(T + 3 * S));
    assert!(!world.passes(T + 10 * S - 1));
    assert!(world.passes(T + 10 * S));
}
