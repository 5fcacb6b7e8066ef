//! Locks and slots in Redis: every operation is one call of a Lua script.
//!
//! The lock store has its own connection, so that decisions and locks do not wait for each other.
//! The script publishes names that become free on one channel. An operation whose call was
//! interrupted may have been applied and is not sent again.

mod decode;
mod listen;
mod script_args;
mod wait_replicas;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use catraca_core::lock::reply::{AcquireReply, ConfirmReply, MoveReply, RenewReply};
use catraca_core::lock::{Durability, LeaseKey, LockOp, LockOutcome, LockReply};
use catraca_core::time::Span;
use parking_lot::Mutex;
use redis::{Cmd, RedisResult};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::connect_error::ConnectError;
use super::connection::LiveConnection;
use super::failure::not_sent;
use super::handshake::ServerInfo;
use super::options::RedisOptions;
use super::script::{evaluate, send};
use super::sentinel::{GRACE_MARGIN, PrimaryStanding};
use super::store::RedisStore;
use crate::locks::{
    FreedCallback, FreedNotice, LockStore, LockStoreFuture, NAMESPACES_MAX, forward_freed,
};
use crate::store::{StoreError, When};
use crate::supervise::supervise;
use script_args::{LockScriptArgs, namespace_group, namespace_keys};
use wait_replicas::ReplicaWaiter;

/// The whole script, joined at build time. A Lua name must be defined before it is used, hence the
/// order.
pub const LOCK_SCRIPT: &str = concat!(
    include_str!("lock_store/prelude.lua"),
    include_str!("lock_store/lease.lua"),
    include_str!("lock_store/acquire.lua"),
    include_str!("lock_store/holder_ops.lua"),
    include_str!("lock_store/admin_ops.lua"),
    include_str!("lock_store/dispatch.lua"),
);

/// How many notices of freed names a slow receiver may leave unread; beyond that it lags and must
/// check all names.
const UNREAD_MAX: usize = 4_096;

/// Locks and slots in Redis, which several nodes share.
pub struct RedisLocks {
    store: RedisStore,
    /// Runs operations that must reach replicas, if the options ask for that.
    replica_waiter: Option<ReplicaWaiter>,
    channel: Vec<u8>,
    freed: broadcast::Sender<FreedNotice>,
    /// Namespaces that had an answer before. If their data is missing later, it was lost.
    answered: Mutex<BTreeSet<Box<str>>>,
    listening: AbortHandle,
    /// Why there is no subscription to freed names, while the server refuses it.
    listen_error: Arc<ArcSwapOption<String>>,
}

