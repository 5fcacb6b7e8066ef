//! A store that several nodes share and that can be made to fail, and applications over it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::RwLock;

use catraca::core::batch::{Batch, Reply};
use catraca::settlement::Settlement;
use catraca::shared::{HeartbeatReport, SharedStats};
use catraca::store::{
    NOTICES_PER_REPLY, NodeMessage, NodeReply, RulePage, RuleWriteMode, SharedStore, StampedRule,
    Store, StoreError, StoreFuture, StoreStatus, When,
};
use catraca::{
    App, Builder, Catalog, Check, Clock, Decision, Engine, ManualClock, Memory, MemoryOptions,
    Secret, Settle, SharedOptions, Span, Time,
};

pub const START: Time = Time::from_micros(1_800_000_000_000_000);
pub const SECRET: Secret = Secret::from_bytes([7; 32]);

/// A memory store behind a connection that can fail.
#[derive(Clone)]
pub struct Remote(Arc<Server>, Arc<AtomicBool>);

struct Server {
    memory: RwLock<Memory>,
    clock: ManualClock,
    down: AtomicBool,
    replies_lost: AtomicBool,
    is_moving: AtomicBool,
    refuses_changes: AtomicBool,
    refuses_notices: AtomicBool,
    /// In microseconds.
    status_delay: AtomicI64,
    trips: AtomicU64,
    changes: AtomicU64,
    incarnation: AtomicU64,
    bound_records: RwLock<Option<String>>,
    sharded: AtomicBool,
    messages: RwLock<Messages>,
}

/// What nodes have published.
#[derive(Default)]
struct Messages {
    nodes: BTreeMap<String, String>,
    notices: Vec<(u64, Vec<u8>)>,
    last: u64,
    rules: BTreeMap<Vec<u8>, StampedRule>,
}

impl Messages {
    fn write_rule(&mut self, rule: &StampedRule, mode: RuleWriteMode) {
        let stored = self.rules.get(&rule.name);
        match mode {
            RuleWriteMode::Merge if stored.is_none_or(|stored| rule.stamp > stored.stamp) => {
                self.rules.insert(rule.name.clone(), rule.clone());
            }
            RuleWriteMode::Purge if stored == Some(rule) => {
                self.rules.remove(&rule.name);
            }
            RuleWriteMode::Merge | RuleWriteMode::Purge => {}
        }
    }
}

impl Remote {
    /// An empty store that uses this clock.
    pub fn new(clock: &ManualClock) -> Self {
        let server = Server {
            memory: RwLock::new(memory(clock)),
            clock: clock.clone(),
            down: AtomicBool::new(false),
            replies_lost: AtomicBool::new(false),
            is_moving: AtomicBool::new(false),
            refuses_changes: AtomicBool::new(false),
            refuses_notices: AtomicBool::new(false),
            status_delay: AtomicI64::new(0),
            trips: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            incarnation: AtomicU64::new(1),
            bound_records: RwLock::new(None),
            sharded: AtomicBool::new(false),
            messages: RwLock::default(),
        };
        Self(Arc::new(server), Arc::default())
    }

    /// The same store over another connection, which can be cut alone.
    pub fn new_link(&self) -> Self {
        Self(Arc::clone(&self.0), Arc::default())
    }

    /// Cuts or restores this connection.
    pub fn cut(&self, is_cut: bool) {
        self.1.store(is_cut, Ordering::SeqCst);
    }

    pub fn fail(&self, down: bool) {
        self.0.down.store(down, Ordering::SeqCst);
    }

    /// Applies batches, but loses the replies.
    pub fn lose_answers(&self, replies_lost: bool) {
        self.0.replies_lost.store(replies_lost, Ordering::SeqCst);
    }

    /// Refuses batches because it moves their keys to another server.
    pub fn move_keys(&self, is_moving: bool) {
        self.0.is_moving.store(is_moving, Ordering::SeqCst);
    }

    /// Restarts without losing anything.
    pub fn restart(&self) {
        self.0.incarnation.fetch_add(1, Ordering::SeqCst);
    }

    /// Refuses to count changes of lists, facts and modes.
    pub fn refuse_changes(&self, refuses: bool) {
        self.0.refuses_changes.store(refuses, Ordering::SeqCst);
    }

