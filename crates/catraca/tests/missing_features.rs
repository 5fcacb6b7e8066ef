//! A catalog that uses code of a feature which is not enabled is refused, and the error names the
//! feature. Run without features and with `settle` alone: `cargo xtask test features`.

#![cfg(not(feature = "cel"))]

use catraca::{Catalog, Engine};

/// The only error of a catalog, as it is shown.
fn error_of(text: &str) -> String {
    let diagnostics = Catalog::parse(text).expect_err("the feature is missing");
    assert_eq!(diagnostics.all.len(), 1, "{diagnostics}");
    diagnostics.to_string()
}

#[test]
fn a_condition_names_the_feature_cel() {
    let ban = "ban = [{ when = 'status == 403', for = '1h' }]";
    let error = error_of(&format!("[policy.api]\nby = ['ip']\n{ban}\n"));
    assert!(error.starts_with("catalog:3:17: error[missing-feature]"), "{error}");
    assert!(error.contains("features = [\"cel\"]"), "{error}");
}

#[cfg(not(feature = "settle"))]
#[test]
fn every_way_to_settle_names_the_feature_settle() {
    let fields = [
        "window = '5 per 1m'\ncost = { '404' = 5 }",
        "window = '5 per 1m'\ncost = 'reported'",
        "inflight = 3",
        "watch = { share = '404', of = '4xx', above = '20%', min = 9, per = '1h', ban = '1h' }",
        "bucket = { size = 9, refill = '1 per 1s' }\ncredit = { paid = { amount = 1 } }",
        "window = '5 per 1m'\ntier = [{ when = { plan = 'a' }, cost = 'reported' }]",
    ];
    for field in fields {
        let error = error_of(&format!("[policy.api]\nby = ['ip']\n{field}\n"));
        assert!(error.contains("missing-feature") && error.contains("policy `api`"), "{error}");
        assert!(error.contains("features = [\"settle\"]"), "{error}");
    }
}

#[test]
fn limits_and_blocks_need_no_feature() {
    let text = "
        [policy.login]
        by     = ['ip']
        window = '1 per 15m'
        block  = '30m'

        [policy.api]
        by     = ['token|ip']
        bucket = { size = 2, refill = '1 per 1s' }
        cost   = 2

        [gate.both]
        policies = ['login', 'api']

        [[blocklist]]
        range = '192.0.2.0/24'
    ";
    let engine = Engine::new(Catalog::parse(text).unwrap());
    let both = engine.gate_by("both", ["ip"]).unwrap();
    assert!(both.check(["198.51.100.7"]).unwrap().allowed);
    let denied = both.check(["198.51.100.7"]).unwrap();
    assert_eq!(denied.retry_after(), Some(std::time::Duration::from_secs(30 * 60)));
    assert_eq!(both.check(["192.0.2.9"]).unwrap().reason.as_str(), "blocklisted");
}

#[cfg(feature = "settle")]
#[test]
fn a_cost_by_outcome_is_settled_without_conditions() {
    use catraca::{Check, Outcome, Settle};

    let text =
        "[policy.api]\nby = ['ip']\nwindow = '50 per 1m'\ncost = { '404' = 5, default = 0 }\n";
    let engine = Engine::new(Catalog::parse(text).unwrap());
    let decision = engine.check(&Check::new("api", [("ip", "198.51.100.7")])).unwrap();
    let ticket = decision.ticket.unwrap();
    let settled = engine.settle(&Settle::ticket(&ticket, &Outcome::status(404))).unwrap();
    assert_eq!(settled.rows[0].charged, 5);
}
