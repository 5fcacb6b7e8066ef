//! Ban storms through the engine: at most as many settles ban as `ban_storm` allows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use catraca::core::batch::{Batch, Reply};
use catraca::store::{Store, StoreError, When};
use catraca::{
    Builder, Catalog, Check, Engine, Event, ManualClock, Memory, MemoryOptions, Outcome, Secret,
    Settle, Span, Time,
};

const START: Time = Time::from_micros(1_800_000_000_000_000);

const CATALOG: &str = r#"
[policy.pay]
each      = ["customer", "session"]
ban_storm = "5 per 1m"
ban       = [ { when = "status == 403", for = "1h" } ]

[policy.strikes]
by        = ["customer"]
ban_storm = "1 per 1m"
ban       = [ { when = "status == 403", after = "2 per 1h", for = "1h" } ]
"#;

fn builder(clock: &ManualClock) -> Builder {
    let engine = Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock.clone());
    engine.secret(Secret::from_bytes([7; 32]))
}

fn customer(n: usize) -> [(&'static str, String); 2] {
    [("customer", format!("c{n}")), ("session", format!("s{n}"))]
}

fn ticket<S: Store>(engine: &Engine<S>, policy: &str, n: usize) -> String {
    let [(first, customer), (second, session)] = &customer(n);
    let subject = [(*first, customer.as_str()), (*second, session.as_str())];
    engine.check(&Check::new(policy, subject)).unwrap().ticket.unwrap()
}

fn refuse<S: Store>(engine: &Engine<S>, ticket: &str) -> Result<(), catraca::Error> {
    engine.settle(&Settle::ticket(ticket, &Outcome::status(403))).map(drop)
}

/// Whether a customer is blocked, with any session.
fn is_banned<S: Store>(engine: &Engine<S>, policy: &str, n: usize) -> bool {
    let [(first, customer), _] = &customer(n);
    !engine.peek(&Check::new(policy, [(*first, customer.as_str())])).unwrap().allowed
}

fn banned<S: Store>(engine: &Engine<S>, policy: &str, customers: usize) -> usize {
    (0..customers).filter(|n| is_banned(engine, policy, *n)).count()
}

/// Regression: each row was counted, so that a policy with two identities banned three callers.
#[test]
fn a_settle_that_bans_counts_once() {
    let clock = ManualClock::at(START);
    let storms = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&storms);
    let listener = move |event: &Event<'_>| {
        let is_storm = matches!(event, Event::BanStorm { .. });
        counted.fetch_add(usize::from(is_storm), Ordering::SeqCst);
    };
    let engine = builder(&clock).listener(listener).build();
    for n in 0..9 {
        assert_eq!(storms.load(Ordering::SeqCst), usize::from(n >= 5), "before caller {n}");
        refuse(&engine, &ticket(&engine, "pay", n)).unwrap();
        assert_eq!(is_banned(&engine, "pay", n), n < 5, "caller {n}");
    }
    clock.advance(Span::from_secs(600));
    refuse(&engine, &ticket(&engine, "pay", 9)).unwrap();
    assert!(is_banned(&engine, "pay", 9), "the storm is over");
    assert_eq!(storms.load(Ordering::SeqCst), 1);
}

/// A store in which all settles of a round wait for each other.
struct MeetingStore {
    memory: Memory,
    settles: Barrier,
}

impl Store for MeetingStore {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        if matches!(batch, Batch::Settle(_)) {
            self.settles.wait();
        }
        self.memory.apply(batch, when)
    }
}

/// Regression: the storm was read before the store applied a settle and counted afterwards, so
/// that all concurrent settles banned.
#[test]
fn concurrent_settles_ban_no_more_than_the_rate_allows() {
    const CALLERS: usize = 16;
    let clock = ManualClock::at(START);
    let memory = Memory::new(MemoryOptions::default(), Arc::new(clock.clone()));
    let store = MeetingStore { memory, settles: Barrier::new(CALLERS) };
    let engine = builder(&clock).build_with_store(store);
    let tickets: Vec<String> = (0..CALLERS).map(|n| ticket(&engine, "pay", n)).collect();
    thread::scope(|scope| {
        let engine = &engine;
        for ticket in &tickets {
            scope.spawn(move || refuse(engine, ticket).unwrap());
        }
    });
    assert_eq!(banned(&engine, "pay", CALLERS), 5);
}

/// A store whose settles can be made to fail.
struct FailingStore {
    memory: Memory,
    fails: AtomicBool,
}

impl Store for FailingStore {
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        if matches!(batch, Batch::Settle(_)) && self.fails.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("connection lost"));
        }
        self.memory.apply(batch, when)
    }
}

/// One ban is allowed: a place that was not given back would leave none.
#[test]
fn a_settle_that_does_not_ban_uses_up_no_ban() {
    let clock = ManualClock::at(START);
    let memory = Memory::new(MemoryOptions::default(), Arc::new(clock.clone()));
    let engine =
        builder(&clock).build_with_store(FailingStore { memory, fails: AtomicBool::new(true) });
    let failed = ticket(&engine, "strikes", 0);
    refuse(&engine, &failed).unwrap_err();
    engine.store().fails.store(false, Ordering::SeqCst);
    refuse(&engine, &failed).unwrap();
    refuse(&engine, &failed).unwrap();
    assert!(!is_banned(&engine, "strikes", 0), "one strike of two");
    refuse(&engine, &ticket(&engine, "strikes", 0)).unwrap();
    assert!(is_banned(&engine, "strikes", 0));
    for _ in 0..2 {
        refuse(&engine, &ticket(&engine, "strikes", 1)).unwrap();
    }
    assert!(!is_banned(&engine, "strikes", 1), "one ban is allowed");
}
