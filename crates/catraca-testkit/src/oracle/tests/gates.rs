//! Gates of several policies, selection, lists and missing attributes.

use super::*;
use crate::oracle::FOREVER;
use crate::oracle::answer::{Reason, Refusal};
use crate::oracle::catalog::{Ban, Length, ListEntry, Mode, OnMissing, Tier};
use crate::oracle::outcome::Condition;

fn pair() -> Oracle {
    oracle(vec![Policy::new("a", bucket(3, 1, S)), Policy::new("b", fixed(1, MIN))])
}

#[test]
fn a_denial_by_one_leaves_the_others_untouched() {
    let mut oracle = pair();
    let first = oracle.go(&plain(), T);
    assert_eq!((first.policy.as_deref(), first.remaining), (Some("b"), Some(0)));
    let denied = oracle.go(&plain(), T);
    assert_eq!((denied.policy.as_deref(), denied.retry_ms), (Some("b"), Some(60_000)));
    assert_eq!((denied.rows[0].allowed, denied.rows[0].charged), (true, 0));
    assert_eq!(denied.rows[0].remaining, Some(2));
}

#[test]
fn the_first_denying_row_is_named_and_the_longest_wait_told() {
    let mut oracle = pair();
    oracle.go(&plain(), T);
    let denied = oracle.go(&request(3), T);
    assert_eq!((denied.policy.as_deref(), denied.reason), (Some("a"), Reason::OverLimit));
    // The second row can never take three units, so there is no wait.
    assert_eq!((denied.rows[1].reason, denied.retry_ms), (Reason::TooCostly, None));
    let denied = oracle.go(&plain(), T);
    assert_eq!(denied.retry_ms, Some(60_000));
}

#[test]
fn a_tie_names_the_first_policy() {
    let mut oracle = oracle(vec![Policy::new("a", fixed(2, S)), Policy::new("b", fixed(2, S))]);
    assert_eq!(oracle.go(&plain(), T).policy.as_deref(), Some("a"));
}

#[test]
fn shadow_rows_never_decide_and_are_never_the_tightest() {
    let mut oracle = pair();
    let mut catalog = oracle.catalog().clone();
    catalog.policies[1].mode = Mode::Shadow;
    oracle.reload(catalog);
    oracle.go(&plain(), T);
    let second = oracle.go(&plain(), T);
    assert_eq!((second.allowed, second.policy.as_deref()), (true, Some("a")));
    assert_eq!((second.rows[1].reason, second.rows[1].charged), (Reason::OverLimit, 0));
}

#[test]
fn every_row_in_excess_starts_its_own_block() {
    let mut oracle = pair();
    let mut catalog = oracle.catalog().clone();
    catalog.policies[0].terms.block = Some(Length::Fixed(5 * S));
    catalog.policies[1].terms.block = Some(Length::Fixed(9 * S));
    oracle.reload(catalog);
    oracle.go(&plain(), T);
    oracle.go(&CheckRequest { gate: "a".to_owned(), ..request(2) }, T);
    let denied = oracle.go(&plain(), T);
    assert_eq!((denied.policy.as_deref(), denied.blocked_until), (Some("a"), Some(T + 9 * S)));
    assert_eq!(denied.rows[0].blocked_until, Some(T + 5 * S));
}

#[test]
fn an_unknown_token_is_counted_by_address() {
    let mut token = Policy::new("token", Algorithm::None);
    token.by = vec![vec!["token".to_owned()]];
    token.otherwise = Some("ip".to_owned());
    token.tiers = vec![Tier {
        when: vec![("token".to_owned(), vec!["abc".to_owned()])],
        algorithm: Some(fixed(9, S)),
        block: None,
        cost: None,
        credits: None,
    }];
    let mut oracle = oracle(vec![token, Policy::new("ip", fixed(2, S))]);
    let by = |token: Option<&str>| {
        let mut subject = ip();
        subject.extend(token.map(|token| ("token".to_owned(), token.to_owned())));
        CheckRequest { subject, ..plain() }
    };
    let known = oracle.go(&by(Some("abc")), T);
    assert_eq!(known.rows.iter().map(|row| row.limit).collect::<Vec<_>>(), [Some(9), Some(2)]);
    // Both policies resolve to the same (policy, key): one row.
    let unknown = oracle.go(&by(Some("random")), T);
    assert_eq!((unknown.rows.len(), unknown.remaining), (1, Some(0)));
    assert!(!oracle.go(&by(None), T).allowed);
}

