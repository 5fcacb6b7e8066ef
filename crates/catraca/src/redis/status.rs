//! What nodes share through Redis besides batches: a change counter, the identity of the records,
//! and the incarnation of each primary. Cells are not touched.
//!
//! Every primary is asked at the same time, in one round trip. A status call also notices a server
//! that was reconfigured to evict keys.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use catraca_core::time::Time;
use redis::{Pipeline, RedisResult, pipe};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cluster::ClusterConnections;
use super::connection::LiveConnection;
use super::failure::{RoundTripError, error_code, is_moving};
use super::handshake::{ServerInfo, check_server, unreported_settings};
use super::slot_map::{ClusterPrimary, SlotMap};
use super::store::{RedisStore, RedisTopology};
use crate::store::{PrimaryId, PrimaryReport, StoreError, StoreStatus};

/// The group of the shared keys, so that all nodes of a cluster use the same server for them.
pub(super) const SHARED_GROUP: u16 = 0;
/// How many keys of a primary are tried as its marker, while slots of it are being moved.
const MARKERS_TRIED: usize = 3;

/// What a server answers: its `TIME` (seconds, microseconds), the text of `INFO memory`, and its
/// marker. The change counter is asked of the server that has it.
type StatusReply = ((i64, i64), String, String);
/// The same without a marker.
type BareStatusReply = ((i64, i64), String);

/// The state of one server, as it answered.
struct ServerStatus {
    now: Time,
    /// Redis' `run_id`, which changes when the server restarts or another one takes over.
    run_id: String,
    /// A number in the database, which changes when the database was emptied.
    marker: String,
    /// A setting of this server that may lose blocks.
    config_warning: Option<String>,
}

impl ServerStatus {
    fn new(server: &ServerInfo, time: (i64, i64), memory: &str, marker: String) -> Self {
        let (seconds, micros) = time;
        let refusal = check_server(&server.server, memory).err();
        let unreported = || unreported_settings(&server.run_id, memory);
        Self {
            now: Time::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros)),
            run_id: server.run_id.clone(),
            marker,
            config_warning: refusal.map(|error| error.to_string()).or_else(unreported),
        }
    }
}

impl RedisStore {
    /// The status of the server that has the shared keys.
    pub(super) async fn query_status(&self) -> Result<StoreStatus, StoreError> {
        let shared = match &self.topology {
            RedisTopology::Single(_) => Some(PrimaryId::default()),
            RedisTopology::Cluster(cluster) => cluster.primary_of_group(SHARED_GROUP),
        };
        let reports = self.query_primaries().await;
        let report = reports.into_iter().find(|report| Some(report.primary) == shared);
        let missing = || Err(StoreError::unavailable("no server of the cluster has these keys"));
        report.map_or_else(missing, |report| report.status)
    }

    /// The status of every primary.
    pub(super) async fn query_primaries(&self) -> Vec<PrimaryReport> {
        let RedisTopology::Cluster(cluster) = &self.topology else {
            let status = self.query_single().await;
            return vec![PrimaryReport { primary: PrimaryId::default(), status }];
        };
        let (changes, statuses) = tokio::join!(self.query_changes(), self.ask_all(cluster));
        let error = changes.as_ref().err().map(|error| {
            format!(
                "the change counter cannot be read, so changes of lists, facts and modes on other \
                 nodes are not known here: {error}"
            )
        });
        self.unread_changes.store(error.map(Arc::new));
        // While the counter cannot be read, nothing is known to have changed.
        let changes = changes.unwrap_or_else(|_| self.last_changes.load(Ordering::Relaxed));
        self.last_changes.store(changes, Ordering::Relaxed);
        let warning =
            statuses.iter().find_map(|(_, status)| status.as_ref().ok()?.config_warning.clone());
        self.config_warning.store(warning.map(Arc::new));
        let report = |(primary, status): (Arc<ClusterPrimary>, Result<ServerStatus, _>)| {
            let status = status.map(|status| StoreStatus {
                changes,
                now: status.now,
                incarnation: digest(&format!("{} {}", status.run_id, primary.losses())),
            });
            PrimaryReport { primary: primary.id, status }
        };
        statuses.into_iter().map(report).collect()
    }

    async fn query_single(&self) -> Result<StoreStatus, StoreError> {
        let query = status_query(&self.prefix(SHARED_GROUP))?;
        let ask = |live, _| query_server(live, query.clone());
        let (status, changes) =
            tokio::join!(self.round_trip(SHARED_GROUP, ask), self.query_changes());
        let status = status?;
        self.config_warning.store(status.config_warning.map(Arc::new));
        let incarnation = digest(&format!("{} {}", status.run_id, status.marker));
        Ok(StoreStatus { changes: changes?, now: status.now, incarnation })
    }

    async fn ask_all(
        &self,
        cluster: &ClusterConnections,
    ) -> Vec<(Arc<ClusterPrimary>, Result<ServerStatus, StoreError>)> {
        let until = Instant::now() + self.deadline;
        let map = cluster.map();
        let mut calls = JoinSet::new();
        for primary in map.primaries() {
            let primary = Arc::clone(primary);
            let queries = self.marker_queries(&map, &primary);
            calls.spawn(async move {
                let status = match queries {
                    Ok(queries) => query_primary(&primary, queries, until).await,
                    Err(error) => Err(error),
                };
                (primary, status)
            });
        }
        calls.join_all().await
    }

