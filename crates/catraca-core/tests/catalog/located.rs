//! Where mistakes are, how many are said, and what is kept quiet.

use catraca_core::catalog::diagnostic::Severity;

use crate::support::{codes, fixture, read_text, said};

/// Each mistake of `twenty.toml`: line, column, code, offending text.
const TWENTY: [(usize, usize, &str, &str); 20] = [
    (2, 11, "unknown-policy", "\"fallbck\""),
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
    (63, 11, "always-private", "false"),
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
