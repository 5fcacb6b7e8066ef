//! A primary, two replicas and three Sentinels that monitor them.
//!
//! The Sentinels consider a server down after half a second. `start` returns only when they all
//! know each other: an earlier failover would find no quorum.

use std::fs;

use super::server::{RedisServer, fresh_directory};
use super::wait::until;
use crate::resp::RespValue;

const NAME: &str = "catraca-test";

/// Servers and Sentinels that are killed on drop.
#[derive(Debug)]
pub struct RedisSentinels {
    /// The initial primary, then its replicas.
    pub servers: Vec<RedisServer>,
    /// The Sentinels.
    pub sentinels: Vec<RedisServer>,
}

impl RedisSentinels {
    /// Starts all of them; `None` if Redis is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// Starts all of them; servers require the first password and Sentinels the second.
    pub fn start_with(passwords: Option<(&str, &str)>) -> Option<Self> {
        let password = passwords.map(|(server, _)| server);
        let auth = password.map(|word| ["--requirepass", word, "--masterauth", word]);
        let auth = auth.as_ref().map_or(&[][..], |auth| auth);
        let start = |settings: &[&str]| {
            let started = RedisServer::start_with(&[settings, auth].concat());
            started.map(|server| server.with_password(password))
        };
        let primary = start(&[])?;
        let port = primary.port().to_string();
        let follow = format!("127.0.0.1 {port}");
        let replicas =
            [(); 2].map(|()| start(&["--repl-diskless-sync-delay", "0", "--replicaof", &follow]));
        let mut servers = vec![primary];
        servers.extend(replicas.into_iter().flatten());
        until("replicas follow", || {
            let follows = |name| servers[0].field(&["INFO", "replication"], name);
            let online = |name| follows(name).is_some_and(|state| state.contains("state=online"));
            online("slave0") && online("slave1")
        });
        let sentinels: Vec<_> = (0..3).map(|_| sentinel(servers[0].port(), passwords)).collect();
        let group = Self { servers, sentinels };
        until("Sentinels know each other and the replicas", || group.is_complete());
        Some(group)
    }

    /// The URL of the group, with all Sentinels.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// The port of the present primary, according to the first Sentinel.
    pub fn primary(&self) -> Option<u16> {
        let reply = self.sentinels[0].command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        let RespValue::Array(parts) = reply else { return None };
        let Some(RespValue::Bytes(port)) = parts.get(1) else { return None };
        String::from_utf8_lossy(port).parse().ok()
    }

    /// Orders a failover while the primary is up.
    pub fn fail_over(&self) -> RespValue {
        self.sentinels[0].command(&["SENTINEL", "FAILOVER", NAME])
    }

    fn is_complete(&self) -> bool {
        let knows = |one: &RedisServer| {
            let field = |name| one.field(&["INFO", "sentinel"], name).unwrap_or_default();
            field("master0").contains("slaves=2,sentinels=3")
        };
        self.sentinels.iter().all(knows)
    }
}

#[expect(clippy::expect_used, reason = "a test cannot run without its server")]
fn sentinel(port: u16, passwords: Option<(&str, &str)>) -> RedisServer {
    let directory = fresh_directory();
    let file = directory.join("sentinel.conf");
    let settings = format!(
        "sentinel monitor {NAME} 127.0.0.1 {port} 2\n\
         sentinel down-after-milliseconds {NAME} 500\n\
         sentinel failover-timeout {NAME} 3000\n"
    );
    // Sentinels use the first password for the servers and the second for each other.
    let auth = passwords.map(|(server, own)| {
        format!(
            "sentinel auth-pass {NAME} {server}\nrequirepass {own}\nsentinel sentinel-pass {own}\n"
        )
    });
    let settings = settings + &auth.unwrap_or_default();
    fs::write(&file, settings).expect("the temporary directory can be written");
    let file = file.display().to_string();
    let own = passwords.map(|(_, own)| own);
    RedisServer::start_in(directory, &[&file, "--sentinel"], Vec::new()).with_password(own)
}
