//! The form of the output: one line per input line, in order, deterministic.

use serde_json::Value;

use super::{DICT, LOGIN, login, replay, results};
use crate::cli::test_dir::TestDir;

#[test]
fn a_decision_has_its_fields_in_the_documented_order() {
    let output = replay(LOGIN, &[login(7)]);
    let line = output.out.trim_end();
    let revision = output.json()[0]["revision"].as_str().unwrap().to_owned();
    let expected = format!(
        "{}{}{}",
        r#"{"at":7,"allowed":true,"reason":"ok","policy":"login","limit":3,"remaining":2,"#,
        r#""reset_after_ms":60000,"retry_after_ms":null,"blocked_until":null,"mode":"enforce","#,
        format_args!(r#""degraded":false,"revision":"{revision}","message":null,"ticket":null,"#),
    ) + r#""policies":[{"policy":"login","allowed":true,"reason":"ok","limit":3,"window_ms":60000,"#
        + r#""remaining":2,"reset_after_ms":60000,"retry_after_ms":null,"charged":1,"#
        + r#""mode":"enforce"}]}"#;
    assert_eq!(line, expected);
}

#[test]
fn every_line_but_a_blank_one_has_exactly_one_result_in_its_place() {
    let lookup = r#"{"at":1,"gate":"lookup","subject":{"participant":"1","payer":"11144477735"}"#;
    let later = format!(r#"{lookup},"outcome":{{"status":404}},"after_ms":1000}}"#);
    let plain = format!("{lookup}}}");
    let lines = [&later, "", "nonsense", &plain, "   ", r#"{"at":0}"#, &later, &plain];
    let output = replay(DICT, &lines);
    assert_eq!(output.code, Some(2));
    let all = output.json();
    assert_eq!(all.len(), 6);
    let kinds: Vec<_> = all.iter().map(|line| line["line"].as_u64()).collect();
    assert_eq!(kinds, [None, Some(3), None, Some(6), None, None]);
    assert!(all[0]["settled"].is_object() && all[2].get("settled").is_none());
    let tickets: Vec<_> = all.iter().filter_map(|line| line["ticket"].as_str()).collect();
    assert_eq!(tickets, ["line-1", "line-4", "line-7", "line-8"]);
}

#[test]
fn a_run_repeats_to_the_byte() {
    let payer = r#"{"participant":"12345678","payer":"11144477735"}"#;
    let line = format!(r#"{{"at":1,"gate":"lookup","subject":{payer},"ref":"E","outcome":{{}}}}"#);
    let lines = vec![line; 120];
    assert_eq!(replay(DICT, &lines).out, replay(DICT, &lines).out);
    let human = || {
        let dir = TestDir::with_file("catalog.toml", DICT);
        let args = ["simulate", "-c", "catalog.toml", "-"];
        dir.run_with_stdin(&args, lines.join("\n").as_bytes()).out
    };
    assert_eq!(human(), human());
}

#[test]
fn standard_input_is_read_and_the_last_line_needs_no_end() {
    let dir = TestDir::with_file("catalog.toml", LOGIN);
    let args = ["simulate", "--catalog", "catalog.toml", "-", "-o", "json"];
    let input = format!("{}\r\n\n{}", login(0), login(1));
    let output = dir.run_with_stdin(&args, input.as_bytes());
    assert_eq!((output.code, output.json().len()), (Some(0), 2));
    let nothing = dir.run_with_stdin(&args, b"");
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""));
}

#[test]
fn the_exit_code_does_not_depend_on_what_was_decided() {
    let all = results(LOGIN, &vec![login(0); 20]);
    assert_eq!(all.iter().filter(|line| line["allowed"] == false).count(), 17);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = TestDir::with_file("catalog.toml", LOGIN);
    dir.write("events.jsonl", format!("{}\n", login(0)).repeat(20_000));
    let mut command =
        dir.command(&["simulate", "-c", "catalog.toml", "events.jsonl", "-o", "json"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn warnings_and_errors_of_the_catalog_stay_off_standard_output() {
    let dir = TestDir::with_file("catalog.toml", &LOGIN.replace("15m", "5s"));
    dir.write("events.jsonl", login(0));
    let args = ["simulate", "-c", "catalog.toml", "events.jsonl", "-o", "json"];
    let output = dir.run(&args);
    assert_eq!((output.code, output.json().len()), (Some(0), 1));
    assert_eq!(output.err, "catalog.toml: 1 warning; see `catraca lint catalog.toml`\n");
    dir.write("catalog.toml", LOGIN.replace("window", "windw"));
    let output = dir.run(&args);
    assert_eq!((output.code, output.out.as_str()), (Some(2), ""));
    assert!(output.err.contains("--> catalog.toml:4:1"), "{}", output.err);
}

#[test]
fn files_that_are_not_there_exit_2() {
    let dir = TestDir::with_file("catalog.toml", LOGIN);
    for args in [["catalog.toml", "gone.jsonl"], ["gone.toml", "gone.jsonl"], ["catalog.toml", "."]]
    {
        let output = dir.run(&["simulate", "-c", args[0], args[1]]);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(output.err.starts_with("catraca: cannot read "), "{}", output.err);
    }
}

#[test]
fn private_values_appear_nowhere() {
    let payer = r#"{"participant":"12345678","payer":"11144477735"}"#;
    let line =
        format!(r#"{{"at":1,"gate":"lookup","subject":{payer},"outcome":{{"status":404}}}}"#);
    let output = replay(DICT, &vec![line.clone(); 9]);
    assert!(output.json().iter().any(|line| line["allowed"] == Value::Bool(false)));
    assert!(!output.out.contains("11144477735"));
    let dir = TestDir::with_file("catalog.toml", DICT);
    let input = vec![line; 9].join("\n");
    let human = dir.run_with_stdin(&["simulate", "-c", "catalog.toml", "-"], input.as_bytes());
    assert!(human.out.contains("payer=~") && !human.out.contains("11144477735"), "{}", human.out);
}

/// Callers that share an overflow cell are not decided on their own, so the output says so.
#[test]
fn a_run_that_outgrew_its_memory_says_that_its_figures_are_not_exact() {
    let dir = TestDir::with_file("catalog.toml", LOGIN);
    let caller =
        |n: u32| login(0).replace("198.51.100.7", &format!("10.1.{}.{}", n / 250, n % 250));
    let lines: String = (0..20_000).map(|n| caller(n) + "\n").collect();
    dir.write("events.jsonl", lines);
    let args = ["simulate", "-c", "catalog.toml", "events.jsonl", "-o", "json"];
    let output = dir.run(&[&args[..], &["--memory", "1"]].concat());
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.err.starts_with("note: the figures are not exact: more keys"), "{}", output.err);
    assert!(output.err.trim_end().ends_with("increase --memory"), "{}", output.err);
    let output = dir.run(&args);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert!(output.json().iter().all(|one| one["remaining"] == 2 && one["degraded"] == false));
}
