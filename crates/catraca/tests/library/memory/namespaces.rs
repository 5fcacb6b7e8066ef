//! A full memory, through the engine: `on_failure` decides for keys without a counter, and one
//! namespace never uses the part of another.

use catraca::memory::{MemoryOptions, MemoryPool};
use catraca::settlement::SettleState;
use catraca::{
    BlockProposal, Catalog, Check, Decision, Engine, ManualClock, Outcome, Settle, Span, Subject,
};
use catraca_core::cell::CellKind;
use catraca_core::decision::Reason;

use super::helpers::START;

const KIB: usize = 1 << 10;

/// Small pools in one shard, divided between the namespaces `a`, `b` and all others.
fn engine(policy: &str) -> Engine {
    let text = format!("[policy.login]\nby = ['ip']\n{policy}\n");
    let options = MemoryOptions {
        budget_bytes: 512 * KIB,
        block_bytes: 512 * KIB,
        reference_bytes: 512 * KIB,
        mark_bytes: 512 * KIB,
        shards: 1,
    };
    Engine::builder(Catalog::parse(&text).expect("a valid catalog"))
        .clock(ManualClock::at(START))
        .memory(options)
        .namespaces(["a", "b"].map(str::to_owned))
        .build()
}

fn check(engine: &Engine, namespace: &str, ip: u32) -> Decision {
    let ip = std::net::Ipv4Addr::from(0x0a00_0000 + ip).to_string();
    let check = Check { namespace, ..Check::new("login", [("ip", ip.as_str())]) };
    engine.check(&check).expect("a valid call")
}

/// Sends new addresses until `is_full`, and a few more for the last slots.
fn flood(engine: &Engine, namespace: &str, is_full: impl Fn(&Decision) -> bool) {
    let full_at = (0..100_000).find(|ip| is_full(&check(engine, namespace, *ip)));
    let full_at = full_at.expect("the memory never filled");
    (full_at..full_at + 100).for_each(|ip| drop(check(engine, namespace, ip)));
}

/// What happened to some addresses that had sent nothing before.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u32,
    denied: u32,
    blocked: u32,
    degraded: u32,
}

impl Tally {
    fn of(engine: &Engine, namespace: &str) -> Self {
        let mut tally = Self::default();
        for ip in 200_000..200_100 {
            let decision = check(engine, namespace, ip);
            tally.passed += u32::from(decision.allowed);
            tally.denied += u32::from(!decision.allowed);
            tally.degraded += u32::from(decision.degraded);
            let again = check(engine, namespace, ip);
            tally.blocked += u32::from(again.reason == Reason::Blocked);
        }
        tally
    }
}

#[test]
fn new_addresses_follow_on_failure_and_another_namespace_is_unaffected() {
    let unaffected = Tally { passed: 100, denied: 0, blocked: 0, degraded: 0 };
    for (on_failure, passed) in [("open", 100), ("closed", 0), ("local", 0)] {
        let engine = engine(&format!(
            "window = '1 per 1h'\ncount_denied = true\nblock = '1h'\non_failure = '{on_failure}'"
        ));
        flood(&engine, "a", |decision| decision.degraded);
        let full = Tally::of(&engine, "a");
        println!("on_failure = {on_failure}: {full:?}");
        let expected = Tally { passed, denied: 100 - passed, blocked: 0, degraded: 100 };
        assert_eq!(full, expected, "on_failure = {on_failure}");
        assert_eq!(engine.store().stats()[CellKind::Block].cells, 0, "no level either");
        // In the other namespaces a second request is over the own limit, and blocks.
        for namespace in ["b", "default", "undeclared"] {
            let other = Tally { blocked: 0, ..Tally::of(&engine, namespace) };
            println!("  namespace {namespace}: {other:?}");
            assert_eq!(other, unaffected, "on_failure = {on_failure}, namespace {namespace}");
        }
    }
}

