//! What nodes share through Redis besides batches: a change counter, the identity of the records,
//! and the incarnation of the store. Cells are not touched.
//!
//! Each call is one round trip; in a cluster every primary is asked for its incarnation, all at
//! once. A status call also notices a server that was reconfigured to evict keys.

use std::sync::Arc;

use catraca_core::time::Time;
use redis::{Pipeline, RedisResult, pipe};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{LiveConnection, RedisConnection};
use super::handshake::check_server;
use super::store::{RedisStore, RedisTopology};
use crate::store::{StoreError, StoreStatus};

/// The group of the shared keys, so that all nodes of a cluster use the same server for them.
const SHARED_GROUP: u16 = 0;

/// The server's `TIME` (seconds, microseconds), the change counter, the incarnation, and the text
/// of `INFO memory`.
type StatusReply = ((i64, i64), Option<u64>, String, String);

/// One server's part of the incarnation.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ServerIncarnation {
    /// The server's `run_id`, which changes when it restarts or another server takes over, and the
    /// number in the database, which changes when the database was emptied.
    id: String,
    /// A setting of this server that may lose blocks.
    config_warning: Option<String>,
}

impl RedisStore {
    pub(super) async fn query_status(&self) -> Result<StoreStatus, StoreError> {
        let query = status_query(&self.prefix(SHARED_GROUP))?;
        let call = |live, _| query_server(live, query.clone());
        let (reply, own) = self.round_trip(SHARED_GROUP, call).await?;
        let ((seconds, micros), changes, ..) = reply;
        let micros = seconds.saturating_mul(1_000_000).saturating_add(micros);
        let primaries = self.cluster_incarnations().await?;
        let ids: Vec<&str> = primaries.iter().map(|primary| primary.id.as_str()).collect();
        let incarnation = format!("{} {}", own.id, ids.join(" "));
        let warnings = primaries.iter().find_map(|primary| primary.config_warning.clone());
        self.config_warning.store(own.config_warning.or(warnings).map(Arc::new));
        let digest = blake3::hash(incarnation.as_bytes());
        Ok(StoreStatus {
            changes: changes.unwrap_or(0),
            now: Time::from_micros(micros),
            // The first eight bytes of the digest as a number.
            incarnation: digest.as_bytes()[..8]
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        })
    }

    /// The incarnations of all primaries of a cluster, sorted: if one of them loses its data, the
    /// incarnation of the store changes. Empty without a cluster.
    async fn cluster_incarnations(&self) -> Result<Vec<ServerIncarnation>, StoreError> {
        let RedisTopology::Cluster(cluster) = &self.topology else { return Ok(Vec::new()) };
        let until = Instant::now() + self.deadline;
        let mut calls = JoinSet::new();
        for (connection, group) in cluster.map().primaries() {
            calls.spawn(incarnation_of(connection, status_query(&self.prefix(group))?, until));
        }
        let mut found = calls.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        found.sort();
        Ok(found)
    }

    pub(super) async fn increment_changes(&self) -> Result<(), StoreError> {
        let mut increment = pipe();
        increment.cmd("INCR").arg(shared_key(&self.prefix(SHARED_GROUP), "changes")).ignore();
        self.round_trip(SHARED_GROUP, |live, _| query::<()>(live, increment.clone())).await
    }

    /// Stores the identity of the records unless there is one; returns the one that is stored.
    pub(super) async fn claim_records(&self, records: &str) -> Result<String, StoreError> {
        let mut claim = pipe();
        let key = shared_key(&self.prefix(SHARED_GROUP), "records");
        claim.cmd("SET").arg(&key).arg(records).arg("NX").ignore().cmd("GET").arg(&key);
        let call = |live, _| query::<(String,)>(live, claim.clone());
        let (stored,) = self.round_trip(SHARED_GROUP, call).await?;
        Ok(stored)
    }
}

/// A key that no cell can have: the names of cells are longer.
fn shared_key(prefix: &[u8], name: &str) -> Vec<u8> {
    [prefix, name.as_bytes()].concat()
}

/// The commands whose answer is a [`StatusReply`]. A random number is stored if there is none: the
/// database is new or was emptied, and that is a new incarnation.
fn status_query(prefix: &[u8]) -> Result<Pipeline, StoreError> {
    let number = getrandom::u64().map_err(|error| StoreError::unavailable(error.to_string()))?;
    // Stored under this name; nodes of several versions may share the store.
    let incarnation = shared_key(prefix, "life");
    let mut query = pipe();
    query.cmd("TIME").cmd("GET").arg(shared_key(prefix, "changes"));
    query.cmd("SET").arg(&incarnation).arg(format!("{number:016x}")).arg("NX").ignore();
    query.cmd("GET").arg(&incarnation).cmd("INFO").arg("memory");
    Ok(query)
}

async fn query<T: redis::FromRedisValue>(
    mut live: LiveConnection,
    commands: Pipeline,
) -> RedisResult<T> {
    commands.query_async(&mut live.connection).await
}

async fn query_server(
    live: LiveConnection,
    commands: Pipeline,
) -> RedisResult<(StatusReply, ServerIncarnation)> {
    let server_info = live.server_info.clone();
    let reply: StatusReply = query(live, commands).await?;
    let (_, _, number, memory) = &reply;
    let id = format!("{} {number}", server_info.run_id);
    let refusal = check_server(&server_info.server, memory).err();
    let config_warning = refusal.map(|error| error.to_string());
    Ok((reply, ServerIncarnation { id, config_warning }))
}

async fn incarnation_of(
    connection: Arc<RedisConnection>,
    commands: Pipeline,
    until: Instant,
) -> Result<ServerIncarnation, StoreError> {
    let (_, incarnation) =
        connection.round_trip(until, |live| query_server(live, commands)).await?;
    Ok(incarnation)
}