impl RedisLocks {
    /// Connects. Fails if the server cannot be reached, is a replica or evicts keys. Afterwards a
    /// lost connection is made again in the background.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        Self::connect_replicated(url, options, 0).await
    }

    /// Connects as [`Self::connect`] does. Nothing is granted unless this many replicas acknowledge
    /// it; 0 means that replicas are not waited for.
    pub async fn connect_replicated(
        url: &str,
        options: RedisOptions,
        replicas: u32,
    ) -> Result<Self, ConnectError> {
        let channel = format!("{}freed", options.prefix).into_bytes();
        let store = RedisStore::connect_with(url, options.clone(), LOCK_SCRIPT, None).await?;
        let replica_waiter = match replicas {
            0 => None,
            replicas => Some(
                ReplicaWaiter::connect(url, &options, replicas, store.sentinels().cloned()).await?,
            ),
        };
        let (freed, _) = broadcast::channel(UNREAD_MAX);
        let listen_error = Arc::<ArcSwapOption<String>>::default();
        let listener = listen::RedisListener {
            settings: store.connect_settings().clone(),
            server_lookup: store.server_lookup(),
            channel: channel.clone(),
            freed: freed.clone(),
            error: Arc::clone(&listen_error),
        };
        let listener = Arc::new(listener);
        let listen = supervise("lock listener", move || Arc::clone(&listener).run());
        let listening = tokio::spawn(listen).abort_handle();
        let answered = Mutex::default();
        Ok(Self { store, replica_waiter, channel, freed, answered, listening, listen_error })
    }

    /// The URL without user and password.
    pub fn redacted_url(&self) -> &str {
        self.store.redacted_url()
    }

    /// Notices of names that become free. After the receiver reports a lag, any name may be free.
    pub fn freed_notices(&self) -> broadcast::Receiver<FreedNotice> {
        self.freed.subscribe()
    }

    async fn send(
        &self,
        namespace: &str,
        op: &LockOp,
        when: When,
    ) -> Result<LockReply, StoreError> {
        let group = namespace_group(namespace);
        let keys = namespace_keys(&self.store.prefix(group), namespace);
        // Under Sentinels, other nodes may grant on an old primary for a moment longer.
        let margin = self.store.sentinels().map_or(Span::ZERO, |_| GRACE_MARGIN.into());
        let args = LockScriptArgs::new(namespace, op, margin);
        let answered = self.answered.lock().contains(namespace);
        let unbroken = self.store.unbroken_servers();
        let call = LockScriptCall {
            keys: &keys,
            bytes: args.bytes(),
            channel: &self.channel,
            answered,
            unbroken: &unbroken,
            has_grace: has_grace(op),
            when,
        };
        let reply = self.run(group, call, op).await?;
        // A look writes nothing, so missing data after it does not mean a loss.
        if !answered && !matches!(op, LockOp::Availability(_)) {
            self.add_answered(namespace);
        }
        Ok(reply)
    }

    async fn run(
        &self,
        group: u16,
        call: LockScriptCall<'_>,
        op: &LockOp,
    ) -> Result<LockReply, StoreError> {
        if let Some(waiter) = self.replica_waiter.as_ref().filter(|_| may_promise(op)) {
            return self.run_replicated(waiter, group, call, op).await;
        }
        let send = |live, asking| call.send(live, asking);
        let bytes = self.store.round_trip_after_move(group, send).await?;
        decode::decode_lock_reply(op, &bytes)
    }

    /// Notes that a namespace had an answer. Beyond the bound, a loss of its data goes unnoticed.
    fn add_answered(&self, namespace: &str) {
        let mut answered = self.answered.lock();
        if answered.len() < NAMESPACES_MAX {
            answered.insert(namespace.into());
        }
    }

    /// Runs an operation and waits for replicas. If too few acknowledge it, the operation fails: a
    /// grant is undone; a renewal, a move or a confirmation stays in force and is safe to repeat.
    async fn run_replicated(
        &self,
        waiter: &ReplicaWaiter,
        group: u16,
        call: LockScriptCall<'_>,
        op: &LockOp,
    ) -> Result<LockReply, StoreError> {
        let (bytes, replicas) = waiter.run(group, call).await?;
        let reply = decode::decode_lock_reply(op, &bytes)?;
        let lease = promised_lease(&reply.outcome);
        let Some(key) = lease.filter(|_| replicas < waiter.replicas) else {
            return Ok(reply);
        };
        if let LockOutcome::Acquired(_) = reply.outcome {
            // An undo contains no name, so the namespace of its arguments does not matter; the keys
            // of the call are those of the grant.
            let undo = LockScriptArgs::new("", &LockOp::Undo(key), Span::ZERO);
            let call = LockScriptCall { bytes: undo.bytes(), has_grace: false, ..call };
            let send = |live, asking| call.send(live, asking);
            self.store.round_trip_after_move(group, send).await?;
        }
        let wanted = waiter.replicas;
        let reason = format!("only {replicas} of {wanted} replicas acknowledged the operation");
        Err(StoreError::unavailable(reason))
    }
}

