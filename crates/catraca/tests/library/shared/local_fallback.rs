//! The store is unavailable: every policy follows its `on_failure`, and invalid calls are still
//! refused.

use catraca::{
    App, AppError, BlockProposal, Check, Error, Outcome, Refusal, Settle, Span, Subject,
};

use super::helpers::{check, heartbeat, node, pair, poll_ready, secs, settle};

const CATALOG: &str = r#"
[policy.local]
by     = ["ip"]
window = "9 per 1m"
block  = "5m"
[policy.open]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
on_failure = "open"
[policy.closed]
by     = ["ip"]
window = "100 per 1m"
on_failure = "closed"
[policy.watched]
by     = ["ip"]
window = "100 per 1m"
on_failure = "closed"
mode   = "shadow"
[policy.paid]
by     = ["ip"]
bucket = { size = 30, refill = "3 per 1m" }
cost   = { "200" = 1, "404" = 5, default = 0 }
debt   = true
[policy.banned]
by  = ["ip"]
ban = [ { when = "status == 403", for = "10m", reason = "refused upstream" } ]
[gate.strict]
policies = ["local", "closed"]
[gate.lenient]
policies = ["open", "watched"]
"#;

const IP: &str = "192.0.2.1";

fn count_admitted(app: &App, gate: &str, times: usize) -> usize {
    (0..times).filter(|_| check(app, gate, IP).allowed).count()
}

#[test]
fn a_node_alone_gives_its_part_of_a_limit_and_says_so() {
    let (app, store, _) = pair(CATALOG, 4);
    store.fail(true);
    let first = check(&app, "local", IP);
    assert!(first.allowed && first.degraded);
    assert_eq!((first.limit, first.remaining), (Some(3), Some(2)), "9 / 4, rounded up");
    assert_eq!(count_admitted(&app, "local", 5), 2);
    let denied = check(&app, "local", IP);
    assert_eq!((denied.reason.as_str(), denied.degraded), ("blocked", true));
}

#[test]
fn the_part_is_warm_when_the_store_goes_away() {
    let (app, store, _) = pair(CATALOG, 4);
    assert_eq!(count_admitted(&app, "local", 2), 2);
    store.fail(true);
    assert_eq!(count_admitted(&app, "local", 5), 1, "two of three were used before");
}

#[test]
fn an_open_policy_lets_pass_and_a_closed_one_denies() {
    let (app, store, _) = pair(CATALOG, 1);
    store.fail(true);
    assert_eq!(count_admitted(&app, "open", 20), 20);
    let denied = check(&app, "closed", IP);
    assert_eq!((denied.reason.as_str(), denied.retry_after), ("unavailable", None));
    assert!(denied.degraded && denied.ticket.is_none());
    assert!(check(&app, "lenient", IP).allowed, "a shadow row never decides");
    let strict = check(&app, "strict", IP);
    assert_eq!(strict.policy.as_deref(), Some("closed"));
    let local = &strict.rows[0];
    assert_eq!((local.allowed, local.charged), (true, 0), "all or none");
}

#[test]
fn known_blocks_deny_in_every_mode() {
    for gate in ["open", "local", "closed"] {
        let (app, store, clock) = pair(CATALOG, 1);
        let subject = Subject::from_iter([("ip", IP)]);
        let proposal = BlockProposal::by_operator(secs(3_600), Some("fraud"));
        poll_ready(app.block_unaudited("default", gate, &subject, proposal)).unwrap();
        store.fail(true);
        clock.advance(secs(60));
        let denied = check(&app, gate, IP);
        assert_eq!((denied.allowed, denied.reason.as_str()), (false, "blocked"), "{gate}");
        assert_eq!(denied.retry_after, Some(secs(3_540)));
        clock.advance(secs(3_540));
        assert_eq!(
            check(&app, gate, IP).allowed,
            gate != "closed",
            "{gate}: the block ends in time"
        );
    }
}

#[test]
fn a_block_that_another_check_saw_denies_alone_too() {
    let (app, store, _) = pair(CATALOG, 1);
    assert_eq!(count_admitted(&app, "open", 3), 1);
    store.fail(true);
    assert_eq!(count_admitted(&app, "open", 3), 0);
}

