//! What operators look at: stats, audit, config, whoami, privacy.

use crate::desk::{CUSTOMER, IP, done, json, run, served};

#[test]
fn totals_add_up_on_a_table_too() {
    let served = served();
    assert!(done(&served, &["stats"]).contains("Nothing was asked."));
    for code in [0, 0, 1, 1] {
        assert_eq!(run(&served, &["check", "login", IP]).code, Some(code));
    }
    for (args, name) in [(&["stats"][..], "policy"), (&["stats", "actions"], "action")] {
        let said = done(&served, args);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(said.lines().nth(2).unwrap())[0], name, "{said}");
        assert_eq!(words(said.lines().last().unwrap()), ["all", "4", "2", "1", "1"], "{said}");
    }
    let top = done(&served, &["stats", "top-blocked", "--limit", "3", "--last", "1h"]);
    assert!(top.contains(IP), "{top}");
    assert_eq!(json(&served, &["stats", "--last", "1h"])["total"], 4);
    let early = ["stats", "--from", "2020-01-01T00:00:00Z", "--to", "2020-01-02T00:00:00Z"];
    assert_eq!(json(&served, &early)["total"], 0);
    run(&served, &["stats", "--last", "soon"]).says(2, &["--last"]);
    run(&served, &["stats", "--from", "soon"]).says(2, &["bad-instant"]);
    run(&served, &["stats", "--limit", "3"]).says(2, &["--limit"]);
    run(&served, &["stats", "luck"]).says(2, &["luck"]);
}

#[test]
fn the_catalog_in_force_is_shown() {
    let served = served();
    let said = done(&served, &["config", "show"]);
    assert!(said.starts_with("revision "), "{said}");
    for word in ["window 2 per 1h", "front", "login, api", "enforce"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(json(&served, &["config", "show"])["policies"][0]["policy"], "login");
    assert_eq!(json(&served, &["config", "show", "api"])["tiers"], 1);
    run(&served, &["config", "show", "nothing"]).says(2, &["unknown-policy"]);
    let me = done(&served, &["whoami"]);
    assert!(me.contains("operator") && me.contains("local") && me.contains("127.0.0.1"), "{me}");
}

///
#[test]
fn somebody_is_exported_and_erased_by_their_real_value() {
    let served = served();
    done(&served, &["facts", "set", CUSTOMER, "plan=gold"]);
    done(&served, &["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"]);
    let said = done(&served, &["privacy", "export", CUSTOMER]);
    assert!(said.contains("fraud") && said.contains("plan=gold"), "{said}");
    assert!(!said.contains("c-4711"), "{said}");
    assert_eq!(json(&served, &["privacy", "export", CUSTOMER])["facts"]["plan"], "gold");
    run(&served, &["privacy", "erase", CUSTOMER]).says(2, &["--confirm"]);
    assert_eq!(done(&served, &["facts", "get", CUSTOMER]), "plan=gold\n");
    let said = done(&served, &["privacy", "erase", CUSTOMER, "--confirm", "--why", "asked"]);
    assert!(said.contains("facts=1") && said.contains("retained: blocks=1"), "{said}");
    run(&served, &["facts", "get", CUSTOMER]).says(1, &["unknown-value"]);
    run(&served, &["privacy", "export", "payer=1"]).says(2, &["bad-attribute"]);
}
