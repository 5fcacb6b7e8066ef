//! Virtual time: it never goes back, and it is printed as it was written.

use super::{LOGIN, login, numbers, replay, results};

#[test]
fn a_line_before_the_one_above_is_refused() {
    let output = replay(LOGIN, &[login(1_000), login(999), login(1_000)]);
    assert_eq!(output.code, Some(2));
    let all = output.json();
    assert_eq!(numbers(&all, "/remaining"), [Some(2), None, Some(1)]);
    let why = "`at`: 999 is before 1000, the time of an earlier line; sort the events by time";
    assert_eq!((&all[1]["line"], &all[1]["error"]), (&2.into(), &why.into()));
}

#[test]
fn both_ways_to_write_an_instant_are_one_time_and_each_is_echoed() {
    let texts = ["2026-01-01T00:00:59.999Z", "2025-12-31T21:01:00-03:00", "2026-01-01T00:00:00Z"];
    let in_text = |at: &str| login(0).replace("\"at\":0", &format!("\"at\":\"{at}\""));
    let start = 1_767_225_600_000;
    let output =
        replay(LOGIN, &[login(start), in_text(texts[0]), in_text(texts[1]), in_text(texts[2])]);
    let all = output.json();
    assert_eq!(numbers(&all, "/remaining"), [Some(2), Some(1), Some(1), None]);
    assert_eq!(all[0]["at"], start);
    assert_eq!((&all[1]["at"], &all[2]["at"]), (&texts[0].into(), &texts[1].into()));
    let error = all[3]["error"].as_str().unwrap();
    let why = "`at`: 2026-01-01T00:00:00Z is before 2026-01-01T00:01:00Z";
    assert!(error.starts_with(why), "{error}");
}

/// An invalid line with a settle time does not run due settles: the next valid line is not too
/// early.
#[test]
fn what_is_due_does_not_run_for_a_line_that_is_refused() {
    let lookup =
        r#"{"at":0,"gate":"lookup","subject":{"who":"a"},"outcome":{"status":404},"after_ms":500}"#;
    let early = r#"{"at":100,"gate":"lookup","subject":{"who":"a"}}"#;
    let wrong = r#"{"at":900,"gate":"nowhere","subject":{"who":"a"}}"#;
    let catalog = r#"
        [policy.lookup]
        by     = ["who"]
        bucket = { size = 100, refill = "1 per 1h" }
        cost   = { "404" = 20 }
    "#;
    let output = replay(catalog, &[lookup, wrong, early, &early.replace("100", "500")]);
    let all = output.json();
    assert_eq!(numbers(&all, "/remaining"), [Some(99), None, Some(98), Some(78)], "{}", output.out);
}

/// covers: 002-21
#[test]
fn the_edge_of_a_window_is_exact_to_the_millisecond() {
    let catalog = "[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1s\"\n";
    let all = results(catalog, &[login(0), login(999), login(1_000)]);
    assert_eq!(numbers(&all, "/retry_after_ms"), [None, Some(1), None]);
    assert_eq!(all[2]["allowed"], true);
}
