//! What operators order, and what is refused before it is kept.

use catraca::{BlockOrder, Catalog, Engine, Span};
use catraca_core::request::REASON_MAX;

/// A reason of any length was kept for as long as the block.
#[test]
fn a_reason_has_a_bound() {
    let engine = Engine::new(
        Catalog::parse("[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1h\"\n")
            .expect("a catalog"),
    );
    let order = |reason| BlockOrder {
        namespace: "default",
        policy: "login",
        subject: [("ip", "198.51.100.7")].into(),
        span: Span::from_secs(3_600),
        reason: Some(reason),
    };
    let long = "é".repeat(REASON_MAX);
    assert!(engine.block(&order(&long)).is_ok());
    let longer = "é".repeat(REASON_MAX + 1);
    let refused = engine.block(&order(&longer)).expect_err("too long");
    assert_eq!(refused.to_string(), "the reason has 1001 characters and takes at most 1000");
}
