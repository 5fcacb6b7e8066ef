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

fn again(world: &mut World, mode: Mode) {
    let mut policy = world.catalog().policies[0].clone();
    policy.mode = mode;
    world.reload(Catalog { policies: vec![policy], ..world.catalog().clone() });
}

#[test]
fn an_excess_blocks_once_and_attempts_do_not_extend() {
    let mut world = world(vec![blocking(fixed(1, S), Length::Fixed(2 * S))]);
    assert!(world.passes(T));
    let excess = world.go(&plain(), T + 100 * MS);
    assert_eq!((excess.reason, excess.retry_ms), (Reason::OverLimit, Some(2_000)));
    assert_eq!(excess.blocked_until, Some(T + 2_100 * MS));
    let later = world.go(&plain(), T + 2_000 * MS);
    assert_eq!(
        (later.reason, later.retry_ms, later.remaining),
        (Reason::Blocked, Some(100), Some(0))
    );
    let free = world.go(&plain(), T + 2_100 * MS);
    assert_eq!((free.allowed, free.remaining), (true, Some(0)));
}

#[test]
fn a_block_gives_no_quota_back() {
    let window = Algorithm::Window(vec![(1, 10 * S)]);
    let mut world = world(vec![blocking(window, Length::Fixed(2 * S))]);
    assert!(world.passes(T));
    let excess = world.go(&plain(), T + S);
    assert_eq!((excess.retry_ms, excess.reset_ms), (Some(9_000), Some(9_000)));
    assert_eq!(excess.blocked_until, Some(T + 3 * S));
    assert!(world.passes(T + 10 * S));
}

#[test]
fn operators_block_for_a_while_or_for_good() {
    let mut world = world(vec![Policy::new("p", bucket(9, 1, S))]);
    world.block("p", &ip(), 2 * S, "odd", T).expect("known");
    assert_eq!(world.go(&plain(), T + 500 * MS).retry_ms, Some(1_500));
    world.block("p", &ip(), FOREVER, "enough", T + S).expect("known");
    let denied = world.go(&plain(), T + 1_000 * HOUR);
    assert_eq!((denied.reason, denied.retry_ms, denied.reset_ms), (Reason::Blocked, None, None));
    assert_eq!((denied.blocked_until, denied.rows[0].endless), (None, true));
    assert_eq!(world.unblock("p", &ip(), T + 2_000 * HOUR), Ok(true));
    assert_eq!(world.unblock("p", &ip(), T + 2_000 * HOUR), Ok(false));
    assert!(world.passes(T + 2_000 * HOUR));
}

#[test]
fn a_too_costly_call_waits_for_nothing_also_while_blocked() {
    let mut world = world(vec![Policy::new("p", bucket(5, 1, S))]);
    world.block("p", &ip(), S, "", T).expect("known");
    let denied = world.go(&ask(6), T);
    assert_eq!((denied.reason, denied.retry_ms), (Reason::Blocked, None));
    assert_eq!(world.go(&ask(6), T + S).reason, Reason::TooCostly);
}

#[test]
fn the_later_end_wins_and_an_equal_one_changes_nothing() {
    let mut world = world(vec![Policy::new("p", bucket(5, 1, S))]);
    world.block("p", &ip(), 10 * S, "long", T).expect("known");
    world.block("p", &ip(), S, "short", T).expect("known");
    world.block("p", &ip(), 5 * S, "equal", T + 5 * S).expect("known");
    let (_, cell) = world.cells["p"].iter().next().expect("touched");
    let block = cell.block.clone().expect("standing");
    assert_eq!((block.until, block.reason.as_str()), (T + 10 * S, "long"));
}

#[test]
fn repeated_offences_last_longer_up_to_the_maximum() {
    let mut world = world(vec![blocking(fixed(1, MS), escalating())]);
    let offend = |world: &mut World, now| {
        assert!(world.passes(now));
        world.go(&plain(), now).blocked_until.expect("blocked") - now
    };
    let mut now = T;
    for expected in [10 * S, 20 * S, 35 * S, 35 * S] {
        assert_eq!(offend(&mut world, now), expected);
        now += expected;
    }
    // Remembered for a minute after the end: one microsecond less is still the next level.
    assert_eq!(offend(&mut world, now + MIN - 1), 35 * S);
    assert_eq!(offend(&mut world, now + MIN - 1 + 35 * S + MIN), 10 * S);
}

#[test]
fn release_keeps_the_level_and_reset_clears_it() {
    let mut world = world(vec![blocking(fixed(1, MS), escalating())]);
    assert_eq!(world.admitted(2, T), 1);
    assert_eq!(world.unblock("p", &ip(), T + S), Ok(true));
    assert_eq!(world.admitted(2, T + 2 * S), 1);
    assert_eq!(world.go(&plain(), T + 2 * S).blocked_until, Some(T + 22 * S));
    world.reset("p", &ip()).expect("known");
    assert_eq!(world.admitted(2, T + 2 * S), 1);
    assert_eq!(world.go(&plain(), T + 2 * S).blocked_until, Some(T + 12 * S));
}

#[test]
fn a_fixed_length_neither_raises_nor_forgets_the_level() {
    let mut world = world(vec![blocking(fixed(1, MS), escalating())]);
    assert_eq!(world.admitted(2, T), 1);
    world.block("p", &ip(), 20 * S, "odd", T).expect("known");
    assert_eq!(world.admitted(2, T + 20 * S), 1);
    assert_eq!(world.go(&plain(), T + 20 * S).blocked_until, Some(T + 40 * S));
}

#[test]
fn shadow_blocks_are_seen_by_shadow_rows_only() {
    let mut policy = blocking(fixed(1, MS), escalating());
    policy.mode = Mode::Shadow;
    let mut world = world(vec![policy]);
    assert!(world.passes(T));
    let row = |decision: Decision| (decision.allowed, decision.rows[0].clone());
    let (allowed, excess) = row(world.go(&plain(), T));
    assert!(allowed && !excess.allowed);
    assert_eq!((excess.reason, excess.blocked_until), (Reason::OverLimit, Some(T + 10 * S)));
    assert_eq!(row(world.go(&plain(), T + S)).1.reason, Reason::Blocked);
    again(&mut world, Mode::Enforce);
    assert!(world.passes(T + S));
    // The act replaces the shadow block, level included.
    assert_eq!(world.go(&plain(), T + S).blocked_until, Some(T + 11 * S));
    again(&mut world, Mode::Shadow);
    assert_eq!(row(world.go(&plain(), T + 2 * S)).1.blocked_until, Some(T + 11 * S));
}
