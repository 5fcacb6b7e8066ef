//! The history of concurrent lock callers in virtual time, verified by the history checker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catraca::core::lock::VersionPolicy;
use catraca::core::lock::reply::AcquireReply;
use catraca::core::lock::requests::{Acquire, LeaseRequest, Proof};
use catraca::{Clock, Locks, Secret, Span};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::history::{ALL, ClockTolerance, ObservedAnswer, ObservedCall, judge};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

const CALLERS: u64 = 24;
const ROUNDS: usize = 150;
const TTL_MS: i64 = 40;

struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + self.0.elapsed()
    }
}

struct Callers {
    locks: Locks,
    start: Instant,
    seen: RefCell<Vec<ObservedCall>>,
    late: RefCell<usize>,
}

impl Callers {
    fn now(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    async fn round(&self, rng: &mut Rng) {
        let name = rng.pick(&["p", "q", "r"]);
        let wait = rng.pick(&[0, 10, 40, 40, 200]);
        let key = self.locks.lease_id("n", None, None).unwrap().key();
        let lease = LeaseRequest::new(key, Span::from_millis(TTL_MS), Span::from_secs(9));
        let kind = "k".into();
        let keys = vec![name.into()];
        let policy = VersionPolicy::Opaque;
        let request = Acquire { tenant: None, kind, keys, lease, policy }.validate().unwrap();
        let sent = self.now();
        let wait_for = Span::from_millis(wait);
        let answer = self.locks.acquire("n", &request, wait_for).await.unwrap();
        let answered = Some(self.now());
        let mut seen = ObservedCall {
            name: name.to_owned(),
            range: ALL,
            sent,
            answered,
            answer: ObservedAnswer::Conflict,
        };
        if let AcquireReply::Granted(view) = answer.acquired {
            if wait > 0 && self.now() - sent >= wait * 1_000 {
                *self.late.borrow_mut() += 1;
            }
            let mut release_sent = None;
            let mut released = None;
            sleep(Duration::from_millis(rng.within(0, 60).unsigned_abs())).await;
            if rng.chance(60) {
                release_sent = Some(self.now());
                self.locks.release("n", &Proof { key, tenant: None }).await.unwrap();
                released = Some(self.now());
            }
            let ttl = TTL_MS * 1_000;
            seen.answer =
                ObservedAnswer::Granted { fence: view.fence, ttl, release_sent, released };
        }
        self.seen.borrow_mut().push(seen);
        sleep(Duration::from_micros(rng.within(0, 3_000).unsigned_abs())).await;
    }
}

/// Runs all callers; returns the violations and the number of calls.
fn history(seed: u64) -> (Vec<String>, usize) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let start = Instant::now();
        let locks = Locks::in_memory(Arc::new(VirtualClock(start)), &Secret::from_bytes([5; 32]));
        let seen = RefCell::default();
        let late = RefCell::new(0);
        let callers = Rc::new(Callers { locks, start, seen, late });
        let local = LocalSet::new();
        for caller in 0..CALLERS {
            let callers = Rc::clone(&callers);
            local.spawn_local(async move {
                let mut rng = Rng::new(seed.wrapping_add(caller));
                for _ in 0..ROUNDS {
                    callers.round(&mut rng).await;
                }
            });
        }
        local.await;
        let seen = callers.seen.take();
        // Tokio's timers have a resolution of a millisecond.
        let mut wrong = judge(&seen, ClockTolerance { early: 0, late: 2_000 });
        if *callers.late.borrow() > 0 {
            wrong.push(format!("{} waiters were granted too late", callers.late.borrow()));
        }
        (wrong, seen.len())
    })
}

/// covers: 004-87, B-65
#[test]
fn thousands_of_calls_in_virtual_time_are_right() {
    for seed in 0..20 {
        let (wrong, calls) = history(seed);
        assert!(wrong.is_empty(), "seed {seed}: {} of {calls}: {}", wrong.len(), wrong[0]);
        assert_eq!(calls, CALLERS as usize * ROUNDS);
    }
}
