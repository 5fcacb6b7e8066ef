//! The blocklist and the allowlist, by hand and by file.

use std::fmt::Write;

use crate::operate::helpers::{CUSTOMER, IP, json, run, run_ok, run_with_stdin, start_server};

#[test]
fn entries_are_put_in_shown_and_taken_out() {
    let server = start_server();
    let stdout =
        run_ok(&server, &["blocklist", "add", "198.51.100.0/24", CUSTOMER, "--reason", "abuse"]);
    assert!(stdout.contains("new") && !stdout.contains("c-4711"), "{stdout}");
    assert_eq!(json(&server, &["allowlist", "add", IP, "--for", "1h"])["durable"], true);
    let stdout = run_ok(&server, &["check", "login", IP]);
    assert!(stdout.starts_with("allowed: allowlisted"), "{stdout}");
    let output = run(&server, &["check", "login", "ip=198.51.100.8"]);
    assert!(output.out.starts_with("denied: blocklisted"), "{}", output.out);
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(1));
    let listing = run_ok(&server, &["blocklist", "list"]);
    assert!(listing.contains("198.51.100.0/24") && listing.contains("forever"), "{listing}");
    assert!(listing.contains("and 1 entry in the catalog"), "{listing}");

    let mut args = vec!["blocklist", "add", "192.0.2.1", "--reason", "scans", "--why", "case 12"];
    run_ok(&server, &args);
    args.truncate(5);
    args[2] = "192.0.2.2";
    run_ok(&server, &args);
    let acts = json(&server, &["audit", "--act", "list"])["acts"].clone();
    assert_eq!((&acts[0]["why"], &acts[1]["why"]), (&"scans".into(), &"case 12".into()));
    let listing = json(&server, &["blocklist", "list"])["entries"].clone();
    assert_eq!((&listing[0]["reason"], &listing[1]["reason"]), (&"scans".into(), &"scans".into()));

    run_ok(&server, &["allowlist", "remove", "198.51.100.7"]);
    let remove = ["blocklist", "remove", "198.51.100.0/24", CUSTOMER, "--why", "they moved"];
    let stdout = run_ok(&server, &remove);
    assert!(stdout.starts_with("198.51.100.0/24 is no longer on the blocklist"), "{stdout}");
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(0));
    assert!(run_ok(&server, &["audit"]).contains("they moved"));
    run(&server, &remove).assert_exit(1, &["unknown-entry"]);
}

#[test]
fn an_inspection_says_why_until_when_and_by_whom_a_caller_is_listed() {
    let server = start_server();
    let add = ["blocklist", "add", "198.51.100.0/24", "--reason", "open proxies", "--for", "1h"];
    run_ok(&server, &add);
    let stdout = run_ok(&server, &["inspect", IP]);
    let line = stdout.lines().find(|line| line.starts_with("entry: ")).unwrap();
    let words = ["198.51.100.0/24, until 2", "reason: open proxies", "at run time by local at 2"];
    assert!(words.iter().all(|word| line.contains(word)), "{line}");
    let entry = json(&server, &["inspect", IP])["list_entry"].clone();
    assert_eq!((&entry["source"], &entry["by"]), (&"run-time".into(), &"local".into()));
    let stdout = run_ok(&server, &["inspect", "ip=192.0.2.66"]);
    let line = "entry: 192.0.2.66, until it is removed; it is in a file of the catalog";
    assert!(stdout.lines().any(|found| found == line), "{stdout}");
}

#[test]
fn a_misspelt_attribute_is_named_with_the_nearest() {
    let server = start_server();
    let nearest = "did you mean `customer`?";
    run(&server, &["blocklist", "add", "customr=c-66"]).assert_exit(2, &["bad-entry", nearest]);
    run(&server, &["allowlist", "add", "customr=c-66"]).assert_exit(2, &["bad-entry", nearest]);
    run(&server, &["blocks", "list", "customr=c-66"]).assert_exit(2, &["bad-attribute", nearest]);
}

#[test]
fn a_wrong_entry_is_named_and_nothing_is_sent() {
    let server = start_server();
    let args = ["blocklist", "add", "203.0.113.9", "300.1.1.1", "no-value", "x="];
    run(&server, &args)
        .assert_exit(2, &["3 entries are invalid", "300.1.1.1", "no-value", "\"x=\""]);
    run(&server, &["blocklist", "add", "203.0.113.9", "--until", "later"])
        .assert_exit(2, &["bad-instant"]);
    run(&server, &["blocklist", "add", "::1", "--until", "x", "--for", "1h"])
        .assert_exit(2, &["--for"]);
    run(&server, &["blocklist", "import", "no-such-file"])
        .assert_exit(2, &["cannot read no-such-file"]);
    assert_eq!(json(&server, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);
}

#[test]
fn a_file_is_imported_whole_or_its_lines_are_named() {
    let server = start_server();
    let bad = "# a list\n203.0.113.0/24\n300.1.1.1  # a slip\n\nno-value\n";
    run_with_stdin(&server, &["blocklist", "import", "-"], bad)
        .assert_exit(2, &["2 lines are invalid, and nothing was added", "-:3: ", "-:5: "]);
    assert_eq!(json(&server, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);

    // Errors that only the server can find have line numbers too, also after a thousand valid
    // lines.
    let mut bad = "payer=52998224725\npayer=123\nno-value\n".to_owned();
    for last in 0..1_200 {
        writeln!(bad, "10.{}.{}.1", last / 256, last % 256).unwrap();
    }
    bad.push_str("payer=456\n");
    run_with_stdin(&server, &["blocklist", "import", "-"], &bad).assert_exit(
        2,
        &["3 lines are invalid, and nothing was added", "-:2: ", "-:3: ", "-:1204: "],
    );
    assert_eq!(json(&server, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);

    let mut good = "# a list\n203.0.113.0/24 # scanners\n\ncustomer=c-4711\n".to_owned();
    for last in 0..1_200 {
        writeln!(good, "10.{}.{}.1", last / 256, last % 256).unwrap();
    }
    good.push_str("203.0.113.0/24\n");
    let output =
        run_with_stdin(&server, &["blocklist", "import", "-", "--reason", "weekly"], &good);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let message = "1,202 entries added to the blocklist: 1202 new, 0 renewed; 1 line is repeated";
    assert_eq!(output.out.trim(), message);
    let output = run_with_stdin(&server, &["blocklist", "import", "-", "-o", "json"], &good);
    assert!(
        output.out.contains(r#""changed":1202"#) && output.out.contains(r#""new":0"#),
        "{}",
        output.out
    );
    let all = json(&server, &["blocklist", "list", "--all"]);
    assert_eq!(all["entries"].as_array().unwrap().len(), 1_202);
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(1));
    assert_eq!(run(&server, &["check", "login", "ip=10.4.175.1"]).code, Some(1));
}
