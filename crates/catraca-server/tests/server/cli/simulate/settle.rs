//! Outcomes: immediate, delayed, too late or without a check; and their order.

use serde_json::Value;

use super::{numbers, reasons, results};

const LOOKUP: &str = r#"
[policy.lookup]
by     = ["who"]
bucket = { size = 100, refill = "1 per 1h" }
cost   = { "200" = 1, "404" = 20 }
debt   = true
hold   = "10s"

[policy.plain]
by     = ["who"]
window = "1 per 1h"
"#;

fn lookup(at: i64, rest: &str) -> String {
    format!(r#"{{"at":{at},"gate":"lookup","subject":{{"who":"a"}}{rest}}}"#)
}

fn lookup_settled_after(at: i64, status: u16, after: i64) -> String {
    lookup(at, &format!(r#","outcome":{{"status":{status}}},"after_ms":{after}"#))
}

fn balances(all: &[Value]) -> Vec<Option<i64>> {
    numbers(all, "/settled/policies/0/balance")
}

#[test]
fn an_outcome_settles_at_once_and_the_next_line_sees_it() {
    let all = results(LOOKUP, &[lookup(0, r#","outcome":{"status":404}"#), lookup(0, "")]);
    assert_eq!(numbers(&all, "/remaining"), [Some(99), Some(79)]);
    assert_eq!(all[0]["settled"]["state"], "settled");
    assert_eq!(all[0]["settled"]["policies"][0]["charged"], 20);
    assert!(all[1].get("settled").is_none(), "{}", all[1]);
}

#[test]
fn a_settle_due_at_an_instant_runs_before_the_lines_of_that_instant() {
    let lines =
        [lookup_settled_after(0, 404, 100), lookup(99, ""), lookup(100, ""), lookup(100, "")];
    let all = results(LOOKUP, &lines);
    assert_eq!(numbers(&all, "/remaining"), [Some(99), Some(98), Some(78), Some(77)]);
    assert_eq!(balances(&all), [Some(79), None, None, None]);
}

#[test]
fn results_keep_the_order_of_their_lines() {
    let lines = [
        lookup_settled_after(0, 404, 300),
        lookup_settled_after(1, 200, 100),
        lookup(2, ""),
        lookup_settled_after(400, 200, 5),
    ];
    let all = results(LOOKUP, &lines);
    assert_eq!(numbers(&all, "/at"), [Some(0), Some(1), Some(2), Some(400)]);
    assert_eq!(balances(&all), [Some(78), Some(97), None, Some(77)]);
}

#[test]
fn of_several_settles_the_one_due_first_comes_first_then_the_earlier_line() {
    // Due at 100, 50 and 100: the second first, then the first, then the third.
    let all = results(
        LOOKUP,
        &[
            lookup_settled_after(0, 404, 100),
            lookup_settled_after(0, 404, 50),
            lookup_settled_after(60, 404, 40),
        ],
    );
    assert_eq!(numbers(&all, "/remaining"), [Some(99), Some(98), Some(78)]);
    assert_eq!(balances(&all), [Some(59), Some(79), Some(40)]);
}

#[test]
fn what_is_due_after_the_last_line_still_comes() {
    let all = results(
        LOOKUP,
        &[lookup_settled_after(0, 404, 9_999), lookup_settled_after(0, 404, 9_998)],
    );
    assert_eq!(balances(&all), [Some(60), Some(79)]);
}

#[test]
fn an_outcome_later_than_the_hold_is_expired_and_leaves_what_was_held() {
    for (after, state) in [(9_999, "settled"), (10_000, "expired"), (i64::MAX, "expired")] {
        let all = results(LOOKUP, &[lookup_settled_after(0, 404, after), lookup(20_000, "")]);
        assert_eq!(all[0]["settled"]["state"], state, "{after}");
        let left = if state == "expired" { 98 } else { 79 };
        assert_eq!(all[1]["remaining"], left, "{after}");
    }
}

#[test]
fn a_denied_check_and_one_without_a_ticket_ignore_their_outcome() {
    let plain = r#"{"at":0,"gate":"plain","subject":{"who":"a"},"outcome":{"status":500}}"#;
    let later = plain.replace("}}", "},\"after_ms\":50}");
    let all = results(LOOKUP, &[plain, &later, plain]);
    assert_eq!(reasons(&all), ["ok", "over_limit", "over_limit"]);
    for result in &all {
        assert_eq!(result.get("settled"), Some(&Value::Null), "{result}");
        assert_eq!(result["ticket"], Value::Null);
    }
}

#[test]
fn a_reported_cost_is_charged_as_reported() {
    let catalog = r#"
        [policy.llm]
        by      = ["who"]
        bucket  = { size = 1000, refill = "10 per 1m" }
        cost    = "reported"
        reserve = 100
        debt    = true
    "#;
    let line = r#"{"at":0,"gate":"llm","subject":{"who":"a"},"outcome":{"cost":640}}"#;
    let all = results(catalog, &[line, line]);
    assert_eq!(numbers(&all, "/remaining"), [Some(900), Some(260)]);
    assert_eq!(balances(&all), [Some(360), Some(-280)]);
}

/// covers: 000-01, 000-02, 000-03
#[test]
fn a_body_may_ban_and_the_ban_ends_on_time() {
    let catalog = r#"
        [policy.pay]
        each = ["customer", "session"]
        ban  = [ { when = "body.reject_id == 5", for = "10m", reason = "reject_id: 5" } ]
    "#;
    let pay = |at: i64, outcome: &str| {
        format!(r#"{{"at":{at},"gate":"pay","subject":{{"session":"s"}},"outcome":{outcome}}}"#)
    };
    let fine = [r#"{"reject_id":4}"#, r#"{"reject_id":6}"#, r#"{"reject_id":null}"#, "{}", "null"];
    let mut lines: Vec<_> = fine.map(|body| pay(0, &format!(r#"{{"body":{body}}}"#))).to_vec();
    lines.push(pay(0, r#"{"body":{"reject_id":5}}"#));
    lines.extend([pay(599_999, "{}"), pay(600_000, "{}")]);
    let all = results(catalog, &lines);
    assert_eq!(reasons(&all), ["ok", "ok", "ok", "ok", "ok", "ok", "blocked", "ok"]);
    let ban = &all[5]["settled"]["policies"][0];
    assert_eq!((&ban["blocked_by"], &ban["reason"]), (&"ban".into(), &"reject_id: 5".into()));
    assert_eq!(ban["blocked_until"], "1970-01-01T00:10:00Z");
}
