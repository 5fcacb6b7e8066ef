//! Finds the primary through Sentinels, follows it when they replace it, and knows whether a
//! majority of them confirms it.
//!
//! A node asks all Sentinels: those in the URL, and those that they list. It connects to the
//! primary of the highest configuration epoch that any of them reports, as soon as one reports it.
//! Whether that primary is confirmed is another question, which a majority answers
//! (`votes.rs`); locks and `degraded` depend on it.

mod advice;
mod confirmation;
mod link;
mod report;
mod votes;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::RedisError;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::connect_error::ConnectError;
use super::connection::{ConnectionHandle, ServerConnector};
use super::failure::{error_code, error_text};
use super::handshake::{
    ConnectSettings, ReadyConnection, ServerInfo, info_field, to_connect_error,
};
use super::url::RedisAddress;
use crate::supervise::supervise;
use link::{ANSWER_TIMEOUT, INTERVAL, with_timeout};
use report::SentinelReport;
use votes::{Doubt, SentinelVotes};

pub(super) use confirmation::{GRACE_MARGIN, PrimaryConfirmation, PrimaryStanding};

/// How long a Sentinel may take for a new connection and its first answer.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_millis(600);
/// How long a majority must name a primary of a lower epoch until a node follows it: its epoch is
/// lower if the Sentinels were set up again, or if the one that led a failover was lost.
const LOWER_EPOCH_PATIENCE: Duration = Duration::from_secs(2);

/// The Sentinels of one primary.
pub(super) struct Sentinels {
    settings: ConnectSettings,
    name: String,
    votes: Mutex<SentinelVotes>,
    /// The connections to the primary that these Sentinels look after.
    connections: Mutex<Vec<WatchedConnection>>,
    /// Links ask their Sentinels at once when this number changes.
    requests: watch::Sender<u64>,
    /// A Sentinel has answered, or failed to.
    answered: Notify,
    /// A Sentinel has listed others.
    discovered: Notify,
}

/// A connection to the primary.
struct WatchedConnection {
    handle: ConnectionHandle,
    /// Since when a majority names a primary of a lower epoch than that of this connection.
    lower_epoch_since: Option<Instant>,
}

impl ServerConnector for Arc<Sentinels> {
    async fn connect(&self) -> Result<ReadyConnection, ConnectError> {
        let asked = Instant::now();
        self.ask_all();
        // Without an answer of a majority, the Sentinels that have answered decide.
        let _ = timeout(FIRST_ANSWER_TIMEOUT, self.wait_for_answers(asked)).await;
        let named = self.votes.lock().named_primary(Instant::now());
        let Some(primary) = named else { return Err(self.no_primary()) };
        let server = &primary.server;
        let connect = self.settings.connect_checked(server, Some(primary.epoch));
        let ready = with_timeout(server, connect).await?;
        self.confirm(&ready.server_info);
        Ok(ready)
    }

    fn target(&self) -> String {
        format!("the address that the Sentinels of {:?} report", self.name)
    }
}

impl Sentinels {
    pub fn new(settings: ConnectSettings, servers: &[RedisAddress], name: String) -> Self {
        Self {
            settings,
            name,
            votes: Mutex::new(SentinelVotes::new(servers)),
            connections: Mutex::default(),
            requests: watch::Sender::new(0),
            answered: Notify::new(),
            discovered: Notify::new(),
        }
    }

    /// Keeps a connection to the primary on the right server.
    pub fn look_after(&self, connection: ConnectionHandle) {
        let watched = WatchedConnection { handle: connection, lower_epoch_since: None };
        self.connections.lock().push(watched);
    }

    /// Follows all Sentinels until the task is aborted.
    pub fn start_watch(sentinels: &Arc<Self>) -> AbortHandle {
        let sentinels = Arc::clone(sentinels);
        let watch = supervise("sentinel watch", move || Arc::clone(&sentinels).watch());
        tokio::spawn(watch).abort_handle()
    }

    async fn watch(self: Arc<Self>) {
        let mut links = JoinSet::new();
        let probed = Arc::clone(&self);
        links.spawn(supervise("role probe", move || Arc::clone(&probed).probe_roles()));
        let mut followed: BTreeMap<RedisAddress, AbortHandle> = BTreeMap::new();
        loop {
            let addresses = self.votes.lock().addresses();
            followed.retain(|address, link| {
                let is_known = addresses.contains(address);
                if !is_known {
                    link.abort();
                }
                is_known
            });
            while links.try_join_next().is_some() {}
            for address in addresses {
                if let Entry::Vacant(entry) = followed.entry(address) {
                    let address = entry.key().clone();
                    let sentinels = Arc::clone(&self);
                    let follow = move || Arc::clone(&sentinels).follow(address.clone());
                    entry.insert(links.spawn(supervise("sentinel link", follow)));
                }
            }
            self.discovered.notified().await;
        }
    }

    /// Why some Sentinels do not answer, while a majority does.
    pub fn silent_sentinels(&self) -> Option<String> {
        let votes = self.votes.lock();
        let now = Instant::now();
        let silent = votes.total(now).saturating_sub(votes.recent_count(now));
        let error = votes.error().filter(|_| silent > 0)?;
        Some(format!(
            "{silent} of {} Sentinels do not answer; nodes follow a failover as long as a majority \
             does: {error}",
            votes.total(now)
        ))
    }

