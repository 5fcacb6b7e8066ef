//! The block cache of a node: a cached block denies without a trip to the store, and a release is
//! noticed within a second.

use catraca::{Span, Subject};

use super::helpers::{check, node, pair, poll_ready, secs, stats};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
[policy.calm]
by     = ["ip"]
window = "1 per 1m"
"#;

const IP: &str = "192.0.2.1";

#[test]
fn a_known_block_denies_without_a_trip_and_says_so() {
    let (app, store, clock) = pair(CATALOG, 1);
    assert!(check(&app, "login", IP).allowed);
    let first = check(&app, "login", IP);
    assert_eq!((first.reason.as_str(), first.cached), ("over_limit", false));
    let before = store.trips();
    clock.advance(Span::from_millis(900));
    let cached = check(&app, "login", IP);
    assert!(cached.cached && !cached.degraded && !cached.allowed);
    assert_eq!((cached.reason.as_str(), cached.policy.as_deref()), ("blocked", Some("login")));
    assert_eq!(cached.retry_after, Some(Span::from_millis(299_100)), "to the millisecond");
    assert_eq!((cached.limit, cached.remaining), (Some(1), Some(0)));
    assert_eq!(store.trips(), before);
    clock.advance(Span::from_millis(100));
    assert!(!check(&app, "login", IP).cached, "a second is over");
    assert_eq!(store.trips(), before + 1);
    assert_eq!(stats(&app).cached_denials, 1);
}

#[test]
fn an_excess_alone_is_never_kept() {
    let (app, store, _) = pair(CATALOG, 1);
    let seen: Vec<bool> = (0..4).map(|_| check(&app, "calm", IP).cached).collect();
    assert_eq!((seen, store.trips()), (vec![false; 4], 4));
}

#[test]
fn a_release_counts_here_at_once_and_elsewhere_within_a_second() {
    let (here, store, clock) = pair(CATALOG, 2);
    let there = node(CATALOG, &store, &clock, 2);
    (0..3).for_each(|_| drop((check(&here, "login", IP), check(&there, "login", IP))));
    let subject = Subject::from_iter([("ip", IP)]);
    clock.advance(secs(61));
    (0..2).for_each(|_| drop((check(&here, "login", IP), check(&there, "login", IP))));
    assert!(poll_ready(here.unblock_unaudited("default", "login", &subject)).unwrap());
    assert!(check(&here, "login", IP).allowed, "the window is over and the block released");
    assert!(check(&there, "login", IP).cached, "the release is not known here yet");
    clock.advance(secs(1));
    let later = check(&there, "login", IP);
    assert_eq!((later.cached, later.reason.as_str()), (false, "over_limit"));
}

#[test]
fn a_block_that_ends_is_over_to_the_microsecond() {
    let (app, _, clock) = pair(CATALOG, 1);
    (0..2).for_each(|_| drop(check(&app, "login", IP)));
    clock.advance(Span::from_micros(299_999_999));
    assert!(!check(&app, "login", IP).allowed);
    clock.advance(Span::from_micros(1));
    assert!(check(&app, "login", IP).allowed);
}
