//! The store fails and recovers: no call waits for it, and no block is lost.

use catraca::shared::HeartbeatReport;
use catraca::{App, BlockProposal, Error, ManualClock, Outcome, Settle, Span, Subject};

use super::helpers::{
    Remote, START, check, heartbeat, node, pair, poll_ready, secs, settle, stats,
};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "2 per 1m"
block  = "5m"
[policy.pay]
by  = ["ip"]
ban = [ { when = "status == 403", for = "10m", reason = "refused upstream" } ]
"#;

const IP: &str = "192.0.2.1";

#[test]
fn after_three_failures_the_store_is_left_alone_until_a_beat_finds_it() {
    let (app, store, _) = pair(CATALOG, 1);
    store.fail(true);
    (0..10).for_each(|_| drop(check(&app, "login", IP)));
    assert_eq!(store.trips(), 3);
    let stats = stats(&app);
    assert_eq!((stats.up, stats.breaker_opened), (false, 1));
    assert_eq!(stats.error.as_deref(), Some("no route to the store"));
    assert!(!heartbeat(&app).up);
    store.fail(false);
    assert!(check(&app, "login", IP).degraded, "only a heartbeat closes the breaker");
    let found = heartbeat(&app);
    assert_eq!((found.up, found.recovered, found.restarted), (true, true, false));
    assert!(!check(&app, "login", "192.0.2.2").degraded);
}

#[test]
fn beats_alone_find_out_too() {
    let (app, store, _) = pair(CATALOG, 1);
    heartbeat(&app);
    store.fail(true);
    let ups: Vec<bool> = (0..4).map(|_| heartbeat(&app).up).collect();
    assert_eq!(ups, [true, true, false, false]);
    assert_eq!(store.trips(), 0, "a heartbeat applies no batch");
}

#[test]
fn blocks_that_were_started_alone_stand_everywhere_afterwards() {
    let (app, store, clock) = pair(CATALOG, 1);
    let other = node(CATALOG, &store, &clock, 1);
    heartbeat(&app);
    store.fail(true);
    (0..3).for_each(|_| drop(check(&app, "login", IP)));
    let ticket = check(&app, "pay", IP).ticket.unwrap();
    let outcome = Outcome { status: Some(403), ..Outcome::default() };
    settle(&app, &Settle::ticket(&ticket, &outcome));
    assert_eq!(stats(&app).unsynced_blocks, 2);
    store.fail(false);
    clock.advance(secs(20));
    assert!(heartbeat(&app).recovered);
    assert_eq!(stats(&app).unsynced_blocks, 0);
    let login = check(&other, "login", IP);
    assert_eq!((login.reason.as_str(), login.retry_after), ("blocked", Some(secs(280))));
    let pay = check(&other, "pay", IP);
    assert_eq!((pay.reason.as_str(), pay.retry_after), ("blocked", Some(secs(580))));
}

