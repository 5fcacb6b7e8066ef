//! What callers of locks see while many of them wait, hold and leave, judged by the history checker
//! in virtual time; and every planted mistake in waiting is caught by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use catraca::core::lock::reply::AcquireReply;
use catraca::core::lock::requests::{Acquire, LeaseRequest, Proof};
use catraca::core::lock::{Durability, VersionPolicy};
use catraca::{Clock, Locks, Secret, Span, Time};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::history::{ALL, ObservedAnswer, ObservedCall, ClockTolerance, judge};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

const CALLERS: u64 = 24;
const ROUNDS: usize = 150;
const TTL_MS: i64 = 40;

struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Time {
        let passed = i64::try_from(self.0.elapsed().as_micros()).unwrap_or(i64::MAX);
        Time::from_micros(1_700_000_000_000_000 + passed)
    }
}

struct World {
    locks: Locks,
    begun: Instant,
    seen: RefCell<Vec<ObservedCall>>,
    late: RefCell<usize>,
}

impl World {
    fn now(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    async fn round(&self, rng: &mut Rng) {
        let name = rng.pick(&["p", "q", "r"]);
        let wait = rng.pick(&[0, 10, 40, 40, 200]);
        let key = self.locks.lease_id("n", None, None).unwrap().key();
        let lease = LeaseRequest::new(key, Span::from_millis(TTL_MS), Span::from_secs(9));
        let (kind, keys, policy) = ("k".into(), vec![name.into()], VersionPolicy::Opaque);
        let asked = Acquire { tenant: None, kind, keys, lease, policy }.checked().unwrap();
        let sent = self.now();
        let wait_for = Span::from_millis(wait);
        let answer = self.locks.acquire("n", &asked, wait_for, Durability::Memory).await.unwrap();
        let answered = Some(self.now());
        let mut seen =
            ObservedCall { name: name.to_owned(), range: ALL, sent, answered, answer: ObservedAnswer::Conflict };
        if let AcquireReply::Granted(view) = answer.acquired {
            if wait > 0 && self.now() - sent >= wait * 1_000 {
                *self.late.borrow_mut() += 1;
            }
            let (mut release_sent, mut released) = (None, None);
            sleep(Duration::from_millis(rng.within(0, 60).unsigned_abs())).await;
            if rng.chance(60) {
                release_sent = Some(self.now());
                self.locks.release("n", &Proof { key, tenant: None }).unwrap();
                released = Some(self.now());
            }
            let ttl = TTL_MS * 1_000;
            seen.answer = ObservedAnswer::Granted { fence: view.fence, ttl, release_sent, released };
        }
        self.seen.borrow_mut().push(seen);
        sleep(Duration::from_micros(rng.within(0, 3_000).unsigned_abs())).await;
    }
}

/// What was wrong with a history, and how long it was.
fn history(seed: u64) -> (Vec<String>, usize) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let locks = Locks::new(Arc::new(Virtual(begun)), &Secret::from_bytes([5; 32]));
        let (seen, late) = (RefCell::default(), RefCell::new(0));
        let world = Rc::new(World { locks, begun, seen, late });
        let local = LocalSet::new();
        for caller in 0..CALLERS {
            let world = Rc::clone(&world);
            local.spawn_local(async move {
                let mut rng = Rng::new(seed.wrapping_add(caller));
                for _ in 0..ROUNDS {
                    world.round(&mut rng).await;
                }
            });
        }
        local.await;
        let seen = world.seen.take();
        // Timers are only as fine as a millisecond.
        let mut wrong = judge(&seen, ClockTolerance { early: 0, late: 2_000 });
        if *world.late.borrow() > 0 {
            wrong.push(format!("{} waiters were granted too late", world.late.borrow()));
        }
        (wrong, seen.len())
    })
}

/// covers: 004-87, B-65
#[test]
fn thousands_of_calls_in_virtual_time_are_right() {
    for seed in 0..4 {
        let (wrong, calls) = history(seed);
        assert!(wrong.is_empty(), "seed {seed}: {} of {calls}: {}", wrong.len(), wrong[0]);
        assert_eq!(calls, CALLERS as usize * ROUNDS);
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn every_planted_mistake_in_waiting_is_caught() {
    use catraca_core::planted_bugs::{Bug, plant};
    for bug in Bug::WAITING.into_iter().chain([Bug::LockReleaseByName]) {
        plant(Some(bug));
        let caught = (0..20).find(|seed| !history(*seed).0.is_empty());
        plant(None);
        println!("{bug:?}: caught in history {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}
