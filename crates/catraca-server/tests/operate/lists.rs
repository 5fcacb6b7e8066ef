//! The blocklist and the allowlist, by hand and by file.

use std::fmt::Write;

use crate::desk::{CUSTOMER, IP, done, fed, json, run, served};

#[test]
fn entries_are_put_in_shown_and_taken_out() {
    let served = served();
    let said =
        done(&served, &["blocklist", "add", "198.51.100.0/24", CUSTOMER, "--reason", "abuse"]);
    assert!(said.contains("new") && !said.contains("c-4711"), "{said}");
    assert_eq!(json(&served, &["allowlist", "add", IP, "--for", "1h"])["durable"], true);
    let said = done(&served, &["check", "login", IP]);
    assert!(said.starts_with("allowed: allowlisted"), "{said}");
    let ran = run(&served, &["check", "login", "ip=198.51.100.8"]);
    assert!(ran.out.starts_with("denied: blocklisted"), "{}", ran.out);
    assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(1));
    let shown = done(&served, &["blocklist", "list"]);
    assert!(shown.contains("198.51.100.0/24") && shown.contains("forever"), "{shown}");
    assert!(shown.contains("and 1 entry of the catalog"), "{shown}");

    let mut args = vec!["blocklist", "add", "192.0.2.1", "--reason", "scans", "--why", "case 12"];
    done(&served, &args);
    args.truncate(5);
    args[2] = "192.0.2.2";
    done(&served, &args);
    let acts = json(&served, &["audit", "--act", "list"])["acts"].clone();
    assert_eq!((&acts[0]["why"], &acts[1]["why"]), (&"scans".into(), &"case 12".into()));
    let shown = json(&served, &["blocklist", "list"])["entries"].clone();
    assert_eq!((&shown[0]["reason"], &shown[1]["reason"]), (&"scans".into(), &"scans".into()));

    done(&served, &["allowlist", "remove", "198.51.100.7"]);
    let gone = ["blocklist", "remove", "198.51.100.0/24", CUSTOMER, "--why", "they moved"];
    let said = done(&served, &gone);
    assert!(said.starts_with("198.51.100.0/24 is no longer on the blocklist"), "{said}");
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(0));
    assert!(done(&served, &["audit"]).contains("they moved"));
    run(&served, &gone).says(1, &["unknown-entry"]);
}

#[test]
fn a_wrong_entry_is_named_and_nothing_is_sent() {
    let served = served();
    let args = ["blocklist", "add", "203.0.113.9", "300.1.1.1", "somebody", "x="];
    run(&served, &args).says(2, &["3 entries are wrong", "300.1.1.1", "somebody", "\"x=\""]);
    run(&served, &["blocklist", "add", "203.0.113.9", "--until", "later"])
        .says(2, &["bad-instant"]);
    run(&served, &["blocklist", "add", "::1", "--until", "x", "--for", "1h"]).says(2, &["--for"]);
    run(&served, &["blocklist", "import", "no-such-file"]).says(2, &["cannot read no-such-file"]);
    assert_eq!(json(&served, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);
}

#[test]
fn a_file_is_imported_whole_or_its_lines_are_named() {
    let served = served();
    let bad = "# a list\n203.0.113.0/24\n300.1.1.1  # a slip\n\nnobody\n";
    fed(&served, &["blocklist", "import", "-"], bad)
        .says(2, &["2 lines are wrong, and nothing was put in", "-:3: ", "-:5: "]);
    assert_eq!(json(&served, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);

    // What only the server can judge is told by line too, also behind a thousand good ones.
    let mut bad = "payer=52998224725\npayer=123\nnobody\n".to_owned();
    for last in 0..1_200 {
        writeln!(bad, "10.{}.{}.1", last / 256, last % 256).unwrap();
    }
    bad.push_str("payer=456\n");
    fed(&served, &["blocklist", "import", "-"], &bad)
        .says(2, &["3 lines are wrong, and nothing was put in", "-:2: ", "-:3: ", "-:1204: "]);
    assert_eq!(json(&served, &["blocklist", "list"])["entries"].as_array().unwrap().len(), 0);

    let mut good = "# a list\n203.0.113.0/24 # scanners\n\ncustomer=c-4711\n".to_owned();
    for last in 0..1_200 {
        writeln!(good, "10.{}.{}.1", last / 256, last % 256).unwrap();
    }
    good.push_str("203.0.113.0/24\n");
    let ran = fed(&served, &["blocklist", "import", "-", "--reason", "weekly"], &good);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told = "1,202 entries put on the blocklist: 1202 new, 0 renewed; 1 line is there more than \
                once";
    assert_eq!(ran.out.trim(), told);
    let ran = fed(&served, &["blocklist", "import", "-", "-o", "json"], &good);
    assert!(ran.out.contains(r#""changed":1202"#) && ran.out.contains(r#""new":0"#), "{}", ran.out);
    let all = json(&served, &["blocklist", "list", "--all"]);
    assert_eq!(all["entries"].as_array().unwrap().len(), 1_202);
    assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(1));
    assert_eq!(run(&served, &["check", "login", "ip=10.4.175.1"]).code, Some(1));
}
