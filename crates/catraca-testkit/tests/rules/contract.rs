//! The store contract on the memory store, also with many concurrent callers.

use std::sync::{Arc, Barrier};
use std::thread;

use catraca::settlement::SettleState;
use catraca::store::Store;
use catraca::{Check, Engine, ManualClock, Memory, MemoryOptions, Outcome, Settle, Span, Time};
use catraca_testkit::contract::{Case, admitted_at_once, run_all};

fn memory() -> Memory {
    Memory::new(MemoryOptions::default(), Arc::new(ManualClock::default()))
}

/// covers: 002-21, 002-22, 002-25, X-02, B-07, B-36, B-38, B-49
#[test]
fn the_memory_store_keeps_the_contract() {
    let cases = run_all(|| Box::new(memory()) as Box<dyn Store>);
    for Case { name, result } in &cases {
        match result {
            Ok(()) => println!("ok    {name}"),
            Err(why) => println!("FAIL  {name}\n      {why}"),
        }
    }
    let failed: Vec<_> = cases.iter().filter(|case| case.result.is_err()).collect();
    assert!(failed.is_empty(), "{} of {} cases: {failed:#?}", failed.len(), cases.len());
}

/// covers: 002-35, B-33, B-34
#[test]
fn two_hundred_callers_get_exactly_ten_a_thousand_times() {
    let store = memory();
    let admitted = admitted_at_once(&store, 200, 1_000, 10).unwrap();
    assert_eq!(admitted, [10; 1_000]);
}

const LOOKUP: &str = r#"
    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 1, refill = "1 per 1h" }
    cost   = { "404" = 20, default = 1 }
    hold   = "30s"
    debt   = true
"#;

/// covers: X-04, B-29
#[test]
fn of_fifty_lookups_at_once_on_one_token_one_is_admitted_and_its_hold_ends() {
    let clock = ManualClock::at(Time::from_millis(1_767_225_600_000));
    let catalog = catraca::Catalog::parse(LOOKUP).unwrap();
    let engine = Engine::builder(catalog).clock(clock.clone()).build();
    let check = Check::new("lookup", [("payer", "a")]);
    let barrier = Barrier::new(50);
    let ask = || {
        barrier.wait();
        engine.check(&check).unwrap().ticket
    };
    let tickets: Vec<String> = thread::scope(|scope| {
        let callers: Vec<_> = (0..50).map(|_| scope.spawn(ask)).collect();
        callers.into_iter().filter_map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(tickets.len(), 1);
    clock.advance(Span::from_secs(30));
    let late = engine.settle(&Settle::ticket(&tickets[0], &Outcome::status(404))).unwrap();
    assert_eq!(late.state, SettleState::Expired);
    let held = engine.bucket_state("default", "lookup", &check.subject).unwrap();
    assert_eq!(held.balance, 0, "what was held stays charged, and nothing more");
}
