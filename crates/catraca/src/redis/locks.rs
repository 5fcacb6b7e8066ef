//! Locks and slots in Redis: one script and one trip an operation, whatever it does.
//!
//! A connection of its own, so that decisions and locks do not wait for each other. What becomes
//! free is told on one channel. Must not send an operation twice: one that was cut off may have
//! been applied.

mod acked;
mod call;
mod listen;
mod reply;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use catraca_core::lock::reply::{Acquired, Confirmed, Moved, Renewed};
use catraca_core::lock::{LeaseKey, LockOp, LockReply, LockTold};
use parking_lot::Mutex;
use redis::{Cmd, RedisResult};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::error::ConnectError;
use super::link::Line;
use super::options::RedisOptions;
use super::send::{evaluate, send};
use super::store::RedisStore;
use crate::locks::{Asking, Freed, LockStore, NAMESPACES_MAX};
use crate::store::{StoreError, When};
use acked::Acked;
use call::{LockCall, group, keys};

/// The whole script, joined at build time. A name must be known before it is used, hence the order.
pub const LOCK_SCRIPT: &str = concat!(
    include_str!("locks/begin.lua"),
    include_str!("locks/lease.lua"),
    include_str!("locks/take.lua"),
    include_str!("locks/change.lua"),
    include_str!("locks/operate.lua"),
    include_str!("locks/apply.lua"),
);

/// Messages that a slow listener may leave unread before it must look at everything.
const UNREAD_MAX: usize = 4_096;

/// Locks and slots in Redis, which several nodes share.
pub struct RedisLocks {
    store: RedisStore,
    /// Where grants wait for replicas, if they have to.
    acked: Option<Acked>,
    channel: Vec<u8>,
    freed: broadcast::Sender<Freed>,
    /// Namespaces that something was answered about.
    answered: Mutex<BTreeSet<Box<str>>>,
    listening: AbortHandle,
}

impl RedisLocks {
    /// Connects, and refuses a server that is not to be trusted with leases. From then on the
    /// connection is kept up in the background, whatever happens to the server.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        Self::replicated(url, options, 0).await
    }

    /// The same, but nothing is granted before so many replicas have heard of it.
    pub async fn replicated(
        url: &str,
        options: RedisOptions,
        replicas: u32,
    ) -> Result<Self, ConnectError> {
        let acked = match replicas {
            0 => None,
            replicas => Some(Acked::connect(url, &options, replicas).await?),
        };
        let channel = format!("{}freed", options.prefix).into_bytes();
        let store = RedisStore::connect_with(url, options, LOCK_SCRIPT).await?;
        let (freed, _) = broadcast::channel(UNREAD_MAX);
        let listener = listen::Listener {
            manners: store.manners().clone(),
            whereabouts: store.whereabouts(),
            channel: channel.clone(),
            freed: freed.clone(),
        };
        let listening = tokio::spawn(listener.listen()).abort_handle();
        let answered = Mutex::default();
        Ok(Self { store, acked, channel, freed, answered, listening })
    }

    /// Where the state is, without user and password.
    pub fn shown(&self) -> &str {
        self.store.shown()
    }

    async fn send(
        &self,
        namespace: &str,
        op: &LockOp,
        when: When,
    ) -> Result<LockReply, StoreError> {
        let group = group(namespace);
        let keys = keys(&self.store.prefix(group), namespace);
        let call = LockCall::new(namespace, op);
        let known = self.answered.lock().contains(namespace);
        let run = Run { keys: &keys, bytes: call.bytes(), channel: &self.channel, known, when };
        let reply = self.run(group, run, op).await?;
        // A look leaves nothing behind by which a loss could be noticed.
        if !known && !matches!(op, LockOp::Look(_)) {
            self.remember(namespace);
        }
        Ok(reply)
    }

    async fn run(&self, group: u16, run: Run<'_>, op: &LockOp) -> Result<LockReply, StoreError> {
        if let Some(acked) = self.acked.as_ref().filter(|_| promises(op)) {
            return self.promise(acked, (group, run), op).await;
        }
        let bytes = self.store.trip(group, |line, sent_on| run.go(line, sent_on)).await?;
        reply::read(op, &bytes)
    }

    fn remember(&self, namespace: &str) {
        let mut answered = self.answered.lock();
        if answered.len() < NAMESPACES_MAX {
            answered.insert(namespace.into());
        }
    }

    /// An operation whose answer is a promise: too few replicas, and it is taken back.
    async fn promise(
        &self,
        acked: &Acked,
        (group, run): (u16, Run<'_>),
        op: &LockOp,
    ) -> Result<LockReply, StoreError> {
        let (bytes, replicas) = acked.send(group, run).await?;
        let reply = reply::read(op, &bytes)?;
        let Some(key) = promised(&reply.told).filter(|_| replicas < acked.replicas) else {
            return Ok(reply);
        };
        if let LockTold::Acquired(_) = reply.told {
            let undo = LockCall::new("", &LockOp::Undo(key));
            let run = Run { bytes: undo.bytes(), ..run };
            self.store.trip(group, |line, sent_on| run.go(line, sent_on)).await?;
        }
        let wanted = acked.replicas;
        Err(StoreError::unavailable(format!("{replicas} of {wanted} replicas have heard of it")))
    }
}

impl LockStore for RedisLocks {
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> Asking<'a> {
        Box::pin(self.send(namespace, op, when))
    }

    fn freed(&self) -> broadcast::Receiver<Freed> {
        self.freed.subscribe()
    }
}

impl Drop for RedisLocks {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl fmt::Debug for RedisLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLocks").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Whether its answer may be a promise.
fn promises(op: &LockOp) -> bool {
    op.takes() || matches!(op, LockOp::Confirm { .. } | LockOp::Renew { .. })
}

/// The lease about which a promise is made, if one is.
fn promised(told: &LockTold) -> Option<LeaseKey> {
    match told {
        LockTold::Acquired(Acquired::Granted(view))
        | LockTold::Confirmed(Confirmed::Done(view))
        | LockTold::Moved(Moved::Done(view))
        | LockTold::Renewed(Renewed::Extended(view)) => Some(view.key),
        _ => None,
    }
}

/// One run of the script.
#[derive(Clone, Copy)]
struct Run<'a> {
    keys: &'a [Vec<u8>],
    bytes: &'a [u8],
    channel: &'a [u8],
    /// Whether something was answered about the namespace before.
    known: bool,
    when: When,
}

impl Run<'_> {
    async fn go(self, line: Line, sent_on: bool) -> RedisResult<Vec<u8>> {
        let command = |name: &str, script: &str| self.command(name, script, &line);
        let go =
            |name: &'static str, script: &str| send(line.clone(), command(name, script), sent_on);
        evaluate(&line, LOCK_SCRIPT, go).await
    }

    fn command(&self, name: &str, script: &str, line: &Line) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(self.keys);
        command.arg(self.bytes).arg(self.channel);
        command.arg(&line.about.run_id).arg(u8::from(self.known)).arg(line.latest());
        if let When::At(now) = self.when {
            command.arg(now.micros());
        }
        command
    }
}

/// Who has the line now, if there is one.
pub(super) type Whereabouts = Arc<dyn Fn() -> Option<super::url::Server> + Send + Sync>;