/// The fallback escalates from the level of the store, and the store from that of the fallback.
#[test]
fn the_level_of_an_offender_is_the_same_with_and_without_the_store() {
    let catalog =
        CATALOG.replace(r#""5m""#, r#"{ first = "5m", factor = 2, max = "10h", forget = "1h" }"#);
    let (app, store, clock) = pair(&catalog, 1);
    let other = node(&catalog, &store, &clock, 1);
    heartbeat(&app);
    // The third check exceeds the limit.
    let third = |app: &App| {
        check(app, "login", IP);
        check(app, "login", IP);
        check(app, "login", IP)
    };
    let offend = |app: &App| {
        let last = third(app);
        clock.advance(last.retry_after.unwrap());
        (last.reason.as_str(), last.retry_after)
    };
    assert_eq!(offend(&app), ("over_limit", Some(secs(300))));
    store.fail(true);
    assert_eq!(offend(&app), ("over_limit", Some(secs(600))), "the level came from the store");
    assert_eq!(third(&app).retry_after, Some(secs(1_200)));
    store.fail(false);
    assert!(heartbeat(&app).recovered);
    clock.advance(secs(1_200));
    assert_eq!(offend(&other), ("over_limit", Some(secs(2_400))), "the store has the new level");
}

/// The same for a ban, which a settle starts.
#[test]
fn the_level_of_a_ban_is_the_same_with_and_without_the_store() {
    let catalog =
        CATALOG.replace(r#""10m""#, r#"{ first = "10m", factor = 2, max = "10h", forget = "1h" }"#);
    let (app, store, clock) = pair(&catalog, 1);
    let other = node(&catalog, &store, &clock, 1);
    heartbeat(&app);
    let ban = |app: &App| {
        let ticket = check(app, "pay", IP).ticket.unwrap();
        let outcome = Outcome { status: Some(403), ..Outcome::default() };
        let settled = settle(app, &Settle::ticket(&ticket, &outcome));
        settled.rows[0].blocked_until.unwrap().since(settled.at)
    };
    assert_eq!(ban(&app), secs(600));
    clock.advance(secs(600));
    store.fail(true);
    (0..3).for_each(|_| drop(check(&app, "login", "192.0.2.2")));
    assert_eq!(ban(&app), secs(1_200), "the level came from the store");
    store.fail(false);
    assert!(heartbeat(&app).recovered);
    clock.advance(secs(1_200));
    assert_eq!(ban(&other), secs(2_400), "the store has the new level");
}

/// One lost call does not open the breaker; the missing block is written all the same before the
/// store decides again.
#[test]
fn a_block_that_was_started_alone_denies_also_when_the_store_is_there_again_at_once() {
    let (app, store, _) = pair(CATALOG, 1);
    heartbeat(&app);
    (0..2).for_each(|_| assert!(check(&app, "login", IP).allowed));
    store.fail(true);
    assert_eq!(check(&app, "login", IP).reason.as_str(), "over_limit");
    store.fail(false);
    assert_eq!(
        check(&app, "login", IP).reason.as_str(),
        "blocked",
        "the block is cached at this node"
    );
    assert!(heartbeat(&app).recovered);
    let decision = check(&app, "login", IP);
    assert_eq!((decision.reason.as_str(), decision.degraded), ("blocked", false));
}

/// A refused operation must not take effect, even if only the reply was lost.
#[test]
fn acts_whose_answer_was_lost_are_undone_by_the_next_beat() {
    let (app, store, clock) = pair(CATALOG, 1);
    let other = node(CATALOG, &store, &clock, 1);
    heartbeat(&app);
    block(&app, "192.0.2.9", secs(3_600)).unwrap();
    store.lose_answers(true);
    let old: Subject<'_> = [("ip", "192.0.2.9")].into_iter().collect();
    poll_ready(app.unblock_unaudited("default", "login", &old)).unwrap_err();
    assert!(!heartbeat(&app).up, "the store must not decide before the operation is undone");
    block(&app, IP, secs(3_600)).expect("a block needs no store");
    store.lose_answers(false);
    assert!(heartbeat(&app).recovered);
    assert_eq!(check(&other, "login", IP).reason.as_str(), "blocked");
    assert_eq!(check(&other, "login", "192.0.2.9").reason.as_str(), "blocked");
}

/// A store that lost all its data must get every block before it decides again.
#[test]
fn a_store_that_comes_back_empty_is_told_of_every_block_first() {
    let (app, store, clock) = pair(CATALOG, 1);
    block(&app, IP, secs(600)).unwrap();
    block(&app, "192.0.2.7", Span::FOREVER).unwrap();
    (0..3).for_each(|_| drop(check(&app, "login", "192.0.2.8")));
    heartbeat(&app);
    store.fail(true);
    (0..3).for_each(|_| drop(heartbeat(&app)));
    store.lose_everything();
    store.fail(false);
    clock.advance(secs(100));
    assert!(!check(&app, "login", IP).allowed, "alone, it knows");
    assert!(heartbeat(&app).restarted);
    let other = node(CATALOG, &store, &clock, 1);
    assert_eq!(check(&other, "login", IP).retry_after, Some(secs(500)));
    assert_eq!(check(&other, "login", "192.0.2.7").reason.as_str(), "blocked");
    assert_eq!(check(&other, "login", "192.0.2.8").retry_after, Some(secs(200)));
}

#[test]
fn a_clock_two_seconds_away_is_told_and_changes_no_answer() {
    let here = ManualClock::at(START);
    let there = ManualClock::at(START.after(secs(5)));
    let store = Remote::new(&there);
    let app = node(CATALOG, &store, &here, 1);
    let found = heartbeat(&app);
    assert!(found.clock_skewed);
    assert_eq!(stats(&app).clock_offset, Some(5_000_000));
    (0..3).for_each(|_| drop(check(&app, "login", IP)));
    let cached = check(&app, "login", IP);
    assert_eq!((cached.cached, cached.retry_after), (true, Some(secs(300))));
    store.fail(true);
    here.advance(secs(2));
    assert_eq!(check(&app, "login", IP).retry_after, Some(secs(298)), "without the store as well");
    there.set(START);
    store.fail(false);
    assert_eq!(
        heartbeat(&app),
        HeartbeatReport { up: true, clock_skewed: true, ..HeartbeatReport::default() }
    );
}

fn block(app: &App, ip: &str, span: Span) -> Result<(), Error> {
    let subject = Subject::from_iter([("ip", ip)]);
    let proposal = BlockProposal::by_operator(span, None);
    poll_ready(app.block_unaudited("default", "login", &subject, proposal)).map(drop)
}

/// Regression: blocks beyond the bound were only on the node that had started them.
#[test]
fn more_unsynced_blocks_than_fit_are_all_written_afterwards() {
    let catalog = "[policy.login]\nby = ['ip']\nwindow = '1 per 1m'\nblock = '5m'\n";
    let (app, store, clock) = pair(catalog, 1);
    let other = node(catalog, &store, &clock, 1);
    heartbeat(&app);
    store.fail(true);
    let address = |number: u32| {
        let [_, first, second, third] = number.to_be_bytes();
        format!("10.{first}.{second}.{third}")
    };
    for number in 0..=100_000 {
        check(&app, "login", &address(number));
        assert!(!check(&app, "login", &address(number)).allowed);
    }
    assert_eq!((stats(&app).unsynced_blocks, stats(&app).dropped_unsynced_blocks), (100_000, 1));
    store.fail(false);
    heartbeat(&app);
    assert!(stats(&app).up);
    assert_eq!(stats(&app).unsynced_blocks, 0);
    for number in [0, 50_000, 100_000] {
        assert_eq!(check(&other, "login", &address(number)).reason.as_str(), "blocked");
    }
}