    /// Refuses to exchange notices.
    pub fn refuse_notices(&self, refuses: bool) {
        self.0.refuses_notices.store(refuses, Ordering::SeqCst);
    }

    /// Takes this long until it reads its clock for a status.
    pub fn delay_status(&self, delay: Span) {
        self.0.status_delay.store(delay.micros(), Ordering::SeqCst);
    }

    /// Reports from now on that its keys are sharded over servers.
    pub fn become_sharded(&self) {
        self.0.sharded.store(true, Ordering::SeqCst);
    }

    /// Loses all data, as after a restart without persistence.
    pub fn lose_everything(&self) {
        *self.0.memory.write() = memory(&self.0.clock);
        *self.0.messages.write() = Messages::default();
        self.0.incarnation.fetch_add(1, Ordering::SeqCst);
    }

    /// Loses the rules, without any other sign of a loss.
    pub fn lose_rules(&self) {
        self.0.messages.write().rules.clear();
    }

    /// All bytes that nodes have published.
    pub fn published_bytes(&self) -> Vec<u8> {
        let all = self.0.messages.read();
        let notices = all.notices.iter().map(|(_, body)| body);
        let rules = all.rules.values().filter_map(|rule| rule.body.as_ref());
        notices.chain(rules).flatten().copied().collect()
    }

    /// The number of notices that nodes have published.
    pub fn published_notices(&self) -> usize {
        self.0.messages.read().notices.len()
    }

    /// Adds this many notices that no node can read.
    pub fn fill_notices(&self, count: u64) {
        let mut all = self.0.messages.write();
        for _ in 0..count {
            all.last += 1;
            let version = all.last;
            all.notices.push((version, Vec::new()));
        }
    }

    /// The number of batches that it was asked to apply.
    pub fn trips(&self) -> u64 {
        self.0.trips.load(Ordering::SeqCst)
    }

    fn reach(&self) -> Result<(), StoreError> {
        match self.0.down.load(Ordering::SeqCst) || self.1.load(Ordering::SeqCst) {
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
            if self.0.is_moving.load(Ordering::SeqCst) {
                return Err(StoreError::Moving { reason: "TRYAGAIN".to_owned() });
            }
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
            let delay = self.0.status_delay.load(Ordering::SeqCst);
            self.0.clock.advance(Span::from_micros(delay));
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

    fn exchange<'a>(&'a self, message: &'a NodeMessage<'a>) -> StoreFuture<'a, NodeReply> {
        Box::pin(async move {
            self.reach()?;
            if self.0.refuses_notices.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("OOM"));
            }
            let mut all = self.0.messages.write();
            all.nodes.insert(message.node.to_owned(), message.state.to_owned());
            all.nodes.retain(|id, _| !message.gone.contains(id));
            for notice in message.notices {
                all.last += 1;
                let version = all.last;
                all.notices.push((version, notice.clone()));
            }
            let after = message.after.parse().unwrap_or(0);
            let newer = all.notices.iter().filter(|(version, _)| *version > after);
            let newer = newer.take(NOTICES_PER_REPLY);
            Ok(NodeReply {
                notices: newer.map(|(version, body)| (version.to_string(), body.clone())).collect(),
                stored: all.notices.len() as u64,
                nodes: all.nodes.clone().into_iter().collect(),
            })
        })
    }

    fn trim_notices(&self, keep: u64) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move {
            self.reach()?;
            let mut all = self.0.messages.write();
            let surplus = all.notices.len().saturating_sub(keep as usize);
            Ok(all.notices.drain(..surplus).map(|(_, body)| body).collect())
        })
    }

    fn write_rules<'a>(
        &'a self,
        rules: &'a [StampedRule],
        mode: RuleWriteMode,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.reach()?;
            let mut all = self.0.messages.write();
            rules.iter().for_each(|rule| all.write_rule(rule, mode));
            if mode == RuleWriteMode::Merge {
                self.0.changes.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        })
    }

    fn read_rules(&self, _: u64) -> StoreFuture<'_, RulePage> {
        Box::pin(async move {
            self.reach()?;
            let rules = self.0.messages.read().rules.values().cloned().collect();
            Ok(RulePage { rules, next: None })
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
