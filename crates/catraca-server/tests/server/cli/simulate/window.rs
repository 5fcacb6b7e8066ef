//! Windows with a block, shadow policies, lists and tiers in a replay.

use super::{LOGIN, login, numbers, reasons, results};

const TEN: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"10 per 1s\"\nblock = \"5m\"\n";

/// covers: 002-41, 002-42, B-44
#[test]
fn ten_a_second_pass_and_the_eleventh_waits_five_minutes() {
    let mut lines: Vec<_> = (0..60).map(|number| login(number * 100)).collect();
    lines.extend([login(5_901), login(5_902), login(305_900), login(305_901)]);
    let all = results(TEN, &lines);
    assert!(all[..60].iter().all(|result| result["allowed"] == true));
    assert_eq!(reasons(&all[60..]), ["over_limit", "blocked", "blocked", "ok"]);
    let waits = [Some(300_000), Some(299_999), Some(1), None];
    assert_eq!(numbers(&all[60..], "/retry_after_ms"), waits);
    assert_eq!(all[60]["blocked_until"], "1970-01-01T00:05:05.901Z");
}

/// covers: X-22
#[test]
fn a_shadow_policy_says_what_it_would_do_and_lets_pass() {
    let shadow = format!("{LOGIN}mode = \"shadow\"\n");
    let all = results(&shadow, &[login(0), login(0), login(0), login(0), login(1)]);
    assert!(all.iter().all(|result| result["allowed"] == true && result["reason"] == "ok"));
    let rows: Vec<_> = all.iter().map(|result| &result["policies"][0]["reason"]).collect();
    assert_eq!(rows, ["ok", "ok", "ok", "over_limit", "blocked"]);
}

/// covers: 003-38, X-20
#[test]
fn lists_decide_unless_the_check_skips_them() {
    let lists = r#"
        [[blocklist]]
        range = "203.0.113.0/24"
        [[allowlist]]
        range = "192.0.2.1"
    "#;
    let from = |ip: &str, rest: &str| {
        format!(r#"{{"at":0,"gate":"login","subject":{{"ip":"{ip}"}}{rest}}}"#)
    };
    let lines = [
        from("203.0.113.9", ""),
        from("203.0.114.9", ""),
        from("203.0.113.9", r#","lists":false"#),
        from("192.0.2.1", r#","cost":9"#),
        from("192.0.2.1", r#","cost":9,"lists":false"#),
    ];
    let all = results(&format!("{LOGIN}{lists}"), &lines);
    assert_eq!(reasons(&all), ["blocklisted", "ok", "ok", "allowlisted", "too_costly"]);
    assert_eq!(numbers(&all, "/remaining"), [None, Some(2), Some(2), None, Some(3)]);
}

/// covers: 002-32, B-42
#[test]
fn guessed_tokens_share_the_quota_of_their_address() {
    let catalog = r#"
        [policy.token]
        by        = ["token"]
        tier      = [ { when = { token = "abc123" }, window = "100 per 1s" } ]
        otherwise = "login"
    "#;
    let with = |token: &str| {
        let subject = format!(r#"{{"ip":"198.51.100.7","token":"{token}"}}"#);
        format!(r#"{{"at":0,"gate":"token","subject":{subject}}}"#)
    };
    let lines = ["g1", "g2", "g3", "g4", "abc123"].map(with);
    let all = results(&format!("{LOGIN}{catalog}"), &lines);
    assert_eq!(reasons(&all), ["ok", "ok", "ok", "over_limit", "ok"]);
    let policies: Vec<_> = all.iter().map(|result| &result["policy"]).collect();
    assert_eq!(policies, ["login", "login", "login", "login", "token"]);
}

/// covers: 003-34
#[test]
fn an_unlisted_gate_is_counted_apart_by_the_default() {
    let catalog = format!("default = \"login\"\n{LOGIN}");
    let other = login(0).replace("\"gate\":\"login\"", "\"gate\":\"other\"");
    let all = results(&catalog, &[login(0), other.clone(), other]);
    assert_eq!(numbers(&all, "/remaining"), [Some(2), Some(2), Some(1)]);
    assert!(all[0].get("unlisted").is_none() && all[1]["unlisted"] == true);
}
