//! A store that several engines share and that can be made to fail, and engines over it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::RwLock;

use catraca::core::batch::{Batch, Reply};
use catraca::store::{SharedStore, Store, StoreError, StoreStatus, When};
use catraca::{
    Catalog, Check, Clock, Decision, Engine, ManualClock, Memory, MemoryOptions, Secret,
    SharedEngine, SharedOptions, Span, Time,
};

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
pub const SECRET: Secret = Secret::from_bytes([7; 32]);

/// The memory of some server, reached over a wire that can break.
#[derive(Clone)]
pub struct Remote(Arc<Server>);

struct Server {
    memory: RwLock<Memory>,
    clock: ManualClock,
    down: AtomicBool,
    mute: AtomicBool,
    trips: AtomicU64,
    changes: AtomicU64,
    life: AtomicU64,
    claim: RwLock<Option<String>>,
    spreads: AtomicBool,
}

impl Remote {
    /// A server whose clock is its own.
    pub fn new(clock: &ManualClock) -> Self {
        Self(Arc::new(Server {
            memory: RwLock::new(memory(clock)),
            clock: clock.clone(),
            down: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            trips: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            life: AtomicU64::new(1),
            claim: RwLock::new(None),
            spreads: AtomicBool::new(false),
        }))
    }

    pub fn fail(&self, down: bool) {
        self.0.down.store(down, Ordering::SeqCst);
    }

    /// Does what it is told, and the answers are lost.
    pub fn lose_answers(&self, mute: bool) {
        self.0.mute.store(mute, Ordering::SeqCst);
    }

    /// Says from now on that it spreads over servers.
    pub fn spread(&self) {
        self.0.spreads.store(true, Ordering::SeqCst);
    }

    /// Starts anew, knowing nothing.
    pub fn lose_everything(&self) {
        *self.0.memory.write() = memory(&self.0.clock);
        self.0.life.fetch_add(1, Ordering::SeqCst);
    }

    /// How often it was asked to apply something.
    pub fn trips(&self) -> u64 {
        self.0.trips.load(Ordering::SeqCst)
    }

    fn reach(&self) -> Result<(), StoreError> {
        match self.0.down.load(Ordering::SeqCst) {
            true => Err(StoreError::unavailable("no route to the store")),
            false => Ok(()),
        }
    }
}

impl SharedStore for Remote {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        self.0.trips.fetch_add(1, Ordering::SeqCst);
        self.reach()?;
        let reply = self.0.memory.read().apply(batch, when);
        match self.0.mute.load(Ordering::SeqCst) {
            true => Err(StoreError::unavailable("no answer")),
            false => reply,
        }
    }

    fn is_sharded(&self) -> bool {
        self.0.spreads.load(Ordering::SeqCst)
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        self.reach()?;
        let changes = &self.0.changes;
        let life = &self.0.life;
        let changes = changes.load(Ordering::SeqCst);
        let life = life.load(Ordering::SeqCst);
        Ok(StoreStatus { changes, now: self.0.clock.now(), incarnation: life })
    }

    async fn publish_change(&self) -> Result<(), StoreError> {
        self.reach()?;
        self.0.changes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn bind_records(&self, records: &str) -> Result<String, StoreError> {
        self.reach()?;
        let mut claim = self.0.claim.write();
        Ok(claim.get_or_insert_with(|| records.to_owned()).clone())
    }
}

fn memory(clock: &ManualClock) -> Memory {
    Memory::new(MemoryOptions::default(), Arc::new(clock.clone()))
}

/// One of `nodes` over a remote store; its clock is the given one.
pub fn node(text: &str, store: &Remote, clock: &ManualClock, nodes: u32) -> SharedEngine<Remote> {
    let options = SharedOptions { nodes, ..SharedOptions::default() };
    let catalog = Catalog::parse(text).unwrap();
    let builder = Engine::builder(catalog).clock(clock.clone()).secret(SECRET);
    builder.share(store.clone(), options).unwrap()
}

/// A store and one node of some, with one clock for both.
pub fn pair(text: &str, nodes: u32) -> (SharedEngine<Remote>, Remote, ManualClock) {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    (node(text, &store, &clock, nodes), store, clock)
}

pub fn check(engine: &SharedEngine<Remote>, gate: &str, ip: &str) -> Decision {
    now(engine.check(&Check::new(gate, [("ip", ip)]))).unwrap()
}

pub fn beat(engine: &SharedEngine<Remote>) -> catraca::shared::HeartbeatReport {
    now(engine.heartbeat())
}

pub fn secs(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

/// The answer of a future that never really waits.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("nothing here has to be waited for"),
    }
}
