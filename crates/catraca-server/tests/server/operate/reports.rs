//! The operators' queries: stats, audit, config, whoami, privacy.

use crate::operate::helpers::{CUSTOMER, IP, json, run, run_ok, start_server};
use crate::test_server::TestServer;

#[test]
fn totals_add_up_on_a_table_too() {
    let server = start_server();
    assert!(run_ok(&server, &["stats"]).contains("There were no decisions."));
    for code in [0, 0, 1, 1] {
        assert_eq!(run(&server, &["check", "login", IP]).code, Some(code));
    }
    for (args, name) in [(&["stats"][..], "policy"), (&["stats", "actions"], "action")] {
        let stdout = run_ok(&server, args);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(stdout.lines().nth(2).unwrap())[0], name, "{stdout}");
        assert_eq!(words(stdout.lines().last().unwrap()), ["all", "4", "2", "1", "1"], "{stdout}");
    }
    let top = run_ok(&server, &["stats", "top-blocked", "--limit", "3", "--last", "1h"]);
    assert!(top.contains(IP), "{top}");
    assert_eq!(json(&server, &["stats", "--last", "1h"])["total"], 4);
    let early = ["stats", "--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z"];
    assert_eq!(json(&server, &early)["total"], 0);
    run(&server, &["stats", "--last", "soon"]).assert_exit(2, &["--last"]);
    run(&server, &["stats", "--from", "soon"]).assert_exit(2, &["bad-instant"]);
    run(&server, &["stats", "--limit", "3"]).assert_exit(2, &["--limit"]);
    assert_eq!(run_ok(&server, &["stats", "callers"]), "No program has sent its name.\n");
    run(&server, &["stats", "callers", "--last", "1h"]).assert_exit(2, &["interval"]);
    run(&server, &["stats", "luck"]).assert_exit(2, &["luck"]);
}

#[test]
fn undeclared_gates_that_checks_named_are_listed() {
    let server = TestServer::with_catalog(
        "default = 'rest'\n[policy.rest]\nby = ['ip']\nwindow = '99 per 1m'\n\
         [policy.login]\nby = ['ip']\nwindow = '99 per 1m'\n",
    );
    let heading = "Gates that the catalog does not declare";
    run_ok(&server, &["check", "login", IP]);
    assert_eq!(json(&server, &["stats"])["unlisted_gates"].to_string(), "[]");
    assert!(!run_ok(&server, &["stats"]).contains(heading));
    for gate in ["logn", "export_report", "logn"] {
        run_ok(&server, &["check", gate, IP]);
    }
    let stats = json(&server, &["stats"]);
    assert_eq!(stats["unlisted_gates"].to_string(), r#"["export_report","logn"]"#);
    let stats = run_ok(&server, &["stats"]);
    assert!(stats.contains(&format!("{heading}: export_report, logn\n")), "{stats}");
}

#[test]
fn the_catalog_in_force_is_shown() {
    let server = start_server();
    let stdout = run_ok(&server, &["config", "show"]);
    assert!(stdout.starts_with("revision "), "{stdout}");
    for word in ["window 2 per 1h", "front", "login, api", "enforce"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    assert_eq!(json(&server, &["config", "show"])["policies"][0]["policy"], "login");
    assert!(stdout.contains("tier of") && stdout.contains("plan = gold"), "{stdout}");
    let tier = json(&server, &["config", "show", "api"])["tiers"][0].clone();
    assert_eq!((&tier["when"], &tier["limit"]), (&"plan = gold".into(), &"window 3 per 1h".into()));
    let stdout = run_ok(&server, &["config", "show", "api"]);
    assert!(stdout.contains("window 3 per 1h"), "{stdout}");
    run(&server, &["config", "show", "nothing"]).assert_exit(2, &["unknown-policy"]);
    let me = run_ok(&server, &["whoami"]);
    assert!(me.contains("operator") && me.contains("local") && me.contains("127.0.0.1"), "{me}");
}

/// covers: X-28
#[test]
fn somebody_is_exported_and_erased_by_their_real_value() {
    let server = start_server();
    run_ok(&server, &["facts", "set", CUSTOMER, "plan=gold"]);
    run_ok(&server, &["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"]);
    let stdout = run_ok(&server, &["privacy", "export", CUSTOMER]);
    assert!(stdout.contains("fraud") && stdout.contains("plan=gold"), "{stdout}");
    assert!(!stdout.contains("c-4711"), "{stdout}");
    assert_eq!(json(&server, &["privacy", "export", CUSTOMER])["facts"]["plan"], "gold");
    run(&server, &["privacy", "erase", CUSTOMER]).assert_exit(2, &["--confirm"]);
    assert_eq!(run_ok(&server, &["facts", "get", CUSTOMER]), "plan=gold\n");
    let stdout = run_ok(&server, &["privacy", "erase", CUSTOMER, "--confirm", "--why", "asked"]);
    assert!(stdout.contains("facts=1") && stdout.contains("retained: blocks=1"), "{stdout}");
    run(&server, &["facts", "get", CUSTOMER]).assert_exit(1, &["unknown-value"]);
    run(&server, &["privacy", "export", "payer=1"]).assert_exit(2, &["bad-attribute"]);
}
