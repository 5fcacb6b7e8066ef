//! `catraca test`.

use crate::cli::test_dir::TestDir;

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "2 per 1m"
block  = "15m"
"#;

const GOOD: &str = r#"
catalog = "shop.toml"

[[scenario]]
name = "the third login is blocked"

[[scenario.step]]
at     = "0s"
times  = 2
check  = { gate = "login", subject = { ip = "198.51.100.7" } }
expect = { allowed = true }

[[scenario.step]]
at     = "1s"
check  = { gate = "login", subject = { ip = "198.51.100.7" } }
expect = { allowed = false, reason = "over_limit", retry_after_ms = 900000 }
"#;

fn test_dir() -> TestDir {
    let dir = TestDir::with_file("shop.toml", CATALOG);
    dir.write("good.scenario.toml", GOOD);
    dir.write("bad.scenario.toml", GOOD.replace("900000", "60000"));
    dir
}

#[test]
fn a_passing_scenario_is_one_line() {
    let output = test_dir().run(&["test", "good.scenario.toml"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    let expected = "\
good.scenario.toml
  ok    the third login is blocked (3 steps)

1 passed, 0 failed
";
    assert_eq!(output.out, expected);
}

#[test]
fn a_mismatch_shows_the_difference_and_exits_1() {
    let output = test_dir().run(&["test", "good.scenario.toml", "bad.scenario.toml"]);
    assert_eq!(output.code, Some(1));
    let expected = "\
bad.scenario.toml
  FAIL  the third login is blocked
        bad.scenario.toml:15: step 2 at 2026-01-01T00:00:01Z
          retry_after_ms  expected 60000, got 900000

1 passed, 1 failed
";
    assert!(output.out.ends_with(expected), "{}", output.out);
}

/// Regression: a catalog with which no server would start passed its scenarios.
#[test]
fn an_error_in_a_section_about_the_process_is_that_of_lint_and_the_file_is_not_run() {
    let dir = test_dir();
    dir.write("shop.toml", format!("{CATALOG}\n[server]\nlisten_adress = \"${{PORT:x}}\"\n"));
    let linted = dir.run(&["lint", "shop.toml"]);
    let output = dir.run(&["test", "good.scenario.toml"]);
    assert_eq!((output.code, linted.code), (Some(2), Some(1)), "{}{}", output.out, linted.out);
    let place = "--> shop.toml:8:1";
    assert!(linted.out.contains(place) && output.err.contains(place), "{}", output.err);
    assert!(output.err.ends_with("good.scenario.toml: not run\n"), "{}", output.err);
    assert_eq!(output.out, "0 passed, 0 failed, 1 file not run\n");
    // Once, though two scenarios read it; with the variables of the scenario.
    dir.write("shop.toml", format!("{CATALOG}\n[server]\nlisten = \"${{LISTEN}}\"\n"));
    let listen = |address: &str| {
        let catalog = "catalog = \"shop.toml\"\n";
        let named = format!("{catalog}variables = {{ LISTEN = \"{address}\" }}\n");
        dir.write("good.scenario.toml", GOOD.replace(catalog, &named));
        dir.run(&["test", "good.scenario.toml"])
    };
    assert_eq!(listen("127.0.0.1:7878").code, Some(0));
    let refused = listen("nowhere");
    assert_eq!((refused.code, refused.err.matches("-->").count()), (Some(2), 1), "{}", refused.err);
}

#[test]
fn a_malformed_file_is_located_and_exits_2_after_the_others_ran() {
    let dir = test_dir();
    dir.write("typo.scenario.toml", GOOD.replace("expect = { allowed = true }", "expct = 1"));
    let output = dir.run(&["test", "typo.scenario.toml", "gone.toml", "bad.scenario.toml"]);
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("--> typo.scenario.toml:11:1"), "{}", output.err);
    assert!(output.err.contains("cannot read gone.toml"), "{}", output.err);
    assert!(output.out.ends_with("0 passed, 1 failed, 2 files not run\n"), "{}", output.out);
}
