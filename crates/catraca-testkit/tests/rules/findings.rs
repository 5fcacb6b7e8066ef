//! What outside use found (docs/trust.md), where no other test of this executable would notice if
//! it came back.

use catraca::core::select::orphan::{OrphanReason, orphan_reason};
use catraca::memory::MemoryOptions;
use catraca::{Catalog, Check, Engine, ManualClock, Outcome, Settle, Time};

/// W3: a misspelt gate took the default policy, and nothing said so.
#[test]
fn an_undeclared_gate_is_remembered() {
    let catalog = "default = 'rest'\n[policy.rest]\nby = ['ip']\nwindow = '9 per 1m'";
    let engine = Engine::builder(Catalog::parse(catalog).unwrap()).build();
    engine.check(&Check::new("logn", [("ip", "192.0.2.1")])).unwrap();
    assert_eq!(engine.undeclared_gates(), ["logn"]);
}

/// M7: a change of `ipv6_prefix` made blocks ineffective that were still listed.
#[test]
fn a_key_of_another_prefix_is_an_orphan() {
    let policy = "[policy.login]\nby = ['ip']\nwindow = '9 per 1m'";
    let narrow = format!("[network]\nipv6_prefix = 64\n{policy}");
    let parts = [("ip".to_owned(), "2001:db8:0:1::/64".to_owned())];
    let reason = |text: &str| orphan_reason(&Catalog::parse(text).unwrap(), "login", &parts);
    assert_eq!(reason(&narrow), None);
    let wide = narrow.replace("64", "48");
    assert_eq!(reason(&wide), Some(OrphanReason::OtherValues("ip".to_owned())));
}

/// L15: a full pool of settled markers stopped the settles of every namespace.
#[test]
fn full_markers_of_one_namespace_leave_the_settles_of_others() {
    const POOL: usize = 512 << 10;
    let catalog = "[policy.login]\nby = ['ip']\nhold = '1h'\ncost = { default = 1 }\n\
                   bucket = { size = 1000000, refill = '1000000 per 1h' }";
    let options = MemoryOptions {
        budget_bytes: POOL,
        block_bytes: POOL,
        reference_bytes: POOL,
        mark_bytes: POOL,
        shards: 1,
    };
    let engine = Engine::builder(Catalog::parse(catalog).unwrap())
        .clock(ManualClock::at(Time::from_millis(1_767_225_600_000)))
        .memory(options)
        .namespaces(["a", "b"].map(str::to_owned))
        .build();
    let is_settled = |namespace: &str| {
        let check = Check { namespace, ..Check::new("login", [("ip", "192.0.2.1")]) };
        let ticket = engine.check(&check).unwrap().ticket.unwrap();
        let outcome = Outcome { status: Some(200), ..Outcome::default() };
        engine.settle(&Settle { namespace, ..Settle::ticket(&ticket, &outcome) }).is_ok()
    };
    assert!((0..100_000).any(|_| !is_settled("a")), "the pool never filled");
    assert!((0..100).all(|_| is_settled("b")));
}
