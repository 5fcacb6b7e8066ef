//! Operators' calls that are refused: long reasons, blocks without memory, invalid bucket states.

use catraca::{
    BlockProposal, BucketObservation, Catalog, Check, Engine, MemoryOptions, Span, Time,
};
use catraca_core::request::REASON_MAX;

/// Regression: a reason of any length was stored for as long as the block.
#[test]
fn a_reason_has_a_bound() {
    let engine = Engine::new(
        Catalog::parse("[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1h\"\n")
            .expect("a catalog"),
    );
    let block = |reason| {
        let proposal = BlockProposal::by_operator(Span::from_secs(3_600), Some(reason));
        engine.block("default", "login", &[("ip", "198.51.100.7")].into(), proposal)
    };
    let long = "é".repeat(REASON_MAX);
    assert!(block(&long).is_ok());
    let longer = "é".repeat(REASON_MAX + 1);
    let refused = block(&longer).expect_err("too long");
    assert_eq!(refused.to_string(), "the reason has 501 characters: send at most 500");
}

/// Regression: such a block was acknowledged and had no effect.
#[test]
fn a_block_that_finds_no_room_is_refused_and_not_acknowledged() {
    let catalog = Catalog::parse("[policy.login]\nby = [\"user\"]\nwindow = \"1 per 1h\"\n");
    let memory = MemoryOptions { block_bytes: 64 << 10, ..MemoryOptions::default() };
    let engine = Engine::builder(catalog.expect("a catalog")).memory(memory).build();
    let mut refused = 0;
    for number in 0..20_000 {
        let name = number.to_string();
        let subject = [("user", name.as_str())];
        let proposal = BlockProposal::by_operator(Span::FOREVER, None);
        let accepted = engine.block("default", "login", &subject.into(), proposal).is_ok();
        refused += usize::from(!accepted);
        let denied = !engine.peek(&Check::new("login", subject)).expect("a decision").allowed;
        assert_eq!(accepted, denied, "{number}");
    }
    assert!(refused > 0, "the pool never filled");
}

/// The negation of `i64::MIN` overflows.
#[test]
fn an_absurd_view_of_a_bucket_is_refused() {
    let text = "[policy.read]\nby = [\"user\"]\nbucket = { size = 5, refill = \"1 per 1m\" }\n";
    let engine = Engine::new(Catalog::parse(text).expect("a catalog"));
    for available in [i64::MIN, i64::MIN + 1, i64::MAX] {
        let state = BucketObservation { policy: "read", available, capacity: None };
        let subject = [("user", "u")].into();
        assert!(engine.reconcile("default", &subject, Time::ZERO, &[state]).is_err());
    }
}
