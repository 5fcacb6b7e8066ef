//! A store that several nodes share and that can be made to fail, and applications over it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::RwLock;

use catraca::core::batch::{Batch, Reply};
use catraca::settlement::Settlement;
use catraca::shared::{HeartbeatReport, SharedStats};
use catraca::store::{SharedStore, Store, StoreError, StoreFuture, StoreStatus, When};
use catraca::{
    App, Builder, Catalog, Check, Clock, Decision, Engine, ManualClock, Memory, MemoryOptions,
    Secret, Settle, SharedOptions, Span, Time,
};

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
pub const SECRET: Secret = Secret::from_bytes([7; 32]);

/// A memory store behind a connection that can fail.
#[derive(Clone)]
pub struct Remote(Arc<Server>);

struct Server {
    memory: RwLock<Memory>,
    clock: ManualClock,
    down: AtomicBool,
    replies_lost: AtomicBool,
    refuses_changes: AtomicBool,
    trips: AtomicU64,
    changes: AtomicU64,
    incarnation: AtomicU64,
    bound_records: RwLock<Option<String>>,
    sharded: AtomicBool,
}

impl Remote {
    /// An empty store that uses this clock.
    pub fn new(clock: &ManualClock) -> Self {
        Self(Arc::new(Server {
            memory: RwLock::new(memory(clock)),
            clock: clock.clone(),
            down: AtomicBool::new(false),
            replies_lost: AtomicBool::new(false),
            refuses_changes: AtomicBool::new(false),
            trips: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            incarnation: AtomicU64::new(1),
            bound_records: RwLock::new(None),
            sharded: AtomicBool::new(false),
        }))
    }

    pub fn fail(&self, down: bool) {
        self.0.down.store(down, Ordering::SeqCst);
    }

    /// Applies batches, but loses the replies.
    pub fn lose_answers(&self, replies_lost: bool) {
        self.0.replies_lost.store(replies_lost, Ordering::SeqCst);
    }

    /// Refuses to count changes of lists, facts and modes.
    pub fn refuse_changes(&self, refuses: bool) {
        self.0.refuses_changes.store(refuses, Ordering::SeqCst);
    }

    /// Reports from now on that its keys are sharded over servers.
    pub fn become_sharded(&self) {
        self.0.sharded.store(true, Ordering::SeqCst);
    }

    /// Loses all data, as after a restart without persistence.
    pub fn lose_everything(&self) {
        *self.0.memory.write() = memory(&self.0.clock);
        self.0.incarnation.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of batches that it was asked to apply.
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
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            self.0.trips.fetch_add(1, Ordering::SeqCst);
            self.reach()?;
            let reply = self.0.memory.read().apply(batch, when);
            match self.0.replies_lost.load(Ordering::SeqCst) {
                true => Err(StoreError::unavailable("no answer")),
                false => reply,
            }
        })
    }

    fn is_sharded(&self) -> bool {
        self.0.sharded.load(Ordering::SeqCst)
    }

    fn status(&self) -> StoreFuture<'_, StoreStatus> {
        Box::pin(async {
            self.reach()?;
            let changes = self.0.changes.load(Ordering::SeqCst);
            let incarnation = self.0.incarnation.load(Ordering::SeqCst);
            Ok(StoreStatus { changes, now: self.0.clock.now(), incarnation })
        })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            self.reach()?;
            if self.0.refuses_changes.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("NOPERM"));
            }
            self.0.changes.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        Box::pin(async move {
            self.reach()?;
            let mut bound_records = self.0.bound_records.write();
            Ok(bound_records.get_or_insert_with(|| records.to_owned()).clone())
        })
    }
}

fn memory(clock: &ManualClock) -> Memory {
    Memory::new(MemoryOptions::default(), Arc::new(clock.clone()))
}

/// The engine of a node.
pub fn builder(text: &str, clock: &ManualClock) -> Builder {
    Engine::builder(Catalog::parse(text).unwrap()).clock(clock.clone()).secret(SECRET)
}

/// One of `nodes` nodes over this store.
pub fn node(text: &str, store: &Remote, clock: &ManualClock, nodes: u32) -> App {
    let options = SharedOptions { nodes, ..SharedOptions::default() };
    App::over_store(builder(text, clock), Arc::new(store.clone()), options).unwrap().build()
}

/// One of `nodes` nodes and its store, with one clock for both.
pub fn pair(text: &str, nodes: u32) -> (App, Remote, ManualClock) {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    (node(text, &store, &clock, nodes), store, clock)
}

pub fn check(app: &App, gate: &str, ip: &str) -> Decision {
    poll_ready(app.check(&Check::new(gate, [("ip", ip)]))).unwrap()
}

pub fn settle(app: &App, call: &Settle<'_>) -> Settlement {
    poll_ready(app.settle(call)).unwrap().settlement
}

pub fn heartbeat(app: &App) -> HeartbeatReport {
    poll_ready(app.heartbeat()).unwrap()
}

pub fn stats(app: &App) -> SharedStats {
    app.shared_stats().unwrap()
}

pub fn secs(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

/// The output of a future that must be ready at the first poll.
pub fn poll_ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the future is not ready"),
    }
}