#[test]
fn a_missing_attribute_is_an_error_no_row_or_a_denial() {
    let mut oracle = pair();
    let no_subject = CheckRequest { subject: Vec::new(), ..plain() };
    assert_eq!(oracle.check(&no_subject, T), Err(Refusal::MissingAttribute));
    let mut catalog = oracle.catalog().clone();
    catalog.policies[0].on_missing = OnMissing::Skip;
    catalog.policies[1].on_missing = OnMissing::Deny;
    oracle.reload(catalog);
    let denied = oracle.go(&no_subject, T);
    assert_eq!((denied.reason, denied.retry_ms, denied.rows.len()), (Reason::Missing, None, 1));
    assert!(oracle.go(&CheckRequest { gate: "a".to_owned(), ..no_subject }, T).rows.is_empty());
}

#[test]
fn each_attribute_has_its_own_block_and_a_ban_takes_all() {
    let mut policy = Policy::new("pay", Algorithm::None);
    policy.by = Vec::new();
    policy.each = vec!["customer".to_owned(), "session".to_owned()];
    let length = Length::Fixed(MIN);
    let reason = "reject".to_owned();
    policy.bans = vec![Ban { when: Condition::Reject(5), length, reason, after: None }];
    let mut oracle = oracle(vec![policy]);
    let request = |parts| CheckRequest { subject: subject_of(parts), ..plain() };
    let both = request(&[("customer", "c"), ("session", "s")]);
    assert_eq!(oracle.go(&both, T).rows.len(), 2);
    oracle.settle_last(&Outcome { reject_id: Some(5), ..status(200) }, T);
    assert!(!oracle.go(&request(&[("session", "s")]), T).allowed);
    let new_session = oracle.go(&request(&[("customer", "c"), ("session", "t")]), T);
    assert_eq!(new_session.rows[0].attribute.as_deref(), Some("customer"));
    assert_eq!((new_session.allowed, new_session.rows[1].allowed), (false, true));
    assert!(oracle.go(&request(&[("session", "t")]), T).allowed);
}

#[test]
fn unknown_gates_share_the_default_policy_but_not_its_counts() {
    let mut oracle = pair();
    let gate = |name: &str| CheckRequest { gate: name.to_owned(), ..plain() };
    assert_eq!(oracle.check(&gate("x"), T), Err(Refusal::UnknownGate));
    let mut catalog = oracle.catalog().clone();
    catalog.default = Some("b".to_owned());
    oracle.reload(catalog);
    assert!(oracle.go(&gate("x"), T).allowed);
    assert!(!oracle.go(&gate("x"), T).allowed);
    assert!(oracle.go(&gate("y"), T).allowed);
    assert!(oracle.go(&gate("b"), T).allowed);
}

#[test]
fn lists_decide_before_any_row() {
    let mut oracle = pair();
    let entry =
        |until| ListEntry { attribute: "ip".to_owned(), value: "192.0.2.1".to_owned(), until };
    let mut catalog = oracle.catalog().clone();
    catalog.blocklist = vec![entry(T + 5 * S)];
    oracle.reload(catalog.clone());
    let denied = oracle.go(&plain(), T);
    assert_eq!((denied.reason, denied.retry_ms), (Reason::Blocklisted, Some(5_000)));
    assert!(denied.rows.is_empty() && denied.policy.is_none());
    assert!(oracle.go(&CheckRequest { lists: false, ..plain() }, T).allowed);
    catalog.allowlist = vec![entry(FOREVER)];
    oracle.reload(catalog);
    assert_eq!(oracle.go(&plain(), T).reason, Reason::Allowlisted);
    // Only the check that skipped the lists was charged.
    let gate = "a".to_owned();
    assert_eq!(oracle.go(&CheckRequest { lists: false, gate, ..plain() }, T).remaining, Some(1));
}
