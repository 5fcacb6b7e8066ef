//! A settle in shadow mode reports no block.

use catraca::{Catalog, Check, Engine, Outcome, Settle};

fn blocked_by(mode: &str, policy: &str, outcome: &Outcome) -> bool {
    let text = format!("[policy.p]\nby = ['ip']\nmode = '{mode}'\n{policy}\n");
    let engine = Engine::new(Catalog::parse(&text).expect("a valid catalog"));
    let decision = engine.check(&Check::new("p", [("ip", "192.0.2.1")])).expect("a valid call");
    let ticket = decision.ticket.expect("there is something to settle");
    let settled = engine.settle(&Settle::ticket(&ticket, outcome)).expect("settled");
    settled.rows[0].blocked_by.is_some()
}

/// Regression: an excess at the settle, and an upstream's Retry-After, were reported as blocks.
#[test]
fn no_origin_is_reported_in_shadow_mode() {
    let excess = "bucket = { size = 5, refill = '1 per 1h' }\nblock = '1h'\n\
                  cost = { \"404\" = 9, default = 1 }";
    let upstream = "bucket = { size = 5, refill = '1 per 1h' }\n\
                    cost = { \"429\" = 'drain', default = 1 }";
    let ban = "[[policy.p.ban]]\nwhen = 'status == 500'\nfor = '1h'\nreason = 'r'";
    let retry_after = vec![("retry-after".to_owned(), "60".to_owned())];
    let drained = Outcome { headers: retry_after, ..Outcome::status(429) };
    for (policy, outcome) in
        [(excess, Outcome::status(404)), (upstream, drained), (ban, Outcome::status(500))]
    {
        assert!(blocked_by("enforce", policy, &outcome), "{policy}");
        assert!(!blocked_by("shadow", policy, &outcome), "{policy}");
    }
}