#[test]
fn a_row_without_a_counter_has_no_figures_and_its_reason_is_unavailable_if_closed() {
    let open = engine("bucket = { size = 5, refill = '5 per 1h' }\non_failure = 'open'");
    flood(&open, "a", |decision| decision.degraded);
    let decision = check(&open, "a", 300_000);
    let row = &decision.rows[0];
    assert_eq!((row.allowed, row.charged, row.limit, row.remaining), (true, 0, None, None));
    let closed = engine("bucket = { size = 5, refill = '5 per 1h' }\non_failure = 'closed'");
    flood(&closed, "a", |decision| decision.degraded);
    let decision = check(&closed, "a", 300_000);
    assert_eq!((decision.reason, decision.retry_after), (Reason::Unavailable, None));
    assert!(check(&closed, "a", 0).allowed, "an address with a counter is counted as before");
}

/// A settle must not refund units that an uncounted check never charged.
#[test]
fn the_settle_of_an_uncounted_check_refunds_nothing() {
    let clock = ManualClock::at(START);
    let text = "[policy.p]\nby = ['ip']\nreserve = 5\n\
                bucket = { size = 10, refill = '10 per 1h' }\n\
                cost = { default = 0 }\nhold = '3h'\non_failure = 'open'\n\
                [policy.filler]\nby = ['ip']\nbucket = { size = 1, refill = '1 per 1h' }";
    let options = MemoryOptions { budget_bytes: 64 * KIB, shards: 1, ..MemoryOptions::default() };
    let engine = Engine::builder(Catalog::parse(text).expect("a valid catalog"))
        .clock(clock.clone())
        .memory(options)
        .build();
    let filler = |number: u32| {
        let ip = std::net::Ipv4Addr::from(number).to_string();
        engine.check(&Check::new("filler", [("ip", ip.as_str())])).expect("a valid call")
    };
    assert!((0..10_000).any(|number| filler(number).degraded), "the memory never filled");
    let caller = Check::new("p", [("ip", "192.0.2.1")]);
    let uncounted = engine.check(&caller).expect("a valid call");
    assert!(uncounted.allowed && uncounted.degraded);
    // After the fillers have expired, the caller has a counter of its own and uses it.
    clock.advance(Span::from_secs(7_200));
    (0..50).for_each(|_| engine.store().reclaim());
    assert_eq!(engine.check(&caller).expect("a valid call").remaining, Some(5));
    let outcome = Outcome { status: Some(200), ..Outcome::default() };
    let ticket = uncounted.ticket.expect("the price is known at the settle");
    let settled = engine.settle(&Settle::ticket(&ticket, &outcome)).expect("settled");
    assert_eq!((settled.rows[0].charged, settled.rows[0].balance), (0, Some(5)));
}

fn settle(engine: &Engine, namespace: &str, ip: u32) -> Option<SettleState> {
    let ticket = check(engine, namespace, ip).ticket?;
    let outcome = Outcome { status: Some(200), ..Outcome::default() };
    let call = Settle { namespace, ..Settle::ticket(&ticket, &outcome) };
    engine.settle(&call).ok().map(|settled| settled.state)
}

/// Regression: a full pool of settled markers stopped the settles of every namespace.
#[test]
fn full_markers_of_one_namespace_do_not_stop_the_settles_of_others() {
    let engine = engine(
        "bucket = { size = 1000000, refill = '1000000 per 1h' }\nhold = '1h'\n\
         cost = { default = 1 }",
    );
    let refused = (0..100_000).find(|_| settle(&engine, "a", 1).is_none());
    assert!(refused.is_some(), "the pool never filled");
    assert_eq!(engine.store().full_pools(), [MemoryPool::SettledMarkers]);
    for namespace in ["b", "default"] {
        let settled = (0..100).filter(|ip| settle(&engine, namespace, *ip).is_some()).count();
        assert_eq!(settled, 100, "namespace {namespace}");
    }
}

