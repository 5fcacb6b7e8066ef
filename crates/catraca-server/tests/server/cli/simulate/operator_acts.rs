//! Operator lines of a history: block, release, reset.

use serde_json::json;

use super::{LOGIN, login, numbers, reasons, results};

fn act(at: i64, verb: &str, rest: &str) -> String {
    let target = r#""policy":"login","subject":{"ip":"198.51.100.7"}"#;
    format!(r#"{{"at":{at},"{verb}":{{{target}{rest}}}}}"#)
}

/// covers: 002-18
#[test]
fn a_reset_clears_the_block_and_gives_the_full_quota_back() {
    let lines = [login(0), login(0), login(0), login(0), act(5, "reset", ""), login(5)];
    let all = results(LOGIN, &lines);
    assert_eq!(reasons(&all), ["ok", "ok", "ok", "over_limit", "", "ok"]);
    assert_eq!(all[4], json!({"at": 5, "reset": {"applied": true, "reason": null}}));
    assert_eq!(all[5]["remaining"], 2);
}

/// covers: 000-33, 000-22
#[test]
fn a_later_block_moves_the_end_and_an_earlier_one_does_not() {
    let minutes = |count| act(300_000, "block", &format!(r#","for":"{count}m","reason":"abuse""#));
    let first = act(0, "block", r#","for":"10m""#);
    let lines = [first, minutes(10), minutes(4), login(899_999), login(900_000)];
    let all = results(LOGIN, &lines);
    assert_eq!(all[0], json!({"at": 0, "block": {"applied": true, "reason": null}}));
    assert_eq!(all[1]["block"], json!({"applied": true, "reason": null}));
    assert_eq!(all[2]["block"], json!({"applied": false, "reason": "already_blocked"}));
    assert_eq!(reasons(&all[3..]), ["blocked", "ok"]);
}

#[test]
fn a_release_ends_a_block_and_keeps_what_was_counted() {
    let release = |at| act(at, "unblock", "");
    let lines = [login(0), login(0), act(1, "block", r#","for":"forever""#), login(2)];
    let lines = [&lines[..], &[release(3), release(3), login(4)]].concat();
    let all = results(LOGIN, &lines);
    assert_eq!(reasons(&all), ["ok", "ok", "", "blocked", "", "", "ok"]);
    assert_eq!(numbers(&all[3..4], "/retry_after_ms"), [None]);
    assert_eq!(all[4]["unblock"], json!({"applied": true, "reason": null}));
    assert_eq!(all[5]["unblock"], json!({"applied": false, "reason": "not_blocked"}));
    assert_eq!(all[6]["remaining"], 0);
}