#[test]
fn a_wrong_call_is_refused_and_opens_nothing() {
    let (app, store, _) = pair(CATALOG, 1);
    store.fail(true);
    let no_subject = poll_ready(app.check(&Check::new("open", Subject::new())));
    assert!(
        matches!(no_subject, Err(Error::Refused(Refusal::MissingAttribute { .. }))),
        "{no_subject:?}"
    );
    let unknown_gate = poll_ready(app.check(&Check::new("nowhere", [("ip", IP)])));
    assert!(matches!(unknown_gate, Err(Error::Refused(Refusal::UnknownGate(_)))));
    let bad_address = poll_ready(app.check(&Check::new("open", [("ip", "not an address")])));
    assert!(matches!(bad_address, Err(Error::Refused(_))), "{bad_address:?}");
    let cost = Check { cost: Some(-1), ..Check::new("open", [("ip", IP)]) };
    assert!(matches!(poll_ready(app.check(&cost)), Err(Error::Refused(_))));
}

#[test]
fn what_was_decided_alone_is_settled_alone() {
    let (app, store, _) = pair(CATALOG, 3);
    store.fail(true);
    let ticket = check(&app, "paid", IP).ticket.unwrap();
    let outcome = Outcome { status: Some(404), ..Outcome::default() };
    let settled = settle(&app, &Settle::ticket(&ticket, &outcome));
    assert_eq!((settled.rows[0].charged, settled.rows[0].balance), (5, Some(5)), "of 10");
    store.fail(false);
    heartbeat(&app);
    let again = settle(&app, &Settle::ticket(&ticket, &outcome));
    assert_eq!(again.state.as_str(), "again");
    let state = poll_ready(app.bucket_state("default", "paid", &Subject::from_iter([("ip", IP)])));
    assert_eq!(state.unwrap().balance, 30, "the store was not charged");
}

/// Regression: the ban was only on this node, which asked the store again and let the caller pass.
#[test]
fn a_ban_that_is_settled_alone_after_the_outage_is_in_the_store_before_the_next_check() {
    let (app, store, clock) = pair(CATALOG, 1);
    store.fail(true);
    let ticket = check(&app, "banned", IP).ticket.unwrap();
    store.fail(false);
    assert!(heartbeat(&app).up);
    let outcome = Outcome { status: Some(403), ..Outcome::default() };
    settle(&app, &Settle::ticket(&ticket, &outcome));
    assert_eq!(check(&app, "banned", IP).reason.as_str(), "blocked");
    assert!(heartbeat(&app).up);
    let other = node(CATALOG, &store, &clock, 1);
    assert_eq!(check(&other, "banned", IP).reason.as_str(), "blocked");
}

#[test]
fn a_ticket_of_the_store_waits_for_the_store() {
    let (app, store, clock) = pair(CATALOG, 3);
    let ticket = check(&app, "paid", IP).ticket.unwrap();
    store.fail(true);
    let outcome = Outcome { status: Some(404), ..Outcome::default() };
    let refused = poll_ready(app.settle(&Settle::ticket(&ticket, &outcome)));
    assert!(matches!(refused, Err(AppError::Call(Error::Store(_)))), "{refused:?}");
    store.fail(false);
    clock.advance(Span::from_secs(5));
    let settled = settle(&app, &Settle::ticket(&ticket, &outcome));
    assert_eq!((settled.state.as_str(), settled.rows[0].balance), ("settled", Some(25)));
}

#[test]
fn an_operators_act_is_refused_rather_than_lost() {
    let (app, store, _) = pair(CATALOG, 1);
    store.fail(true);
    let subject = Subject::from_iter([("ip", IP)]);
    assert!(matches!(
        poll_ready(app.unblock_unaudited("default", "open", &subject)),
        Err(Error::Store(_))
    ));
    assert!(matches!(
        poll_ready(app.reset_unaudited("default", "open", &subject)),
        Err(Error::Store(_))
    ));
    assert!(matches!(poll_ready(app.buckets("default", &subject)), Err(Error::Store(_))));
}