/// How much one namespace can store before a pool is full: counters, settled markers and blocks.
fn fill(engine: &Engine, namespace: &str) -> [usize; 3] {
    let keys = (0..100_000).position(|ip| check(engine, namespace, ip).degraded);
    // One address that has a counter, so that no check needs a new one.
    let settles = (0..100_000).position(|_| settle(engine, namespace, 0).is_none());
    let block = |ip: u32| {
        let ip = std::net::Ipv4Addr::from(0x0a00_0000 + ip).to_string();
        let proposal = BlockProposal::by_operator(Span::from_secs(3_600), None);
        engine.block(namespace, "login", &Subject::from([("ip", ip.as_str())]), proposal)
    };
    let blocks = (1..100_000).position(|ip| block(ip).is_err());
    [keys, settles, blocks].map(|count| count.expect("the pool never filled"))
}

/// Three namespaces (`a`, `b` and the default one) have a sixth of each pool each, and the other
/// half is first come.
#[test]
fn the_part_of_a_namespace_is_that_of_a_store_of_its_size() {
    let policy = "bucket = { size = 1000000, refill = '1 per 1h' }\nhold = '1h'\n\
                  cost = { default = 1 }\non_failure = 'open'";
    let alone = |bytes: usize| {
        let text = format!("[policy.login]\nby = ['ip']\n{policy}\n");
        let options = MemoryOptions {
            budget_bytes: bytes,
            block_bytes: bytes,
            reference_bytes: bytes,
            mark_bytes: bytes,
            shards: 1,
        };
        let builder = Engine::builder(Catalog::parse(&text).expect("a valid catalog"));
        fill(&builder.clock(ManualClock::at(START)).memory(options).build(), "default")
    };
    let [sixth, half] = [alone(512 * KIB / 6), alone(512 * KIB / 2)];
    let divided = engine(policy);
    let greedy = fill(&divided, "a");
    println!("a sixth: {sixth:?}, a half: {half:?}, the first namespace: {greedy:?}");
    for (index, pool) in ["counters", "settled markers", "blocks"].into_iter().enumerate() {
        let both = sixth[index] + half[index];
        assert!(greedy[index].abs_diff(both) <= both / 10, "{pool}: {} of {both}", greedy[index]);
    }
    for namespace in ["b", "default"] {
        let own = fill(&divided, namespace);
        println!("then {namespace}: {own:?}");
        for (index, pool) in ["counters", "settled markers", "blocks"].into_iter().enumerate() {
            let expected = sixth[index];
            let difference = own[index].abs_diff(expected);
            assert!(difference <= expected / 10, "{pool}: {} of {expected}", own[index]);
        }
    }
}

/// The parts are restored: blocks, counters and overflow cells are found again.
#[test]
fn a_snapshot_restores_every_namespace() {
    let folder = std::env::temp_dir().join(format!("catraca-parts-{}", std::process::id()));
    let secret = catraca::Secret::from_bytes([7; 32]);
    let builder = || {
        let text = "[policy.login]\nby = ['ip']\nwindow = '1 per 1h'\nblock = '1h'";
        Engine::builder(Catalog::parse(text).expect("a valid catalog"))
            .clock(ManualClock::at(START))
            .secret(secret.clone())
            .namespaces(["a", "b"].map(str::to_owned))
    };
    let engine = builder().build();
    for namespace in ["a", "b", "default"] {
        (0..20).for_each(|ip| drop(check(&engine, namespace, ip / 2)));
        (50..60).for_each(|ip| drop(check(&engine, namespace, ip)));
    }
    engine.store().snapshot(&folder).expect("written");
    let (again, _) = builder().restore(&folder).expect("read");
    std::fs::remove_file(&folder).expect("removed");
    for namespace in ["a", "b", "default"] {
        let reasons = |from, to| (from..to).map(|ip| check(&again, namespace, ip).reason);
        assert!(reasons(0, 10).all(|reason| reason == Reason::Blocked), "{namespace}");
        assert!(reasons(50, 60).all(|reason| reason == Reason::OverLimit), "{namespace}");
    }
}
