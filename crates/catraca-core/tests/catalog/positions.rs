//! Positions of diagnostics, their number, and errors that are not reported twice.

use catraca_core::catalog::diagnostic::Severity;

use crate::helpers::{codes, diagnostics_of, fixture, read_text};

/// The errors of `twenty.toml`: line, column, code, offending text.
const TWENTY: [(usize, usize, &str, &str); 20] = [
    (6, 1, "unknown-field", "windw"),
    (10, 10, "wrong-type", "\"ip\""),
    (15, 10, "bad-rate", "\"10 every 15m\""),
    (16, 10, "bad-duration", "\"30 minutes\""),
    (18, 9, "no-limit", "empty"),
    (24, 1, "two-algorithms", "bucket"),
    (26, 9, "no-key", "nobody"),
    (31, 10, "window-too-large", "\"25_000 per 1m\""),
    (36, 1, "credit-not-bucket", "credit"),
    (41, 12, "tier-changes-algorithm", "window"),
    (41, 53, "bad-value", "\"PX\""),
    (45, 19, "bad-condition", "\"statuss == 5\""),
    (45, 58, "unknown-placeholder", "\"Wait {minutes}.\""),
    (50, 13, "otherwise-cycle", "\"round\""),
    (53, 12, "empty-gate", "[]"),
    (56, 25, "unknown-policy", "\"nobdy\""),
    (59, 9, "bad-route", "\"PSOT /api\""),
    (60, 9, "unknown-gate", "\"sme\""),
    (66, 9, "bad-address", "\"203.0.113.7/24\""),
    (68, 2, "unknown-section", "servr"),
];

///
#[test]
fn twenty_mistakes_give_twenty_located_errors() {
    let refused = read_text(&fixture("twenty.toml")).unwrap_err();
    let found: Vec<_> = refused
        .all
        .iter()
        .map(|found| (found.line, found.column, found.code, found.text.as_str()))
        .collect();
    assert_eq!(found, TWENTY);
    assert_eq!(refused.errors().count(), 20);
    assert!(refused.all.iter().all(|found| found.file == "catalog.toml" && found.fix.is_some()));
}

#[test]
fn a_diagnostic_reads_like_a_compiler() {
    let found = &diagnostics_of("[policy.login]\nby     = [\"ip\"]\n")[0];
    assert_eq!(
        found.to_string(),
        "catalog.toml:1:9: error[no-limit]: `login`: the policy limits nothing: no window, bucket, \
         fixed, inflight or ban\n  fix: add a limit such as window = \"10 per 15m\""
    );
    assert_eq!((found.start, found.end, &*found.line_text), (8, 13, "[policy.login]"));
}

/// Regression: it gave three errors, and the fix of the last one removed a valid field.
#[test]
fn a_misspelt_limit_is_the_only_error() {
    let text = "[policy.login]\nby = [\"ip\"]\nwindw = \"10 per 15m\"\nblock = \"5m\"\n";
    let found = diagnostics_of(text);
    let codes: Vec<_> = found.iter().map(|found| (found.line, found.code)).collect();
    assert_eq!(codes, [(3, "unknown-field")]);
    assert_eq!(found[0].fix.as_deref(), Some("did you mean `window`?"));
}

#[test]
fn columns_count_characters() {
    let text = "\u{feff}default = \"ação\"\r\n[policy.a]\r\nby = [\"ip\"]\r\n\
                group = \"ção\"\r\nwindow = 5\r\n";
    let positions: Vec<_> =
        diagnostics_of(text).iter().map(|found| (found.line, found.column)).collect();
    assert_eq!(positions, [(1, 11), (4, 9), (5, 10)]);
    let found = &diagnostics_of(
        "[policy.a]\nmessage = \"ção\" # ã\nby = []\nfixed = \"1 per 1s\"\nnó = 1\n",
    )[0];
    assert_eq!((found.code, &*found.text), ("syntax", "ó"));
    let found = &diagnostics_of("[[blocklist]]\nrange = \"1.2.3.4\"\n'nó' = { 'ção' = 1 }\n")[0];
    assert_eq!((found.line, found.column, &*found.text), (3, 1, "'nó'"));
    let found =
        &diagnostics_of("settle = { \"ção\" = 1, body_bytes_max = 99999999999999999999 }\n")[1];
    assert_eq!((found.line, found.column), (1, 40));
}

