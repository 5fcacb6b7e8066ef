//! Invalid lines of a history: each is reported, changes nothing, and the replay continues.

use super::{LOGIN, login, replay};

/// Replays one invalid line between two valid ones; the invalid line must not use quota.
fn replay_invalid(bad: &str) -> String {
    let output = replay(LOGIN, &[&login(0), bad, &login(10)]);
    assert_eq!(output.code, Some(2), "{bad:.200}");
    let [first, error, second] = &output.json()[..] else { panic!("{}", output.out) };
    assert_eq!((&first["remaining"], &second["remaining"]), (&2.into(), &1.into()), "{bad:.200}");
    assert_eq!(error["line"], 2);
    assert_eq!(error.as_object().map(serde_json::Map::len), Some(2), "{error}");
    error["error"].as_str().unwrap().to_owned()
}

fn check(rest: &str) -> String {
    format!(r#"{{"at":5,"gate":"login","subject":{{"ip":"198.51.100.7"}}{rest}}}"#)
}

#[test]
fn malformed_lines_are_refused_by_what_is_wrong() {
    for (bad, why) in [
        ("login 198.51.100.7", "not JSON: "),
        (r#"{"at":5,"gate":"login","subject":{"ip":"198.51.100.7"}"#, "not JSON: EOF"),
        (r#"{"at":5,"gate":"login"}"#, "`subject` is missing"),
        (r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#, "`at` is missing"),
        (r#"{"at":5,"gate":"logn","subject":{}}"#, "no gate or policy is called `logn`"),
        (r#"{"at":5,"gate":"login","subject":{}}"#, "policy `login` counts by `ip`"),
        (r#"{"at":5,"gate":"login","subject":{"ip":"localhost"}}"#, "attribute `ip`: "),
        (r#"{"at":5,"gate":"login","subject":{"ip":7}}"#, "`subject`: `ip`: takes a text"),
        (r#"{"at":5,"reset":{"policy":"logn","subject":{}}}"#, "no policy is called `logn`"),
        (r#"{"at":5,"reset":{"policy":"login","subject":{}}}"#, "policy `login` counts by"),
        (r#"{"at":5,"credit":{"ref":"","event":"p","subject":{}}}"#, "the reference has 0 bytes"),
        (r#"{"at":5}"#, "`gate` is missing"),
        (&check(r#","namespace":"other""#), "unknown field `namespace`"),
        (&check(r#","window":"9 per 1s""#), "unknown field `window`"),
        (&check(r#","outcome":{"state":200}"#), "unknown field `state`: `outcome` takes"),
        (&check(r#","reset":{"policy":"login","subject":{}}"#), "a line has one kind"),
    ] {
        let error = replay_invalid(bad);
        assert!(error.starts_with(why), "{bad}\n  {error}");
    }
}

/// covers: 003-05
#[test]
fn inline_limits_are_refused() {
    let error = replay_invalid(&check(r#","limit":1000000"#));
    assert!(error.starts_with("unknown field `limit`"), "{error}");
}

#[test]
fn absurd_costs_are_refused_by_name() {
    for cost in ["-1", "1099511627777", "9223372036854775807", "-9223372036854775808"] {
        let error = replay_invalid(&check(&format!(r#","cost":{cost}"#)));
        assert_eq!(error, format!("cost {cost} is not between 0 and 1099511627776"));
        let error = replay_invalid(&check(&format!(r#","outcome":{{"cost":{cost}}}"#)));
        assert!(error.starts_with(&format!("`outcome.cost`: cost {cost} is not")), "{error}");
    }
    for cost in ["9223372036854775808", "-9223372036854775809", "1e400", "0.5", "\"1\""] {
        let error = replay_invalid(&check(&format!(r#","cost":{cost}"#)));
        assert!(error.starts_with("`cost`: "), "{error}");
    }
}

#[test]
fn instants_and_delays_at_the_edge_are_refused_or_exact() {
    for at in ["-1", "-9223372036854775808", "9223372036854775807", "18446744073709551615"] {
        let bad = login(0).replace("\"at\":0", &format!("\"at\":{at}"));
        let error = replay_invalid(&bad);
        assert!(error.starts_with("`at`: "), "{error}");
    }
    let outcome = r#","outcome":{"status":200},"after_ms":"#;
    for after in ["-1", "-9223372036854775808", "9223372036854775808"] {
        let error = replay_invalid(&check(&format!("{outcome}{after}")));
        assert!(error.starts_with("`after_ms`: "), "{error}");
    }
}

#[test]
fn huge_keys_are_refused_by_name() {
    let of = |bytes: usize| login(5).replace("198.51.100.7", &"x".repeat(bytes));
    let error = replay_invalid(&of(500_000));
    assert_eq!(
        error,
        "attribute `ip` has 500000 bytes, more than 256: send a shorter value or a hash"
    );
    assert_eq!(replay_invalid(&of(10_000_000)), "the line has more than 1048576 bytes");
    let gate = login(5).replace("login", &"g".repeat(300));
    assert!(
        replay_invalid(&gate).starts_with("the gate has 300 bytes"),
        "{}",
        replay_invalid(&gate)
    );
    let reference = check(&format!(r#","ref":"{}""#, "r".repeat(257)));
    assert!(replay_invalid(&reference).starts_with("the reference has 257 bytes"));
}

#[test]
fn text_that_is_no_text_and_depth_without_end_are_refused() {
    let dir = crate::cli::test_dir::TestDir::with_file("catalog.toml", LOGIN);
    dir.write("events.jsonl", b"{\"at\":5,\"gate\":\"\xff\xfe\",\"subject\":{}}\n");
    let output = dir.run(&["simulate", "-c", "catalog.toml", "events.jsonl", "-o", "json"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.out.starts_with(r#"{"line":1,"error":"`gate`: invalid unicode"#),
        "{}",
        output.out
    );
    let error =
        replay_invalid(&check(&format!(r#","outcome":{{"body":{}"#, "[".repeat(1_000_000))));
    assert!(error.starts_with("`outcome.body`: recursion limit exceeded"), "{error}");
}

/// A lookup whose outcome comes a second later, then a line far ahead that must be refused.
const LOOKUP: &str = "[policy.lookup]\nby = ['ip']\nbucket = { size = 100, refill = '1 per 1h' }\n\
                      cost = { '404' = 20, default = 1 }\n\
                      credit = { payment = { amount = 1, on = ['404'] } }\n";

/// Regression: only checks were validated before due settles ran, so a refused operator line had
/// moved the time.
#[test]
fn a_refused_act_does_not_move_the_time_either() {
    let ip = r#""subject":{"ip":"198.51.100.7"}"#;
    let check = |at: u32, rest: &str| format!(r#"{{"at":{at},"gate":"lookup",{ip}{rest}}}"#);
    let first = check(0, r#","ref":"E1","outcome":{"status":404},"after_ms":1000"#);
    let reason = "r".repeat(1_001);
    for (act, why) in [
        (r#""reset":{"policy":"lokup","subject":{}}"#.to_owned(), "no policy is called `lokup`"),
        (r#""unblock":{"policy":"lookup","subject":{}}"#.to_owned(), "policy `lookup` counts by"),
        (format!(r#""block":{{"policy":"lookup",{ip},"for":"0s"}}"#), "a block needs a duration"),
        (
            format!(r#""block":{{"policy":"lookup",{ip},"for":"1s","reason":"{reason}"}}"#),
            "the reason has 1001 characters",
        ),
        (
            r#""credit":{"ref":"E1","event":"payment","subject":{"ip":"x"}}"#.to_owned(),
            "attribute `ip`",
        ),
    ] {
        let bad = format!(r#"{{"at":9000,{act}}}"#);
        let output = replay(LOOKUP, &[&first, &bad, &check(10, ""), &check(2_000, "")]);
        assert_eq!(output.code, Some(2), "{bad}");
        let all = output.json();
        assert!(all[1]["error"].as_str().unwrap().starts_with(why), "{}", all[1]);
        let left = [&all[0], &all[2], &all[3]].map(|one| one["remaining"].as_i64().unwrap());
        assert_eq!(left, [99, 98, 78], "{bad}: the outcome was applied when it was due");
    }
}

/// The invalid line is refused before any settle that is due at its time runs.
#[test]
fn a_refused_line_does_not_move_the_time() {
    let far = r#"{"at":9000000,"gate":"nowhere","subject":{"ip":"198.51.100.7"}}"#;
    assert!(replay_invalid(far).starts_with("no gate or policy is called `nowhere`"));
    let missing = r#"{"at":9000000,"gate":"login","subject":{}}"#;
    assert!(replay_invalid(missing).starts_with("policy `login` counts by `ip`"));
}
