//! Runs lock operations and waits until replicas have acknowledged them (`WAIT`).
//!
//! `WAIT` counts only the writes of its own connection, and blocks that connection. So these calls
//! have their own connections, each used by one call at a time, and `WAIT` is in the same pipeline
//! as the script. This is no consensus: an acknowledged write can still be lost.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, RedisResult, pipe};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{LOCK_SCRIPT, LockScriptCall};
use crate::redis::connect_error::ConnectError;
use crate::redis::connection::LiveConnection;
use crate::redis::options::RedisOptions;
use crate::redis::script::evaluate;
use crate::redis::sentinel::Sentinels;
use crate::redis::store::RedisStore;
use crate::store::StoreError;

/// How many calls can wait for replicas at the same time.
const CONNECTIONS: usize = 8;

/// A pool of connections for calls that wait for replicas.
pub(super) struct ReplicaWaiter {
    connections: Vec<RedisStore>,
    /// As many permits as there are free connections.
    permits: Semaphore,
    /// Indexes of the free connections.
    free: Mutex<Vec<usize>>,
    /// How many replicas must acknowledge.
    pub replicas: u32,
    deadline: Duration,
}

impl ReplicaWaiter {
    pub async fn connect(
        url: &str,
        options: &RedisOptions,
        replicas: u32,
        sentinels: Option<Arc<Sentinels>>,
    ) -> Result<Self, ConnectError> {
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            let sentinels = sentinels.clone();
            let store =
                RedisStore::connect_with(url, options.clone(), LOCK_SCRIPT, sentinels).await?;
            connections.push(store);
        }
        let permits = Semaphore::new(CONNECTIONS);
        let free = Mutex::new((0..CONNECTIONS).collect());
        Ok(Self { connections, permits, free, replicas, deadline: options.deadline })
    }

    /// Runs the script and waits for replicas; returns the reply and how many acknowledged.
    pub async fn run(
        &self,
        group: u16,
        call: LockScriptCall<'_>,
    ) -> Result<(Vec<u8>, u32), StoreError> {
        let full = || StoreError::unavailable("too many calls wait for replicas");
        let permit = timeout(self.deadline, self.permits.acquire()).await.map_err(|_| full())?;
        let _permit = permit.map_err(|_| StoreError::unavailable("the store is being closed"))?;
        // Dropped before the permit, so that a call with a permit finds a free connection.
        let borrowed = BorrowedConnection::take(&self.free);
        let connection = borrowed.index.and_then(|index| self.connections.get(index));
        let connection = connection.ok_or_else(full)?;
        // Three quarters of the deadline: the network takes time, too, and a call that misses its
        // deadline marks the connection as down. 0 would wait without a limit.
        let wait_millis = self.deadline.mul_f64(0.75).as_millis().max(1) as u64;
        let wait = redis::cmd("WAIT").arg(self.replicas).arg(wait_millis).to_owned();
        let run = |live, asking| run_and_wait(live, asking, call, wait.clone());
        connection.round_trip_after_move(group, run).await
    }
}

/// A connection that no other call uses; it is free again when this is dropped, even if the call is
/// cancelled.
struct BorrowedConnection<'a> {
    index: Option<usize>,
    free: &'a Mutex<Vec<usize>>,
}

impl<'a> BorrowedConnection<'a> {
    fn take(free: &'a Mutex<Vec<usize>>) -> Self {
        Self { index: free.lock().pop(), free }
    }
}

impl Drop for BorrowedConnection<'_> {
    fn drop(&mut self) {
        self.free.lock().extend(self.index.take());
    }
}

/// Sends the script and `WAIT` in one pipeline.
async fn run_and_wait(
    live: LiveConnection,
    asking: bool,
    call: LockScriptCall<'_>,
    wait: Cmd,
) -> RedisResult<(Vec<u8>, u32)> {
    let primary = call.confirm_primary(live)?;
    let live = &primary.live;
    let attempt = |name: &'static str, script: &str| {
        let mut commands = pipe();
        if asking {
            commands.cmd("ASKING").ignore();
        }
        commands.add_command(call.command(name, script, &primary));
        commands.add_command(wait.clone());
        let mut connection = live.connection.clone();
        async move { commands.query_async(&mut connection).await }
    };
    evaluate(live, LOCK_SCRIPT, attempt).await
}