#[test]
fn files_are_told_apart_and_come_in_the_order_of_reading() {
    let text = "include = [\"z.toml\", \"a.toml\"]\n[x]\n#--- a.toml\n[x]\n#--- z.toml\n\n[x]\n";
    let positions: Vec<_> =
        diagnostics_of(text).into_iter().map(|found| (found.file, found.line)).collect();
    let wanted = [("catalog.toml", 2), ("z.toml", 2), ("a.toml", 1)];
    assert_eq!(positions, wanted.map(|(file, line)| (file.to_owned(), line)));
}

/// covers: B-14
#[test]
fn a_private_value_is_never_shown() {
    let text = "[attribute.payer]\nkind = \"cpf_cnpj\"\n[[blocklist]]\nattribute = \"payer\"\n\
                value = \"529.982.247-2\"\n";
    let found = diagnostics_of(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&*found[0].text, &*found[0].line_text),
        ("***************", "value = ***************")
    );
    assert!(!format!("{found:?}").contains("529"));
}

#[test]
fn warnings_do_not_refuse() {
    let text = "[policy.a]\nby = []\nwindow = \"1 per 1h\"\nblock = \"1m\"\n";
    let warnings = read_text(text).unwrap().warnings;
    let found: Vec<_> = warnings.iter().map(|found| (found.severity, found.code)).collect();
    assert_eq!(found, [(Severity::Warning, "block-below-window")]);
    assert!(warnings[0].to_string().starts_with("catalog.toml:4:1: warning[block-below-window]: "));
}

/// covers: 000-16
#[test]
fn a_ban_must_say_how_long() {
    let found =
        diagnostics_of("[policy.pay]\nby = []\nban = [ { when = \"body.reject_id == 5\" } ]\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].code, found[0].line), ("missing-field", 3));
    assert!(found[0].message.contains("`for`"), "{}", found[0]);
}

#[test]
fn one_mistake_is_said_once() {
    for (text, wanted) in [
        // An invalid limit is not reported as missing, nor is an invalid key.
        ("by = [\"ip\"]\nwindow = \"x\"\ncount_denied = true\n", "bad-rate"),
        ("by = 5\nwindow = \"1 per 1s\"\n", "wrong-type"),
        ("by = []\nban = [ { when = \"status ==\", for = \"1m\" } ]\n", "bad-condition"),
        ("by = []\ntier = 5\n", "wrong-type"),
        (
            "by = []\nbucket = { size = 1, refill = 5 }\ndebt = true\ncost = { x = 1 }\n\
             reserve = 1\n",
            "bad-status wrong-type",
        ),
    ] {
        let mut found = codes(&format!("[policy.a]\n{text}[gate.all]\npolicies = [\"a\"]\n"));
        found.sort_unstable();
        assert_eq!(found.join(" "), wanted, "{text}");
    }
}

#[test]
fn damage_hides_only_itself() {
    // After an open bracket the TOML parser cannot continue, but the reader does.
    let text = "[policy.a]\nby = [\"ip\"\nwindow = 5\n[policy.b]\nby = []\nwindow = 5\n\
                [gate.g]\npolicies = [\"a\", \"c\"]\n";
    let found: Vec<_> = diagnostics_of(text).iter().map(|found| (found.line, found.code)).collect();
    assert_eq!(found, [(3, "syntax"), (6, "wrong-type"), (8, "unknown-policy")]);
    // A name that could not be parsed is not reported as unknown.
    let text = "[policy.a\nby = []\n[gate.g]\npolicies = [\"a\"]\n";
    assert_eq!(codes(text), ["syntax"]);
}
