//! Blocks: by excess, by an operator, escalating, and in shadow.

use super::*;
use crate::oracle::FOREVER;
use crate::oracle::answer::Reason;
use crate::oracle::catalog::{Length, Mode};

fn blocking(algorithm: Algorithm, length: Length) -> Policy {
    let mut policy = Policy::new("p", algorithm);
    policy.terms.block = Some(length);
    policy
}

fn escalating() -> Length {
    Length::Escalating { first: 10 * S, factor: 2, max: 35 * S, forget: MIN }
}

fn again(oracle: &mut Oracle, mode: Mode) {
    let mut policy = oracle.catalog().policies[0].clone();
    policy.mode = mode;
    oracle.reload(Catalog { policies: vec![policy], ..oracle.catalog().clone() });
}

#[test]
fn an_excess_blocks_once_and_attempts_do_not_extend() {
    let mut oracle = oracle(vec![blocking(fixed(1, S), Length::Fixed(2 * S))]);
    assert!(oracle.passes(T));
    let excess = oracle.go(&plain(), T + 100 * MS);
    assert_eq!((excess.reason, excess.retry_ms), (Reason::OverLimit, Some(2_000)));
    assert_eq!(excess.blocked_until, Some(T + 2_100 * MS));
    let later = oracle.go(&plain(), T + 2_000 * MS);
    assert_eq!(
        (later.reason, later.retry_ms, later.remaining),
        (Reason::Blocked, Some(100), Some(0))
    );
    let free = oracle.go(&plain(), T + 2_100 * MS);
    assert_eq!((free.allowed, free.remaining), (true, Some(0)));
}

#[test]
fn a_block_gives_no_quota_back() {
    let window = Algorithm::Window(vec![(1, 10 * S)]);
    let mut oracle = oracle(vec![blocking(window, Length::Fixed(2 * S))]);
    assert!(oracle.passes(T));
    let excess = oracle.go(&plain(), T + S);
    assert_eq!((excess.retry_ms, excess.reset_ms), (Some(9_000), Some(9_000)));
    assert_eq!(excess.blocked_until, Some(T + 3 * S));
    assert!(oracle.passes(T + 10 * S));
}

#[test]
fn operators_block_for_a_while_or_for_good() {
    let mut oracle = oracle(vec![Policy::new("p", bucket(9, 1, S))]);
    oracle.block("p", &ip(), 2 * S, "abuse", T).expect("known");
    assert_eq!(oracle.go(&plain(), T + 500 * MS).retry_ms, Some(1_500));
    oracle.block("p", &ip(), FOREVER, "enough", T + S).expect("known");
    let denied = oracle.go(&plain(), T + 1_000 * HOUR);
    assert_eq!((denied.reason, denied.retry_ms, denied.reset_ms), (Reason::Blocked, None, None));
    assert_eq!((denied.blocked_until, denied.rows[0].endless), (None, true));
    assert_eq!(oracle.unblock("p", &ip(), T + 2_000 * HOUR), Ok(true));
    assert_eq!(oracle.unblock("p", &ip(), T + 2_000 * HOUR), Ok(false));
    assert!(oracle.passes(T + 2_000 * HOUR));
}

#[test]
fn a_too_costly_call_waits_for_nothing_also_while_blocked() {
    let mut oracle = oracle(vec![Policy::new("p", bucket(5, 1, S))]);
    oracle.block("p", &ip(), S, "", T).expect("known");
    let denied = oracle.go(&request(6), T);
    assert_eq!((denied.reason, denied.retry_ms), (Reason::Blocked, None));
    assert_eq!(oracle.go(&request(6), T + S).reason, Reason::TooCostly);
}

#[test]
fn the_later_end_wins_and_an_equal_one_changes_nothing() {
    let mut oracle = oracle(vec![Policy::new("p", bucket(5, 1, S))]);
    oracle.block("p", &ip(), 10 * S, "long", T).expect("known");
    oracle.block("p", &ip(), S, "short", T).expect("known");
    oracle.block("p", &ip(), 5 * S, "equal", T + 5 * S).expect("known");
    let (_, cell) = oracle.cells["p"].iter().next().expect("touched");
    let block = cell.block.clone().expect("standing");
    assert_eq!((block.until, block.reason.as_str()), (T + 10 * S, "long"));
}

#[test]
fn repeated_offences_last_longer_up_to_the_maximum() {
    let mut oracle = oracle(vec![blocking(fixed(1, MS), escalating())]);
    let offend = |oracle: &mut Oracle, now| {
        assert!(oracle.passes(now));
        oracle.go(&plain(), now).blocked_until.expect("blocked") - now
    };
    let mut now = T;
    for expected in [10 * S, 20 * S, 35 * S, 35 * S] {
        assert_eq!(offend(&mut oracle, now), expected);
        now += expected;
    }
    // Remembered for a minute after the end: one microsecond less is still the next level.
    assert_eq!(offend(&mut oracle, now + MIN - 1), 35 * S);
    assert_eq!(offend(&mut oracle, now + MIN - 1 + 35 * S + MIN), 10 * S);
}

#[test]
fn release_keeps_the_level_and_reset_clears_it() {
    let mut oracle = oracle(vec![blocking(fixed(1, MS), escalating())]);
    assert_eq!(oracle.admitted(2, T), 1);
    assert_eq!(oracle.unblock("p", &ip(), T + S), Ok(true));
    assert_eq!(oracle.admitted(2, T + 2 * S), 1);
    assert_eq!(oracle.go(&plain(), T + 2 * S).blocked_until, Some(T + 22 * S));
    oracle.reset("p", &ip()).expect("known");
    assert_eq!(oracle.admitted(2, T + 2 * S), 1);
    assert_eq!(oracle.go(&plain(), T + 2 * S).blocked_until, Some(T + 12 * S));
}

#[test]
fn a_fixed_length_neither_raises_nor_forgets_the_level() {
    let mut oracle = oracle(vec![blocking(fixed(1, MS), escalating())]);
    assert_eq!(oracle.admitted(2, T), 1);
    oracle.block("p", &ip(), 20 * S, "abuse", T).expect("known");
    assert_eq!(oracle.admitted(2, T + 20 * S), 1);
    assert_eq!(oracle.go(&plain(), T + 20 * S).blocked_until, Some(T + 40 * S));
}

#[test]
fn shadow_blocks_are_seen_by_shadow_rows_only() {
    let mut policy = blocking(fixed(1, MS), escalating());
    policy.mode = Mode::Shadow;
    let mut oracle = oracle(vec![policy]);
    assert!(oracle.passes(T));
    let row = |decision: Decision| (decision.allowed, decision.rows[0].clone());
    let (allowed, excess) = row(oracle.go(&plain(), T));
    assert!(allowed && !excess.allowed);
    assert_eq!((excess.reason, excess.blocked_until), (Reason::OverLimit, Some(T + 10 * S)));
    assert_eq!(row(oracle.go(&plain(), T + S)).1.reason, Reason::Blocked);
    again(&mut oracle, Mode::Enforce);
    assert!(oracle.passes(T + S));
    // The act replaces the shadow block, level included.
    assert_eq!(oracle.go(&plain(), T + S).blocked_until, Some(T + 11 * S));
    again(&mut oracle, Mode::Shadow);
    assert_eq!(row(oracle.go(&plain(), T + 2 * S)).1.blocked_until, Some(T + 11 * S));
}
