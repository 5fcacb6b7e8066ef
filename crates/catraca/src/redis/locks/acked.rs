//! Grants that replicas have heard of before they are answered.
//!
//! `WAIT` counts only what was written on its own connection, and blocks that connection until it
//! knows. So it has lines of its own, each used by one call at a time, and goes in the same
//! pipeline as the script. It is no consensus: an acknowledged write can still be lost. Must not
//! let a grant stand that too few replicas have.

use std::time::Duration;

use parking_lot::Mutex;
use redis::{Cmd, RedisResult, pipe};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{LOCK_SCRIPT, Run};
use crate::redis::error::ConnectError;
use crate::redis::link::Line;
use crate::redis::options::RedisOptions;
use crate::redis::send::evaluate;
use crate::redis::store::RedisStore;
use crate::store::StoreError;

/// Calls that can wait for replicas at one time.
const LINES: usize = 8;

/// Lines for calls that wait for replicas.
pub(super) struct Acked {
    lines: Vec<RedisStore>,
    room: Semaphore,
    free: Mutex<Vec<usize>>,
    pub replicas: u32,
    deadline: Duration,
}

impl Acked {
    pub async fn connect(
        url: &str,
        options: &RedisOptions,
        replicas: u32,
    ) -> Result<Self, ConnectError> {
        let mut lines = Vec::with_capacity(LINES);
        for _ in 0..LINES {
            lines.push(RedisStore::connect_with(url, options.clone(), LOCK_SCRIPT).await?);
        }
        let (room, free) = (Semaphore::new(LINES), Mutex::new((0..LINES).collect()));
        Ok(Self { lines, room, free, replicas, deadline: options.deadline })
    }

    /// Runs the script and waits for replicas; how many have it.
    pub async fn send(&self, group: u16, run: Run<'_>) -> Result<(Vec<u8>, u32), StoreError> {
        let full = |_| StoreError::unavailable("too many calls wait for replicas");
        let permit = timeout(self.deadline, self.room.acquire()).await.map_err(full)?;
        let _permit = permit.map_err(|_| StoreError::unavailable("it is being closed"))?;
        let taken = Taken::of(&self.free);
        let line = taken.0.and_then(|line| self.lines.get(line));
        let line = line.ok_or_else(|| StoreError::unavailable("too many calls wait"))?;
        // What the way takes must fit into the deadline, too.
        let patience = self.deadline.mul_f64(0.75).as_millis().max(1) as u64;
        let wait = redis::cmd("WAIT").arg(self.replicas).arg(patience).to_owned();
        line.trip(group, |line, sent_on| both(line, sent_on, run, wait.clone())).await
    }
}

/// A line that nobody else uses, until this is dropped.
struct Taken<'a>(Option<usize>, &'a Mutex<Vec<usize>>);

impl<'a> Taken<'a> {
    fn of(free: &'a Mutex<Vec<usize>>) -> Self {
        Self(free.lock().pop(), free)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.1.lock().extend(self.0.take());
    }
}

async fn both(line: Line, sent_on: bool, run: Run<'_>, wait: Cmd) -> RedisResult<(Vec<u8>, u32)> {
    let go = |name: &'static str, script: &str| {
        let mut whole = pipe();
        if sent_on {
            whole.cmd("ASKING").ignore();
        }
        whole.add_command(run.command(name, script, &line));
        whole.add_command(wait.clone());
        let mut connection = line.connection.clone();
        async move { whole.query_async(&mut connection).await }
    };
    evaluate(&line, LOCK_SCRIPT, go).await
}
