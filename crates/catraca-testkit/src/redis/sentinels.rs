//! A primary, two replicas and three Sentinels that watch them.
//!
//! Sentinels agree after half a second of silence. Must not be left before all of them know each
//! other: a failover asked for earlier would find no quorum.

use std::fs;

use super::server::{RedisServer, fresh_directory};
use super::wait::until;
use crate::resp::Value;

const NAME: &str = "catraca-test";

/// Servers and Sentinels that end with this.
#[derive(Debug)]
pub struct RedisSentinels {
    /// The one that begins as primary, then its replicas.
    pub servers: Vec<RedisServer>,
    /// Who watches them.
    pub sentinels: Vec<RedisServer>,
}

impl RedisSentinels {
    /// Starts all of them; none where there is no Redis.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// The same where servers want the first password and Sentinels the second.
    pub fn start_with(passwords: Option<(&str, &str)>) -> Option<Self> {
        let server = passwords.map(|(server, _)| server);
        let wanted = server.map(|word| ["--requirepass", word, "--masterauth", word]);
        let wanted = wanted.as_ref().map_or(&[][..], |wanted| wanted);
        let start = |settings: &[&str]| {
            let started = RedisServer::start_with(&[settings, wanted].concat());
            started.map(|one| one.knowing(server))
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
            let online = |name| follows(name).is_some_and(|told| told.contains("state=online"));
            online("slave0") && online("slave1")
        });
        let sentinels: Vec<_> = (0..3).map(|_| sentinel(servers[0].port(), passwords)).collect();
        let group = Self { servers, sentinels };
        until("Sentinels know each other and the replicas", || group.is_whole());
        Some(group)
    }

    /// The URL of the whole.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// The port of who is primary now, as the first Sentinel that answers knows it.
    pub fn primary(&self) -> Option<u16> {
        let told = self.sentinels[0].command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        let Value::Array(parts) = told else { return None };
        let Some(Value::Bytes(port)) = parts.get(1) else { return None };
        String::from_utf8_lossy(port).parse().ok()
    }

    /// Asks for another primary while this one lives.
    pub fn fail_over(&self) -> Value {
        self.sentinels[0].command(&["SENTINEL", "FAILOVER", NAME])
    }

    fn is_whole(&self) -> bool {
        let knows = |one: &RedisServer| {
            let field = |name| one.field(&["INFO", "sentinel"], name).unwrap_or_default();
            field("master0").contains("slaves=2,sentinels=3")
        };
        self.sentinels.iter().all(knows)
    }
}

#[expect(clippy::expect_used, reason = "a test without its server cannot go on")]
fn sentinel(port: u16, passwords: Option<(&str, &str)>) -> RedisServer {
    let directory = fresh_directory();
    let file = directory.join("sentinel.conf");
    let settings = format!(
        "sentinel monitor {NAME} 127.0.0.1 {port} 2\n\
         sentinel down-after-milliseconds {NAME} 500\n\
         sentinel failover-timeout {NAME} 3000\n"
    );
    // Sentinels log in to the servers with one password, and to each other with the other.
    let words = passwords.map(|(server, own)| {
        format!(
            "sentinel auth-pass {NAME} {server}\nrequirepass {own}\nsentinel sentinel-pass {own}\n"
        )
    });
    let settings = settings + &words.unwrap_or_default();
    fs::write(&file, settings).expect("the temporary directory can be written");
    let file = file.display().to_string();
    let own = passwords.map(|(_, own)| own);
    RedisServer::start_in(directory, &[&file, "--sentinel"], Vec::new()).knowing(own)
}
