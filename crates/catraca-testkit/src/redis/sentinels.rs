//! A primary, two replicas and three Sentinels that monitor them, started from the files of
//! `deploy/redis-sentinel`.
//!
//! Only ports, directories and addresses are replaced. `start` returns only when all Sentinels know
//! each other: an earlier failover would find no quorum.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use super::server::{RedisServer, fresh_directory, program};
use super::wait::until;
use crate::fault_proxy::FaultProxy;
use crate::resp::RespValue;

/// The name of the primary in `sentinel.conf`.
const NAME: &str = "catraca";
const SERVER_CONF: &str = include_str!("../../../../deploy/redis-sentinel/redis.conf");
const SENTINEL_CONF: &str = include_str!("../../../../deploy/redis-sentinel/sentinel.conf");

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
        if program().is_none() {
            println!("skipped: no redis-server found");
            return None;
        }
        let primary = server(&[], passwords.map(|(server, _)| server));
        let port = primary.port();
        Some(Self::start_around(primary, port, passwords))
    }

    /// Starts all of them; replicas and Sentinels reach the initial primary through a proxy, whose
    /// port is the address of the primary.
    ///
    /// # Panics
    ///
    /// If the proxy cannot be started.
    #[expect(clippy::expect_used, reason = "a test cannot run without its proxy")]
    pub fn start_behind_proxy() -> Option<(Self, FaultProxy)> {
        program()?;
        let primary = server(&[], None);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, primary.port()));
        let proxy = FaultProxy::start(address).expect("loopback has ports");
        let group = Self::start_around(primary, proxy.address().port(), None);
        Some((group, proxy))
    }

    /// Starts replicas and Sentinels of a primary that they reach at this port.
    fn start_around(primary: RedisServer, port: u16, passwords: Option<(&str, &str)>) -> Self {
        let password = passwords.map(|(server, _)| server);
        let follow = format!("127.0.0.1 {port}");
        let replicas = [(); 2].map(|()| server(&["--replicaof", &follow], password));
        let servers: Vec<RedisServer> = [primary].into_iter().chain(replicas).collect();
        until("replicas follow", || {
            let follows = |name| servers[0].field(&["INFO", "replication"], name);
            let online = |name| follows(name).is_some_and(|state| state.contains("state=online"));
            online("slave0") && online("slave1")
        });
        let sentinels: Vec<_> = (0..3).map(|_| sentinel(port, passwords)).collect();
        let group = Self { servers, sentinels };
        until("Sentinels know each other and the replicas", || group.is_complete());
        group
    }

    /// The URL of the group, with all Sentinels.
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// The port of the present primary, according to the first Sentinel.
    pub fn primary(&self) -> Option<u16> {
        self.primary_by(0)
    }

    /// The port of the present primary, according to one Sentinel.
    pub fn primary_by(&self, sentinel: usize) -> Option<u16> {
        let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
        let RespValue::Array(parts) = self.sentinels[sentinel].command(&ask) else { return None };
        let Some(RespValue::Bytes(port)) = parts.get(1) else { return None };
        String::from_utf8_lossy(port).parse().ok()
    }

    /// Orders a failover while the primary is up.
    pub fn fail_over(&self) -> RespValue {
        self.fail_over_by(0)
    }

    /// Orders a failover that one Sentinel leads.
    pub fn fail_over_by(&self, sentinel: usize) -> RespValue {
        self.sentinels[sentinel].command(&["SENTINEL", "FAILOVER", NAME])
    }

    /// Sets how long one Sentinel waits for an answer of the primary.
    pub fn set_down_after(&self, sentinel: usize, millis: u64) {
        let millis = millis.to_string();
        let set = ["SENTINEL", "SET", NAME, "down-after-milliseconds", &millis];
        assert_eq!(self.sentinels[sentinel].command(&set), RespValue::Bytes(b"OK".to_vec()));
    }

    fn is_complete(&self) -> bool {
        let knows = |one: &RedisServer| {
            let field = |name| one.field(&["INFO", "sentinel"], name).unwrap_or_default();
            field("master0").contains("slaves=2,sentinels=3")
        };
        self.sentinels.iter().all(knows)
    }
}

/// A server of `redis.conf`.
fn server(settings: &[&str], password: Option<&str>) -> RedisServer {
    let directory = fresh_directory();
    let file = write_conf(&directory, "redis.conf", SERVER_CONF);
    let auth = password.map(|word| ["--requirepass", word, "--masterauth", word]);
    let auth = auth.as_ref().map_or(&[][..], |auth| auth);
    let args = [&[file.as_str()][..], settings, auth].concat();
    RedisServer::start_in(directory, &args, Vec::new()).with_password(password)
}

/// A Sentinel of `sentinel.conf`.
fn sentinel(port: u16, passwords: Option<(&str, &str)>) -> RedisServer {
    let monitor = |address: String| format!("sentinel monitor {NAME} {address} 2");
    let example = monitor("10.0.0.1 6379".to_owned());
    let settings = SENTINEL_CONF.replace(&example, &monitor(format!("127.0.0.1 {port}")));
    // Sentinels use the first password for the servers and the second for each other.
    let auth = passwords.map(|(server, own)| {
        format!(
            "sentinel auth-pass {NAME} {server}\nrequirepass {own}\nsentinel sentinel-pass {own}\n"
        )
    });
    let directory = fresh_directory();
    let file = write_conf(&directory, "sentinel.conf", &(settings + &auth.unwrap_or_default()));
    let own = passwords.map(|(_, own)| own);
    RedisServer::start_in(directory, &[&file, "--sentinel"], Vec::new()).with_password(own)
}

#[expect(clippy::expect_used, reason = "a test cannot run without its server")]
fn write_conf(directory: &Path, name: &str, settings: &str) -> String {
    let file = directory.join(name);
    // The directory of the file may not exist here; the command line has another.
    let lines = settings.lines().filter(|line| !line.starts_with("dir "));
    let settings: String = lines.map(|line| format!("{line}\n")).collect();
    fs::write(&file, settings).expect("the temporary directory can be written");
    file.display().to_string()
}