    /// Why a primary is not confirmed, and the consequence.
    pub fn describe_doubt(&self, server: &ServerInfo) -> String {
        let votes = self.votes.lock();
        let now = Instant::now();
        let address = &server.server;
        let epoch = server.confirmation.as_ref().map_or(0, |one| one.epoch);
        let why = match votes.confirmed_at(address, epoch, now) {
            Err(Doubt::FailingOver(_)) => "a Sentinel is replacing it".to_owned(),
            Err(Doubt::Replaced(by)) => format!("a Sentinel reports {by} instead"),
            Err(Doubt::Minority) | Ok(_) => {
                let total = votes.total(now);
                let recent = votes.recent_count(now);
                let detail = votes.error().map_or(String::new(), |error| format!(" ({error})"));
                format!("{recent} of {total} Sentinels have answered within a second{detail}")
            }
        };
        format!(
            "no majority of the Sentinels confirms the primary {address}: {why}; its decisions say \
             `degraded`, and locks of kinds with failover_grace are refused"
        )
    }

    /// Makes every link ask its Sentinel at once.
    fn ask_all(&self) {
        self.requests.send_modify(|number| *number += 1);
    }

    async fn wait_for_answers(&self, asked: Instant) {
        loop {
            let answered = self.answered.notified();
            if self.votes.lock().is_answered_since(asked) {
                return;
            }
            answered.await;
        }
    }

    fn no_primary(&self) -> ConnectError {
        let votes = self.votes.lock();
        votes.error().cloned().unwrap_or_else(|| ConnectError::Unreachable {
            server: self.target_name(),
            reason: format!("no answer within {} ms", FIRST_ANSWER_TIMEOUT.as_millis()),
        })
    }

    fn target_name(&self) -> String {
        format!("the Sentinels of {:?}", self.name)
    }

    fn on_report(&self, sentinel: &RedisAddress, asked: Instant, report: SentinelReport) {
        self.votes.lock().on_report(sentinel, asked, report);
        self.discovered.notify_one();
        self.answered.notify_waiters();
        self.update_connections();
    }

    fn on_error(&self, sentinel: &RedisAddress, tried: Instant, error: ConnectError) {
        self.votes.lock().on_error(sentinel, tried, error);
        self.answered.notify_waiters();
    }

    /// Confirms the server of each connection, or makes the connection leave it.
    fn update_connections(&self) {
        for connection in self.connections.lock().iter_mut() {
            let Some(server_info) = connection.handle.server_info() else { continue };
            self.confirm(&server_info);
            if self.is_replaced(&server_info, &mut connection.lower_epoch_since) {
                connection.handle.reconnect("Sentinels report another primary");
            }
        }
    }

    fn confirm(&self, server_info: &ServerInfo) {
        let Some(confirmation) = &server_info.confirmation else { return };
        let votes = self.votes.lock();
        let confirmed = votes.confirmed_at(&server_info.server, confirmation.epoch, Instant::now());
        confirmation.set_votes(confirmed.ok());
    }

    /// Whether the Sentinels name another primary, or the same one in a later epoch: it was
    /// replaced in between and may have lost data.
    fn is_replaced(&self, server_info: &ServerInfo, lower_since: &mut Option<Instant>) -> bool {
        let now = Instant::now();
        let Some(named) = self.votes.lock().named_primary(now) else { return false };
        let epoch = server_info.confirmation.as_ref().map_or(0, |one| one.epoch);
        if named.epoch >= epoch || !named.by_majority {
            *lower_since = None;
            return named.epoch > epoch
                || (named.epoch == epoch && named.server != server_info.server);
        }
        now.saturating_duration_since(*lower_since.get_or_insert(now)) > LOWER_EPOCH_PATIENCE
    }

    /// Asks the primary of each connection for its role, every heartbeat.
    async fn probe_roles(self: Arc<Self>) {
        loop {
            let connections: Vec<ConnectionHandle> =
                self.connections.lock().iter().map(|one| one.handle.clone()).collect();
            // At the same time: one on which a WAIT is in progress must not delay the others.
            let probes: JoinSet<()> = connections.into_iter().map(probe_role).collect();
            probes.join_all().await;
            sleep(INTERVAL).await;
        }
    }
}

/// Confirms that a connection leads to a primary, or makes it leave the server.
async fn probe_role(connection: ConnectionHandle) {
    let asked = Instant::now();
    let Ok(Some(role)) = timeout(ANSWER_TIMEOUT, query_role(&connection)).await else { return };
    if role.is_primary {
        role.server_info.confirmation.iter().for_each(|one| one.set_role(asked));
    } else {
        connection.reconnect("the server is a replica now");
    }
}

/// The role of a connected server.
struct ServerRole {
    server_info: Arc<ServerInfo>,
    is_primary: bool,
}

async fn query_role(connection: &ConnectionHandle) -> Option<ServerRole> {
    let mut live = connection.live()?;
    let ask = redis::cmd("INFO").arg("replication").to_owned();
    let info = ask.query_async::<String>(&mut live.connection).await.ok()?;
    let is_primary = info_field(&info, "role") == Some("master");
    Some(ServerRole { server_info: live.server_info, is_primary })
}

/// An error of a Sentinel, with its remedy: the URL has one password for the servers and one for
/// the Sentinels, and may name a server that is no Sentinel.
fn to_sentinel_error(sentinel: &RedisAddress, error: &RedisError) -> ConnectError {
    let refused = |reason| ConnectError::Refused { server: sentinel.to_string(), reason };
    match error_code(error).as_deref() {
        Some(code @ ("NOAUTH" | "WRONGPASS" | "NOPERM")) => refused(format!(
            "{code}, this Sentinel requires its own user and password; write them as \
             sentinel_user and sentinel_password behind the ? of the URL, or in \
             sentinel_password_file"
        )),
        _ if error_text(error).contains("unknown command") => refused(
            "it is a Redis server, not a Sentinel; write redis://HOST:PORT for a single server, \
             or the addresses of the Sentinels (port 26379 by default)"
                .to_owned(),
        ),
        _ => to_connect_error(sentinel, error),
    }
}