    /// The queries of a primary, each with the group of its marker.
    fn marker_queries(
        &self,
        map: &SlotMap,
        primary: &ClusterPrimary,
    ) -> Result<Vec<(u16, Pipeline)>, StoreError> {
        let groups = map.groups_of(primary).take(MARKERS_TRIED);
        groups.map(|group| Ok((group, status_query(&self.prefix(group))?))).collect()
    }

    /// Why the change counter of a cluster cannot be read, if so.
    pub(super) fn changes_error(&self) -> Option<String> {
        self.unread_changes.load().as_deref().cloned()
    }

    async fn query_changes(&self) -> Result<u64, StoreError> {
        let key = shared_key(&self.prefix(SHARED_GROUP), "changes");
        let ask = |live, asking| {
            let mut query = SlotQuery::new(asking);
            query.next("GET").arg(&key);
            query.send::<(Option<u64>,)>(live)
        };
        let (changes,) = self.round_trip(SHARED_GROUP, ask).await?;
        Ok(changes.unwrap_or(0))
    }

    pub(super) async fn increment_changes(&self) -> Result<(), StoreError> {
        let key = shared_key(&self.prefix(SHARED_GROUP), "changes");
        let ask = |live, asking| {
            let mut query = SlotQuery::new(asking);
            query.next("INCR").arg(&key);
            query.send::<(u64,)>(live)
        };
        self.round_trip(SHARED_GROUP, ask).await.map(drop)
    }

    /// Stores the identity of the records unless there is one; returns the one that is stored.
    pub(super) async fn claim_records(&self, records: &str) -> Result<String, StoreError> {
        let key = shared_key(&self.prefix(SHARED_GROUP), "records");
        let ask = |live, asking| {
            let mut query = SlotQuery::new(asking);
            query.next("SET").arg(&key).arg(records).arg("NX").ignore();
            query.next("GET").arg(&key);
            query.send::<(String,)>(live)
        };
        let (stored,) = self.round_trip(SHARED_GROUP, ask).await?;
        Ok(stored)
    }
}

/// Commands about keys of one slot, each after `ASKING` if a server of the cluster redirected them.
struct SlotQuery {
    commands: Pipeline,
    asking: bool,
}

impl SlotQuery {
    fn new(asking: bool) -> Self {
        Self { commands: pipe(), asking }
    }

    fn next(&mut self, command: &str) -> &mut Pipeline {
        if self.asking {
            self.commands.cmd("ASKING").ignore();
        }
        self.commands.cmd(command)
    }

    async fn send<T: redis::FromRedisValue>(self, mut live: LiveConnection) -> RedisResult<T> {
        self.commands.query_async(&mut live.connection).await
    }
}

/// A key that no cell can have: the names of cells are longer.
pub(super) fn shared_key(prefix: &[u8], name: &str) -> Vec<u8> {
    [prefix, name.as_bytes()].concat()
}

/// The commands whose answer is a [`StatusReply`]. A random number is stored if there is none: the
/// database is new or was emptied, and that is a new incarnation.
fn status_query(prefix: &[u8]) -> Result<Pipeline, StoreError> {
    let number = getrandom::u64().map_err(|error| StoreError::unavailable(error.to_string()))?;
    // Stored under this name; nodes of several versions may share the store.
    let marker = shared_key(prefix, "life");
    let mut query = pipe();
    query.cmd("TIME").cmd("INFO").arg("memory");
    query.cmd("SET").arg(&marker).arg(format!("{number:016x}")).arg("NX").ignore();
    query.cmd("GET").arg(&marker);
    Ok(query)
}

async fn query_server(mut live: LiveConnection, query: Pipeline) -> RedisResult<ServerStatus> {
    let reply: StatusReply = query.query_async(&mut live.connection).await?;
    let (time, memory, marker) = reply;
    Ok(ServerStatus::new(&live.server_info, time, &memory, marker))
}

/// Asks without a marker.
async fn query_bare(mut live: LiveConnection) -> RedisResult<ServerStatus> {
    let mut query = pipe();
    query.cmd("TIME").cmd("INFO").arg("memory");
    let (time, memory): BareStatusReply = query.query_async(&mut live.connection).await?;
    Ok(ServerStatus::new(&live.server_info, time, &memory, String::new()))
}

/// Asks a primary of a cluster. A marker whose slot is being moved is replaced by another one; a
/// primary whose slots are all being moved, or have no group, has none.
async fn query_primary(
    primary: &ClusterPrimary,
    queries: Vec<(u16, Pipeline)>,
    until: Instant,
) -> Result<ServerStatus, StoreError> {
    for (group, query) in queries {
        let answer = primary.connection.round_trip(until, |live| query_server(live, query)).await;
        match answer {
            Ok(status) => {
                primary.note_marker(group, &status.marker);
                return Ok(status);
            }
            Err(RoundTripError::Redis { error, .. })
                if error_code(&error).is_some_and(|code| is_moving(&code)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(primary.connection.round_trip(until, query_bare).await?)
}

/// The first eight bytes of a digest, as a number.
fn digest(text: &str) -> u64 {
    let digest = blake3::hash(text.as_bytes());
    digest.as_bytes()[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
