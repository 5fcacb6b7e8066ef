//! Tests of valid and invalid lines.

use super::*;

fn error(line: &str) -> String {
    Event::read(line.as_bytes()).map(|event| format!("{event:?}")).expect_err(line)
}

fn check(line: &str) -> (Time, CheckEvent<'_>) {
    match Event::read(line.as_bytes()).unwrap() {
        Event { at, kind: EventKind::Check(check) } => (at.time, check),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_check_with_all_fields_is_parsed() {
    let line = r#"{"at":"2026-01-01T00:00:00.5Z","gate":"lo\u0067in","subject":{"ip":"::1","a":"b"},
        "cost":3,"ref":"E1","lists":false,"after_ms":40,
        "outcome":{"status":404,"body":{"reject_id":5},"headers":{"Retry-After":"7"},"cost":9}}"#;
    let (time, event) = check(line);
    assert_eq!(time, Time::parse_rfc3339("2026-01-01T00:00:00.5Z").unwrap());
    let parsed = event.check();
    assert_eq!(
        (parsed.gate, parsed.cost, parsed.reference, parsed.lists),
        ("login", Some(3), Some("E1"), false)
    );
    assert_eq!(parsed.subject, Subject::from([("ip", "::1"), ("a", "b")]));
    let (outcome, after) = event.outcome.as_ref().unwrap();
    assert_eq!(*after, Span::from_millis(40));
    assert_eq!((outcome.status, outcome.cost), (Some(404), Some(9)));
    assert_eq!(outcome.body["reject_id"], 5);
    assert_eq!(outcome.headers, [("retry-after".to_owned(), "7".to_owned())]);
}

#[test]
fn null_means_missing_and_lists_are_on_by_default() {
    let (_, event) =
        check(r#"{"at":1,"gate":"a","subject":{},"cost":null,"ref":null,"outcome":null}"#);
    let parsed = event.check();
    assert_eq!((parsed.cost, parsed.reference, parsed.lists), (None, None, true));
    assert!(event.outcome.is_none());
}

#[test]
fn after_ms_may_be_in_the_outcome_but_not_twice() {
    let (_, event) = check(r#"{"at":1,"gate":"a","subject":{},"outcome":{"after_ms":7}}"#);
    assert_eq!(event.outcome.unwrap().1, Span::from_millis(7));
    let twice = error(r#"{"at":1,"gate":"a","subject":{},"after_ms":7,"outcome":{"after_ms":7}}"#);
    assert!(twice.contains("`after_ms` is given twice"), "{twice}");
}

#[test]
fn every_wrong_type_names_its_field() {
    let wrong = [
        (
            r#"{"at":true,"gate":"a","subject":{}}"#,
            "`at`: invalid type: boolean `true`, expected whole milliseconds or RFC 3339 (column",
        ),
        (r#"{"at":"noon","gate":"a","subject":{}}"#, "`at`: `noon` is not an instant"),
        (r#"{"at":0,"gate":7,"subject":{}}"#, "`gate`: takes a text: put the number in quotes"),
        (
            r#"{"at":0,"gate":"a","subject":[]}"#,
            "`subject`: invalid type: sequence, expected an object of texts",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{"payer":11144477735}}"#,
            "`subject`: `payer`: takes a text: put the number in quotes",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{"ip":null}}"#,
            "`subject`: `ip`: invalid type: null, expected a text",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{},"cost":"5"}"#,
            "`cost`: invalid type: string \"5\", expected a whole number",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{},"lists":1}"#,
            "`lists`: invalid type: integer `1`, expected a boolean",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{},"outcome":404}"#,
            "invalid type: integer `404`, expected an object for `outcome`",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{},"outcome":{"status":"404"}}"#,
            "`outcome.status`: invalid type: string \"404\", expected a whole number",
        ),
        (
            r#"{"at":0,"gate":"a","subject":{},"outcome":{"headers":{"a":1}}}"#,
            "`outcome.headers`: `a`: takes a text",
        ),
        (r#"{"at":0,"block":{"policy":"a","subject":{},"for":60}}"#, "`block.for`: takes a text"),
        (
            r#"{"at":0,"block":{"policy":"a","subject":{},"for":"60"}}"#,
            "`block.for`: `60` has no unit",
        ),
        (r#"{"at":0,"reset":5}"#, "`reset`: invalid type: integer `5`, expected an object"),
        (r#"[1]"#, "invalid type: sequence, expected an object"),
    ];
    for (line, expected) in wrong {
        let error = error(line);
        assert!(error.starts_with(expected), "{line}\n  {error}");
    }
}

#[test]
fn a_private_value_is_not_echoed() {
    let error = error(r#"{"at":0,"gate":"a","subject":{"payer":11144477735}}"#);
    assert!(!error.contains("11144477735"), "{error}");
}

#[test]
fn numbers_at_the_edge_are_named() {
    let with_cost = |cost: &str| format!(r#"{{"at":0,"gate":"a","subject":{{}},"cost":{cost}}}"#);
    for (cost, expected) in [
        ("9223372036854775808", "`cost`: 9223372036854775808 is out of range"),
        ("-9223372036854775809", "`cost`: -9223372036854776000 is out of range"),
        ("1e30", "`cost`: 1000000000000000000000000000000 is out of range"),
        ("1.5", "`cost`: 1.5 is written with a fraction or an exponent"),
        ("1e3", "`cost`: 1000 is written with a fraction or an exponent"),
    ] {
        let error = error(&with_cost(cost));
        assert!(error.starts_with(expected), "{cost}: {error}");
    }
    // The parser accepts these two; the engine validates them.
    for cost in [i64::MAX, i64::MIN] {
        assert_eq!(check(&with_cost(&cost.to_string())).1.check().cost, Some(cost));
    }
}

#[test]
fn instants_stay_within_what_can_be_counted() {
    let at = |at: &str| error(&format!(r#"{{"at":{at},"gate":"a","subject":{{}}}}"#));
    assert!(at("-1").starts_with("`at`: -1 is before 1970-01-01T00:00:00Z"), "{}", at("-1"));
    for late in
        ["9223372036854775807", "9007199254741", "18446744073709551615", "\"9999-12-31T23:59:59Z\""]
    {
        assert!(at(late).contains("is too late"), "{}", at(late));
    }
    assert!(at("\"1969-12-31T23:59:59Z\"").contains("too early"));
    assert!(at("0.5").contains("fraction"));
    let last = check(r#"{"at":9007199254740,"gate":"a","subject":{}}"#).0;
    assert_eq!(last, Time::from_millis(9_007_199_254_740));
}

#[test]
fn outcomes_are_validated_before_their_check_is_charged() {
    let outcome = |outcome: &str| {
        error(&format!(r#"{{"at":0,"gate":"a","subject":{{}},"outcome":{outcome}}}"#))
    };
    assert!(outcome(r#"{"cost":-1}"#).starts_with("`outcome.cost`: cost -1 is not between 0 and"));
    assert!(
        outcome(r#"{"cost":9223372036854775807}"#)
            .starts_with("`outcome.cost`: cost 9223372036854775807")
    );
    assert!(outcome(r#"{"status":65536}"#).starts_with("`outcome.status`: 65536 is not a status"));
    assert!(outcome(r#"{"after_ms":-1}"#).starts_with("`after_ms`: -1 is negative"));
}

#[test]
fn unknown_missing_and_repeated_fields_are_named() {
    let wrong = [
        (
            r#"{"at":0,"gate":"a","subject":{},"costs":1}"#,
            "unknown field `costs`: a line takes at, gate, subject, cost",
        ),
        (r#"{"at":0,"gate":"a","subject":{},"namespace":"x"}"#, "unknown field `namespace`"),
        (
            r#"{"at":0,"gate":"a","subject":{},"outcome":{"stat":1}}"#,
            "unknown field `stat`: `outcome` takes status, body, headers, cost",
        ),
        (
            r#"{"at":0,"reset":{"policy":"a","subject":{},"all":true}}"#,
            "`reset`: unknown field `all`: it takes policy, subject",
        ),
        (r#"{"at":0,"at":0,"gate":"a","subject":{}}"#, "`at` is given twice"),
        (r#"{"at":0,"gate":"a","subject":{"ip":"1","ip":"2"}}"#, "`subject`: `ip` is given twice"),
        (r#"{"gate":"a","subject":{}}"#, "`at` is missing"),
        (r#"{"at":0,"gate":"a"}"#, "`subject` is missing"),
        (r#"{"at":0,"subject":{}}"#, "`gate` is missing"),
        (r#"{"at":0}"#, "`gate` is missing; or one of `credit`"),
        (r#"{}"#, "`at` is missing"),
        (r#"{"at":0,"credit":{"event":"p","subject":{}}}"#, "`credit.ref` is missing"),
        (r#"{"at":0,"credit":{"ref":"E","subject":{}}}"#, "`credit.event` is missing"),
        (r#"{"at":0,"credit":{"ref":"E","event":"p"}}"#, "`credit.subject` is missing"),
        (r#"{"at":0,"block":{"policy":"a","subject":{}}}"#, "`block.for` is missing"),
        (r#"{"at":0,"unblock":{"policy":"a"}}"#, "`unblock.subject` is missing"),
        (r#"{"at":0,"reset":{"subject":{}}}"#, "`reset.policy` is missing"),
        (
            r#"{"at":0,"gate":"a","subject":{},"after_ms":5}"#,
            "`after_ms` is the delay of an outcome",
        ),
    ];
    for (line, expected) in wrong {
        let error = error(line);
        assert!(error.starts_with(expected), "{line}\n  {error}");
    }
}

#[test]
fn a_line_has_one_kind() {
    let reset = r#""reset":{"policy":"a","subject":{}}"#;
    let both = error(&format!(r#"{{"at":0,"gate":"a","subject":{{}},{reset}}}"#));
    assert_eq!(both, "a line has one kind, and this one has `reset` and `gate`");
    let stray = error(&format!(r#"{{"at":0,"cost":5,{reset}}}"#));
    assert_eq!(stray, "`cost` belongs to a check, and this line is a `reset`");
}

#[test]
fn invalid_json_is_reported_with_its_column() {
    assert_eq!(error(r#"{"at":0,"gate":"a""#), "not JSON: EOF while parsing an object (column 18)");
    assert_eq!(error(r#"{"at":0} {}"#), "not JSON: trailing characters (column 10)");
    assert!(error("login 198.51.100.7").starts_with("not JSON: "));
    let log = "198.51.100.7 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5";
    assert!(error(log).ends_with("; if this is an access log, add `--format combined`"));
    let not_text = Event::read(b"{\"at\":0,\"gate\":\"\xff\",\"subject\":{}}").unwrap_err();
    assert!(not_text.contains("invalid unicode"), "{not_text}");
    let deep = format!(
        r#"{{"at":0,"gate":"a","subject":{{}},"outcome":{{"body":{}}}}}"#,
        "[".repeat(500_000)
    );
    assert!(error(&deep).contains("recursion limit"), "{}", error(&deep));
}
