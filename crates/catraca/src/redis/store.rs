//! The store itself: a batch becomes one call, its answer one reply.
//!
//! Must not send a batch again: one that was cut off may have been applied. Only where the server
//! does not know the script, does not have the keys, or says that the batch came too late, it has
//! not run and is sent once more.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply};
use redis::RedisResult;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::call::Call;
use super::cluster::Cluster;
use super::error::ConnectError;
use super::greet::Manners;
use super::link::{Fixed, Line, Link};
use super::locks::Whereabouts;
use super::options::RedisOptions;
use super::reply::read;
use super::script::SCRIPT;
use super::send::run;
use super::sentinel::Sentinels;
use super::slots;
use super::split::{group, merge, split};
use super::url::{Kind, Place};
use crate::store::{Pulse, Returning, SharedStore, StoreError, When};

/// Counters and blocks in Redis, which several nodes share.
pub struct RedisStore {
    shown: String,
    manners: Manners,
    pub(super) lines: Lines,
    prefix: Vec<u8>,
    pub(super) deadline: Duration,
    /// What the last pulse found.
    pub(super) danger: ArcSwapOption<String>,
    room: Semaphore,
}

/// How the servers are reached.
pub(super) enum Lines {
    /// One server, or the primary that Sentinels name.
    One(Link),
    Cluster(Cluster),
}

impl RedisStore {
    /// Connects, and refuses a server that is not to be trusted with blocks. From then on the
    /// connection is kept up in the background, whatever happens to the server.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        Self::connect_with(url, options, SCRIPT).await
    }

    /// The same with another script.
    pub(super) async fn connect_with(
        url: &str,
        options: RedisOptions,
        script: &'static str,
    ) -> Result<Self, ConnectError> {
        let place = Place::parse(url)?;
        prefix_fits(&options.prefix)?;
        let manners = Manners::new(&place, &options, script)?;
        let shown = place.to_string();
        Ok(Self {
            lines: reach(place, manners.clone(), options.connect_timeout).await?,
            manners,
            shown,
            prefix: options.prefix.into_bytes(),
            deadline: options.deadline,
            danger: ArcSwapOption::empty(),
            room: Semaphore::new(options.in_flight_max),
        })
    }

    /// Where the state is, without user and password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Why there is no connection now, if there is none.
    pub fn trouble(&self) -> Option<String> {
        match &self.lines {
            Lines::One(link) => link.trouble(),
            Lines::Cluster(cluster) => cluster.trouble(),
        }
    }

    pub(super) fn manners(&self) -> &Manners {
        &self.manners
    }

    /// Who has the line now; in a cluster one of its primaries.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        match &self.lines {
            Lines::One(link) => {
                let handle = link.handle();
                Arc::new(move || handle.server())
            }
            Lines::Cluster(cluster) => cluster.whereabouts(),
        }
    }

    /// What the keys of a group begin with.
    pub(super) fn prefix(&self, group: u16) -> Cow<'_, [u8]> {
        match &self.lines {
            Lines::One(_) => Cow::Borrowed(&self.prefix),
            Lines::Cluster(_) => [&self.prefix, slots::tag(group).as_bytes()].concat().into(),
        }
    }

    /// One trip within the deadline, if not too many are on their way. `go` is told whether it must
    /// say first that another server sent it.
    pub(super) async fn trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        group: u16,
        go: impl Fn(Line, bool) -> F,
    ) -> Result<T, StoreError> {
        self.trip_until(Instant::now() + self.deadline, group, go).await
    }

    async fn trip_until<T, F: Future<Output = RedisResult<T>>>(
        &self,
        until: Instant,
        group: u16,
        go: impl Fn(Line, bool) -> F,
    ) -> Result<T, StoreError> {
        let _permit = self.enter()?;
        let answer = match &self.lines {
            Lines::One(link) => link.trip(until, |line| go(line, false)).await,
            Lines::Cluster(cluster) => cluster.trip(slots::slot(group), until, go).await,
        };
        answer.map_err(StoreError::from)
    }

    /// A batch whose keys are of one group.
    async fn apply_one(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let group = group(batch);
        let prefix = self.prefix(group);
        let (call, until) = (Call::new(&prefix, batch), Instant::now() + self.deadline);
        let go = |line, sent_on| run(line, sent_on, &call, when);
        let answer = self.trip_until(until, group, go).await;
        if matches!(answer, Err(StoreError::Unavailable { .. })) && acts(batch) {
            // It may be on its way still, though its line is gone, and be done until then.
            sleep_until(until).await;
        }
        read(batch, &answer?)
    }

    fn enter(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        let full = |_| StoreError::unavailable("too many calls to Redis are on their way");
        self.room.try_acquire().map_err(full)
    }
}

impl SharedStore for RedisStore {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let parts = if self.spreads() { split(batch) } else { None };
        let Some(parts) = parts else { return self.apply_one(batch, when).await };
        let mut replies = Vec::with_capacity(parts.len());
        for (places, part) in parts {
            replies.push((places, self.apply_one(&part, when).await?));
        }
        merge(replies).ok_or_else(StoreError::odd_reply)
    }

    fn spreads(&self) -> bool {
        matches!(self.lines, Lines::Cluster(_))
    }

    fn danger(&self) -> Option<String> {
        self.danger.load().as_deref().cloned()
    }

    fn returns(&self) -> Returning {
        match &self.lines {
            Lines::One(link) => Box::pin(link.handle().returns()),
            Lines::Cluster(_) => Box::pin(std::future::pending()),
        }
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

async fn reach(place: Place, manners: Manners, patience: Duration) -> Result<Lines, ConnectError> {
    let mut servers = place.servers;
    match place.kind {
        Kind::One => {
            let none = || ConnectError::Url("it names no server".to_owned());
            let server = servers.pop().ok_or_else(none)?;
            Ok(Lines::One(Link::connect(Fixed { manners, server }, patience).await?))
        }
        Kind::Sentinel(name) => {
            let sentinels = Arc::new(Sentinels { manners, servers, name });
            let link = Link::connect(sentinels.clone(), patience).await?;
            let listening = tokio::spawn(sentinels.listen(link.handle()));
            Ok(Lines::One(link.with(listening.abort_handle())))
        }
        Kind::Cluster => Ok(Lines::Cluster(Cluster::connect(manners, servers, patience).await?)),
    }
}

/// Whether it is an act of somebody, who is told whether it was done.
fn acts(batch: &Batch) -> bool {
    matches!(batch, Batch::Block(_) | Batch::Unblock(_) | Batch::Reset(_))
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
