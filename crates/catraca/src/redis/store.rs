//! The store itself: a batch becomes one call, its answer one reply.
//!
//! Must not send a batch again: one that was cut off may have been applied. Only a script that the
//! server does not know is sent in full, since it has not run.

use std::fmt;
use std::time::Duration;

use catraca_core::batch::{Batch, Reply};
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::call::Call;
use super::error::ConnectError;
use super::greet::Manners;
use super::link::{Fixed, Line, Link};
use super::options::RedisOptions;
use super::reply::read;
use super::script::SCRIPT;
use super::url::{Kind, Place};
use crate::store::{Pulse, SharedStore, StoreError, When};

/// Counters and blocks in Redis, which several nodes share.
pub struct RedisStore {
    shown: String,
    link: Link,
    pub(super) prefix: Vec<u8>,
    deadline: Duration,
    room: Semaphore,
}

impl RedisStore {
    /// Connects, and refuses a server that is not to be trusted with blocks. From then on the
    /// connection is kept up in the background, whatever happens to the server.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        let place = Place::parse(url)?;
        let shown = place.to_string();
        prefix_fits(&options.prefix)?;
        let manners = Manners::new(&place, &options)?;
        let patience = options.connect_timeout;
        let Kind::One = place.kind else {
            return Err(ConnectError::Url("Sentinels and clusters are not served yet".to_owned()));
        };
        let mut servers = place.servers.iter().cloned();
        let server = servers.next().ok_or_else(|| ConnectError::Url("no server".to_owned()))?;
        let (link, first) = Link::start(Fixed { manners, server }, patience);
        first.await.map_err(|_| ConnectError::Url("nobody keeps the line".to_owned()))??;
        Ok(Self {
            shown,
            link,
            prefix: options.prefix.into_bytes(),
            deadline: options.deadline,
            room: Semaphore::new(options.in_flight_max),
        })
    }

    /// Where the state is, without user and password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Why there is no connection now, if there is none.
    pub fn trouble(&self) -> Option<String> {
        self.link.trouble()
    }

    /// One trip within the deadline, if not too many are on their way.
    pub(super) async fn trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        go: impl FnOnce(Line) -> F,
    ) -> Result<T, StoreError> {
        let _permit = self.enter()?;
        self.link.trip(self.deadline, go).await.map_err(StoreError::from)
    }

    fn enter(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let full = |_| StoreError::unavailable("too many calls to Redis are on their way");
        self.room.try_acquire().map_err(full)
    }
}

impl SharedStore for RedisStore {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let call = Call::new(&self.prefix, batch);
        let bytes = self.trip(|line| run(line, &call, when)).await?;
        read(batch, &bytes)
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        self.feel_pulse().await
    }

    async fn stir(&self) -> Result<(), StoreError> {
        self.count_change().await
    }

    async fn claim(&self, records: &str) -> Result<String, StoreError> {
        self.claim_for(records).await
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// A prefix with braces would decide the slots of all keys.
fn prefix_fits(prefix: &str) -> Result<(), ConnectError> {
    if prefix.len() <= 64 && prefix.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'{') {
        return Ok(());
    }
    Err(ConnectError::Url(format!(
        "the prefix {prefix:?} is not made of at most 64 visible ASCII characters without {{"
    )))
}

/// Runs the script; a server that forgot it gets the whole text, once.
async fn run(mut line: Line, call: &Call<'_>, when: When) -> RedisResult<Vec<u8>> {
    let command = command("EVALSHA", &line.about.script, call, when);
    let mut answer = command.query_async(&mut line.connection).await;
    if is_unknown(&answer) {
        answer = whole(call, when).query_async(&mut line.connection).await;
    }
    answer
}

fn is_unknown<T>(answer: &RedisResult<T>) -> bool {
    let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
    answer.as_ref().is_err_and(|error| error.kind() == unknown)
}

fn whole(call: &Call<'_>, when: When) -> Cmd {
    command("EVAL", SCRIPT, call, when)
}

fn command(name: &str, script: &str, call: &Call<'_>, when: When) -> Cmd {
    let keys = call.keys();
    let size = script.len() + call.batch().len() + 64 * keys.len();
    let mut command = Cmd::with_capacity(5 + keys.len(), 64 + size);
    command.arg(name).arg(script).arg(keys.len());
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(call.batch());
    if let When::At(now) = when {
        command.arg(now.micros());
    }
    command
}
