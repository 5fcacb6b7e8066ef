//! What one Sentinel reports about the primary, read from the replies of its commands.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, cmd};

use super::super::url::RedisAddress;

/// The answer of one Sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentinelReport {
    /// The Sentinel's own id. A Sentinel may be known by several addresses, and has one vote.
    pub id: String,
    /// The address of the primary.
    pub primary: RedisAddress,
    /// The configuration epoch: every failover that succeeds raises it.
    pub epoch: u64,
    /// Whether this Sentinel is replacing the primary. It says so before it promotes a replica, and
    /// reports the new address once the replica is promoted.
    pub is_failing_over: bool,
    /// After how long without an answer it takes the primary for down.
    pub down_after: Option<Duration>,
    /// The other Sentinels of this primary that it knows: id and address.
    pub others: Vec<(String, RedisAddress)>,
}

/// Asks a Sentinel; nothing if it watches no primary of this name.
pub(super) async fn query_report(
    connection: &MultiplexedConnection,
    id: &str,
    name: &str,
) -> RedisResult<Option<SentinelReport>> {
    // Sent together; not as a pipeline, whose errors have no text.
    let (address, primary, others) = tokio::join!(
        send::<Option<(String, u16)>>(connection, sentinel("GET-MASTER-ADDR-BY-NAME", name)),
        send::<HashMap<String, String>>(connection, sentinel("MASTER", name)),
        send::<Vec<HashMap<String, String>>>(connection, sentinel("SENTINELS", name)),
    );
    let Some((host, port)) = address? else { return Ok(None) };
    let primary = primary?;
    let flags = primary.get("flags").map_or("", String::as_str);
    let down_after = primary.get("down-after-milliseconds").and_then(|text| text.parse().ok());
    Ok(Some(SentinelReport {
        id: id.to_owned(),
        primary: RedisAddress::Tcp(host, port),
        epoch: primary.get("config-epoch").and_then(|text| text.parse().ok()).unwrap_or(0),
        is_failing_over: flags.split(',').any(|flag| flag == "failover_in_progress"),
        down_after: down_after.map(Duration::from_millis),
        others: others?.iter().filter_map(other_sentinel).collect(),
    }))
}

/// The id of a Sentinel; its address for servers before 6.2, which do not know the command.
pub(super) async fn query_id(
    connection: &MultiplexedConnection,
    address: &RedisAddress,
) -> RedisResult<String> {
    let asked = send::<String>(connection, cmd("SENTINEL").arg("MYID").to_owned()).await;
    match asked {
        Err(error) if error.code() == Some("ERR") => Ok(address.to_string()),
        answer => answer,
    }
}

/// The names of all primaries that a Sentinel watches.
pub(super) async fn query_names(connection: &MultiplexedConnection) -> RedisResult<Vec<String>> {
    let ask = cmd("SENTINEL").arg("MASTERS").to_owned();
    let primaries = send::<Vec<HashMap<String, String>>>(connection, ask).await?;
    Ok(primaries.into_iter().filter_map(|mut primary| primary.remove("name")).collect())
}

async fn send<T: redis::FromRedisValue>(
    connection: &MultiplexedConnection,
    command: Cmd,
) -> RedisResult<T> {
    command.query_async(&mut connection.clone()).await
}

fn sentinel(command: &str, name: &str) -> Cmd {
    cmd("SENTINEL").arg(command).arg(name).to_owned()
}

fn other_sentinel(fields: &HashMap<String, String>) -> Option<(String, RedisAddress)> {
    let id = fields.get("runid").filter(|id| !id.is_empty())?;
    let port = fields.get("port")?.parse().ok()?;
    Some((id.clone(), RedisAddress::Tcp(fields.get("ip")?.clone(), port)))
}
