//! `--compare` and `--report`.

use std::fs;

use super::{LOGIN, login};
use crate::cli::test_dir::{CliOutput, TestDir};

/// Seven tries in a minute from one address, three from another.
fn test_dir(after: &str) -> TestDir {
    let dir = TestDir::with_file("before.toml", LOGIN);
    dir.write("after.toml", after);
    let mut lines: Vec<_> = (0..7).map(|second| login(second * 1_000)).collect();
    lines.extend((0..3).map(|second| login(8_000 + second).replace("100.7", "100.8")));
    dir.write("events.jsonl", lines.join("\n"));
    dir
}

fn run_compare(after: &str, more: &[&str]) -> CliOutput {
    let args = ["simulate", "-c", "before.toml", "--compare", "after.toml", "events.jsonl"];
    test_dir(after).run(&[&args[..], more].concat())
}

#[test]
fn a_looser_limit_shows_who_passes_now() {
    let output = run_compare(&LOGIN.replace("3 per", "5 per"), &["-o", "json"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let all = output.json();
    assert_eq!(all.len(), 1);
    let found = &all[0];
    assert_eq!((&found["events"], &found["from"]), (&10.into(), &"1970-01-01T00:00:00Z".into()));
    assert_eq!((&found["before"]["allowed"], &found["before"]["denied"]), (&6.into(), &4.into()));
    assert_eq!((&found["after"]["allowed"], &found["after"]["denied"]), (&8.into(), &2.into()));
    let policy = &found["policies"][0];
    assert_eq!(policy["before"]["terms"], "window 3 per 1m, block 15m");
    assert_eq!(policy["after"]["while_blocked"], 1);
    assert_eq!(found["newly_denied"]["requests"], 0);
    let top = r#"[{"policy":"login","subject":"ip=198.51.100.7","times":2}]"#;
    assert_eq!(found["newly_allowed"]["top"].to_string(), top);
}

#[test]
fn a_tighter_limit_shows_who_is_denied_now() {
    let output = run_compare(&LOGIN.replace("3 per", "2 per"), &[]);
    assert_eq!(output.code, Some(0));
    for expected in [
        "10 events over 8s2ms, from 0s to 8s2ms\nbefore  before.toml  revision ",
        " allowed        6   60.0%       4   40.0%       −2\n",
        "\n2 requests of 2 subjects pass with before.toml and are denied with after.toml:\n",
        " login    ip=198.51.100.7       1\n login    ip=198.51.100.8       1\n",
        "\nNo requests are denied with before.toml and pass with after.toml.\n",
    ] {
        assert!(output.out.contains(expected), "{expected}{}", output.out);
    }
}

#[test]
fn policies_that_come_and_go_are_told() {
    let after =
        LOGIN.replace("policy.login", "policy.other") + "\n[gate.login]\npolicies=['other']";
    let found = run_compare(&after, &["-o", "json"]).json().remove(0);
    assert_eq!(found["policies"][0]["policy"], "login");
    assert!(found["policies"][0]["after"].is_null() && found["policies"][1]["before"].is_null());
    assert_eq!(found["newly_denied"]["requests"], 0);
}

#[test]
fn a_gate_that_is_gone_makes_bad_lines_under_one_catalog_alone() {
    let output = run_compare(&LOGIN.replace("policy.login", "policy.other"), &[]);
    assert_eq!(output.code, Some(2));
    let note = "note: before.toml has 0 bad lines and after.toml has 10 bad lines; simulate each \
                alone to see the reasons\n";
    assert_eq!(output.err, note);
}

#[test]
fn the_comparison_is_that_of_two_runs_alone() {
    let after = LOGIN.replace("3 per 1m", "2 per 3s");
    let found = run_compare(&after, &["-o", "json"]).json().remove(0);
    for (side, catalog) in [("before", "before.toml"), ("after", "after.toml")] {
        let alone =
            test_dir(&after).run(&["simulate", "-c", catalog, "events.jsonl", "-o", "json"]);
        let allowed = alone.json().iter().filter(|line| line["allowed"] == true).count();
        assert_eq!(found[side]["allowed"], allowed, "{side}");
    }
}

#[test]
fn a_report_is_written_beside_what_is_printed() {
    let dir = test_dir(LOGIN);
    let args = ["simulate", "-c", "before.toml", "events.jsonl", "--report", "out.html"];
    let plain = dir.run(&args[..4]);
    let output = dir.run(&args);
    assert_eq!((output.code, output.out, output.err), (plain.code, plain.out, plain.err));
    let page = fs::read_to_string(dir.path("out.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("events.jsonl under before.toml"));
    let json = dir.run(&[&args[..], &["-o", "json"]].concat());
    assert_eq!((json.json().len(), json.err.as_str()), (10, ""));
    assert_eq!(page, fs::read_to_string(dir.path("out.html")).unwrap());
    let both = dir.run(&[&args[..], &["--compare", "after.toml"]].concat());
    assert_eq!(both.code, Some(0));
    let page = fs::read_to_string(dir.path("out.html")).unwrap();
    assert!(page.contains("Every decision stays as it is."), "{page}");
    let nowhere = dir.run(&[&args[..5], &["gone/out.html"]].concat());
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("cannot write gone/out.html"), "{}", nowhere.err);
}

#[test]
fn a_hostile_history_cannot_write_markup_nor_move_the_cursor() {
    let dir = TestDir::with_file("c.toml", "[policy.p]\nby = ['user']\nwindow = '1 per 1m'\n");
    let user = r#"<script>alert(1)</script>\u001b[2J"#;
    let line = format!(r#"{{"at":0,"gate":"p","subject":{{"user":"{user}"}}}}"#);
    dir.write("e.jsonl", format!("{line}\n{line}\n"));
    let output = dir.run(&["simulate", "-c", "c.toml", "e.jsonl", "--report", "out.html"]);
    assert!(
        output.out.contains("user=<script>") && !output.out.contains('\u{1b}'),
        "{}",
        output.out
    );
    let page = fs::read_to_string(dir.path("out.html")).unwrap();
    assert!(page.contains("user=&lt;script&gt;alert(1)") && !page.contains("<script"), "{page}");
}
