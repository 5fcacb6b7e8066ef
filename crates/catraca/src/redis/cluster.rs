//! The primaries of a cluster: a line to each, and which of them has which slots.
//!
//! A call goes to who has its slot. A server that no longer has it says so without running the
//! script, so the call follows that word, once. Must not split a batch: all of its keys are in one
//! slot.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::error::ConnectError;
use super::failure::Failed;
use super::greet::Manners;
use super::link::{Fixed, Line, Link};
use super::locks::Whereabouts;
use super::slots::{Map, ask_slots};
use super::url::Server;
use crate::store::StoreError;

/// How often the cluster is asked who has what: seldom while all is well.
const CALM: Duration = Duration::from_secs(2);
const TROUBLED: Duration = Duration::from_millis(100);

/// Lines to all primaries, kept until this is dropped.
pub(super) struct Cluster {
    core: Arc<Core>,
    task: AbortHandle,
}

struct Core {
    manners: Manners,
    patience: Duration,
    /// The servers of the URL: asked when no other answers.
    seeds: Vec<Server>,
    map: ArcSwap<Map>,
    /// Somebody noticed that the map is old.
    stale: Notify,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// Connects to all primaries; one that is not to be trusted with blocks is refused.
    pub async fn connect(
        manners: Manners,
        seeds: Vec<Server>,
        patience: Duration,
    ) -> Result<Self, ConnectError> {
        let (map, stale) = (ArcSwap::default(), Notify::new());
        let core = Arc::new(Core { manners, patience, seeds, map, stale });
        core.refresh().await?;
        for link in core.map.load().links() {
            link.arrived().await?;
        }
        let task = tokio::spawn(core.clone().keep()).abort_handle();
        Ok(Self { core, task })
    }

    /// Why some keys cannot be reached now, if any.
    pub fn trouble(&self) -> Option<String> {
        let map = self.core.map.load();
        map.links().find_map(|link| link.trouble())
    }

    /// One of the primaries that answer now, the same for as long as it does.
    pub fn whereabouts(&self) -> Whereabouts {
        let core = self.core.clone();
        Arc::new(move || core.map.load().links().find_map(|link| link.server()))
    }

    /// The map as it is now.
    pub fn map(&self) -> Arc<Map> {
        self.core.map.load_full()
    }

    /// One call to who has the slot, given up at an instant. `go` is told whether it must first say
    /// that it was sent here by another server.
    pub async fn trip<T, F: Future<Output = RedisResult<T>>>(
        &self,
        slot: u16,
        until: Instant,
        go: impl Fn(Line, bool) -> F,
    ) -> Result<T, Failed> {
        let left = || until.saturating_duration_since(Instant::now());
        let whole = left();
        let Some(link) = self.core.map.load().link(slot) else {
            self.core.stale.notify_one();
            let reason = "no server of the cluster has these keys";
            return Err(Failed::Silent(StoreError::unavailable(reason)));
        };
        let failed = match link.trip(until, |line| go(line, false)).await {
            Err(Failed::Told(error)) => error,
            other => return other,
        };
        let Some((server, asking)) = self.sent_on(&failed, &link) else {
            return Err(Failed::Told(failed));
        };
        let link = self.core.link_to(server);
        // Nobody may have been there before: the connection is made in what is left of the time.
        let arrived = matches!(timeout(left(), link.arrived()).await, Ok(Ok(())));
        // With less than half of the time left, a line that is only slow would be taken for lost.
        if !arrived || left() < whole / 2 {
            return Err(Failed::Told(failed));
        }
        link.trip(until, |line| go(line, asking)).await
    }

    /// To whom a refusal sends the call on, and whether only for once.
    fn sent_on(&self, error: &RedisError, link: &Link) -> Option<(Server, bool)> {
        let ErrorKind::Server(kind) = error.kind() else { return None };
        if kind == ServerErrorKind::Moved || kind == ServerErrorKind::ClusterDown {
            self.core.stale.notify_one();
        }
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        // A server that does not know its own name leaves it out: it means the one we asked.
        let host = match (host, link.server()) {
            ("" | "?", Some(Server::Tcp(host, _))) => host,
            (host, _) => host.trim_matches(['[', ']']).to_owned(),
        };
        Some((Server::Tcp(host, port.parse().ok()?), kind == ServerErrorKind::Ask))
    }
}

impl Core {
    async fn keep(self: Arc<Self>) {
        loop {
            let troubled = self.map.load().links().any(|link| link.trouble().is_some());
            let pause = if troubled { TROUBLED } else { CALM };
            // Whichever comes first: the time, or somebody who noticed.
            let _ = timeout(pause, self.stale.notified()).await;
            // What cannot be asked stays as it was.
            let _ = self.refresh().await;
        }
    }

    /// Asks who has what, of those who answer.
    async fn refresh(&self) -> Result<(), ConnectError> {
        let map = self.map.load_full();
        let known = map.links().filter_map(|link| link.server());
        let mut failed = ConnectError::Url("no server is named".to_owned());
        for server in known.chain(self.seeds.iter().cloned()) {
            let asked = timeout(self.patience, ask_slots(&self.manners, &server)).await;
            match asked {
                Ok(Ok(ranges)) => {
                    let make = |server: &Server| self.start(server.clone());
                    self.map.store(Arc::new(map.renewed(ranges, make)));
                    return Ok(());
                }
                Ok(Err(error)) => failed = error,
                Err(_) => {
                    let reason = format!("no answer within {} ms", self.patience.as_millis());
                    failed = ConnectError::Unreachable { server: server.to_string(), reason };
                }
            }
        }
        Err(failed)
    }

    fn start(&self, server: Server) -> Arc<Link> {
        let fixed = Fixed { manners: self.manners.clone(), server };
        Arc::new(Link::start(fixed, self.patience))
    }

    /// The line to a server, made if there is none.
    fn link_to(&self, server: Server) -> Arc<Link> {
        if let Some(link) = self.map.load().link_to(&server) {
            return link;
        }
        let link = self.start(server.clone());
        self.map.rcu(|map| map.with(server.clone(), link.clone()));
        link
    }
}
