//! Settings of the servers and of the Sentinels that should be changed, with the command.

use std::time::Duration;

use tokio::time::Instant;

use super::super::handshake::ServerInfo;
use super::super::url::RedisAddress;
use super::Sentinels;

/// A Sentinel pings a primary that it has just switched to after `down-after-milliseconds`, or
/// after this time if that is less. With a shorter setting it takes the new primary for down before
/// the first ping, and a second failover leaves the group without a replica for 10 s and more.
const FIRST_PING: Duration = Duration::from_secs(1);

impl Sentinels {
    /// What should be changed, if anything.
    pub fn config_notice(&self, server: &ServerInfo) -> Option<String> {
        if !server.needs_replicas {
            return Some(min_replicas_notice(&server.server));
        }
        let (sentinel, down_after) = self.votes.lock().shortest_down_after(Instant::now())?;
        (down_after <= FIRST_PING).then(|| self.down_after_notice(&sentinel, down_after))
    }

    fn down_after_notice(&self, sentinel: &RedisAddress, down_after: Duration) -> String {
        format!(
            "down-after-milliseconds is {} at the Sentinel {sentinel}: Sentinels first ping a new \
             primary after up to a second, and may replace it before, which leaves no replica for \
             10 s and more; run `redis-cli SENTINEL SET {} down-after-milliseconds 2000` on every \
             Sentinel",
            down_after.as_millis(),
            self.name
        )
    }
}

fn min_replicas_notice(server: &RedisAddress) -> String {
    format!(
        "min-replicas-to-write is 0 on {server}: a primary that is cut off from its replicas goes \
         on accepting writes, which are lost when a Sentinel replaces it; run `redis-cli CONFIG \
         SET min-replicas-to-write 1` on every server, and write the same in its configuration file"
    )
}