impl LockStore for RedisLocks {
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> LockStoreFuture<'a> {
        Box::pin(async move { Ok(self.send(namespace, op, when).await?) })
    }

    fn listen(&self, listener: FreedCallback) {
        forward_freed(self.freed_notices(), listener);
    }

    fn background_error(&self) -> Option<String> {
        self.listen_error.load().as_deref().cloned()
    }

    /// An append-only file is written once a second by default, so a crash may lose a grant.
    fn durability(&self) -> Option<Durability> {
        Some(Durability::Memory)
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

/// Whether the reply may be a promise to the holder that must survive a failover.
fn may_promise(op: &LockOp) -> bool {
    op.may_take() || matches!(op, LockOp::Confirm { .. } | LockOp::Renew { .. })
}

/// Whether the operation is a promise about a kind with `failover_grace`.
fn has_grace(op: &LockOp) -> bool {
    match op {
        LockOp::Acquire { request, .. } => request.lease.grace > Span::ZERO,
        LockOp::Hold(request) => request.lease.grace > Span::ZERO,
        LockOp::Relocate(request) => request.grace > Span::ZERO,
        LockOp::Renew { grace, .. } | LockOp::Confirm { grace, .. } => *grace > Span::ZERO,
        _ => false,
    }
}

/// The lease that was granted, extended, confirmed or moved, if one was.
fn promised_lease(outcome: &LockOutcome) -> Option<LeaseKey> {
    match outcome {
        LockOutcome::Acquired(AcquireReply::Granted(view))
        | LockOutcome::Confirmed(ConfirmReply::Done(view))
        | LockOutcome::Moved(MoveReply::Done(view))
        | LockOutcome::Renewed(RenewReply::Extended(view)) => Some(view.key),
        _ => None,
    }
}

/// The arguments of one call of the lock script; `prelude.lua` describes them.
#[derive(Clone, Copy)]
struct LockScriptCall<'a> {
    keys: &'a [Vec<u8>],
    bytes: &'a [u8],
    channel: &'a [u8],
    /// Whether the namespace had an answer before.
    answered: bool,
    /// Servers from which the keys may have been moved here without a loss.
    unbroken: &'a [Arc<ServerInfo>],
    /// Whether the operation is a promise about a kind with `failover_grace`.
    has_grace: bool,
    when: When,
}

/// The server of one call.
struct CallPrimary {
    live: LiveConnection,
    /// Whether it is certain that no other server is the primary. Decided once for a call.
    is_confirmed: bool,
}

const UNCONFIRMED: &str = "nothing of a kind with failover_grace is granted, renewed or moved \
     while no majority of the Sentinels has confirmed this primary within the last second: a \
     failover is in progress, or too few Sentinels answer";

impl LockScriptCall<'_> {
    /// Sends the call, after `ASKING` if a server of the cluster redirected it.
    async fn send(self, live: LiveConnection, asking: bool) -> RedisResult<Vec<u8>> {
        let primary = self.confirm_primary(live)?;
        let live = &primary.live;
        let attempt = |name: &'static str, script: &str| {
            send(live.clone(), self.command(name, script, &primary), asking)
        };
        evaluate(live, LOCK_SCRIPT, attempt).await
    }

    /// Refuses a promise on a primary that may have been replaced. The deadline of a promise is no
    /// later than the end of the confirmation, so the server does not apply it after that either.
    fn confirm_primary(&self, live: LiveConnection) -> RedisResult<CallPrimary> {
        let (live, is_confirmed) = match live.server_info.standing() {
            PrimaryStanding::Fixed => (live, true),
            PrimaryStanding::Confirmed(until) if self.has_grace => (live.limited_to(until), true),
            PrimaryStanding::Confirmed(_) => (live, true),
            PrimaryStanding::Unconfirmed if self.has_grace => return Err(not_sent(UNCONFIRMED)),
            PrimaryStanding::Unconfirmed => (live, false),
        };
        Ok(CallPrimary { live, is_confirmed })
    }

    /// `name` is `EVALSHA` or `EVAL`, `script` the SHA-1 or the text of the script.
    fn command(&self, name: &str, script: &str, primary: &CallPrimary) -> Cmd {
        let live = &primary.live;
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(self.keys);
        command.arg(self.bytes).arg(self.channel);
        // The grace of a new primary begins when it is confirmed: until then other nodes may grant
        // on the old one.
        let run_id = if primary.is_confirmed { live.server_info.run_id.as_str() } else { "" };
        command.arg(run_id).arg(u8::from(self.answered));
        command.arg(live.latest_server_time());
        command.arg(moved_from(self.unbroken, &live.server_info));
        if let When::At(now) = self.when {
            command.arg(now.micros());
        }
        command
    }
}

/// The run ids of the servers from which keys may have been moved to `target`. The primary whose
/// replica it was is not among them: its keys came by a failover, which may have lost leases.
fn moved_from(unbroken: &[Arc<ServerInfo>], target: &ServerInfo) -> String {
    let is_source = |source: &&Arc<ServerInfo>| {
        source.server != target.server && source.replication_id != target.followed_replication_id
    };
    let ids = unbroken.iter().filter(is_source).map(|source| source.run_id.as_str());
    ids.collect::<Vec<&str>>().join(" ")
}

/// Finds the server that is connected now, if there is one.
pub(super) type ServerLookup = Arc<dyn Fn() -> Option<super::url::RedisAddress> + Send + Sync>;
