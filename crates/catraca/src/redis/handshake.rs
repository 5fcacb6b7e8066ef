//! Opens one connection and checks the server before any state is stored in it: it must be a
//! primary that does not evict keys. Also loads the script and reads the server's clock.
//!
//! One attempt only; `connection.rs` decides about timeouts and further attempts.

use std::fs;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
};
use redis::{RedisError, RedisResult, TlsCertificates};
use tokio::time::Instant;

use super::clock_offset::ClockOffset;
use super::connect_error::ConnectError;
use super::failure::{describe_io_error, error_code, error_text, known_meaning};
use super::options::RedisOptions;
use super::sentinel::{PrimaryConfirmation, PrimaryStanding};
use super::url::{FORMS, RedisAddress, RedisCredentials, RedisUrl, ServerDiscovery};

/// Credentials, TLS and script for the servers of one URL.
#[derive(Clone)]
pub(super) struct ConnectSettings {
    login: RedisConnectionInfo,
    /// For Sentinels, which have their own passwords and no databases.
    sentinel: RedisConnectionInfo,
    tls: Option<TlsCertificates>,
    /// The Lua script that every server gets.
    script: &'static str,
    /// Whether the URL is that of a cluster.
    is_cluster: bool,
}

/// A connection to a server that was checked.
#[derive(Clone)]
pub(super) struct ReadyConnection {
    pub connection: MultiplexedConnection,
    pub server_info: Arc<ServerInfo>,
}

/// What was learnt about a server when the connection was made.
pub(super) struct ServerInfo {
    pub server: RedisAddress,
    /// The SHA-1 of the script, for `EVALSHA`.
    pub script: String,
    /// Redis' `run_id`: changes with every start of the server. Under Sentinels followed by the
    /// configuration epoch: a server that was replaced and is primary again may have lost data.
    pub run_id: String,
    /// `master_replid`: the history of writes that the server's replicas follow.
    pub replication_id: String,
    /// `master_replid2`: the history that the server followed before it became a primary.
    pub followed_replication_id: String,
    pub clock_offset: ClockOffset,
    /// Whether the server refuses writes while too few replicas are connected
    /// (`min-replicas-to-write`).
    pub needs_replicas: bool,
    /// Whether it is still the primary; only under Sentinels.
    pub confirmation: Option<PrimaryConfirmation>,
}

impl ServerInfo {
    /// Whether a promise about a lock can be made on this server.
    pub fn standing(&self) -> PrimaryStanding {
        let standing = |one: &PrimaryConfirmation| one.standing(Instant::now());
        self.confirmation.as_ref().map_or(PrimaryStanding::Fixed, standing)
    }

    /// Whether decisions of this server may differ from those of other nodes.
    pub fn is_doubtful(&self) -> bool {
        self.confirmation.as_ref().is_some_and(|one| one.is_doubtful(Instant::now()))
    }
}

impl ConnectSettings {
    pub fn new(
        url: &RedisUrl,
        options: &RedisOptions,
        script: &'static str,
    ) -> Result<Self, ConnectError> {
        let tls = if url.tls { Some(read_certificates(options)?) } else { None };
        let login = login_info(&url.login).set_db(url.db);
        let is_cluster = url.discovery == ServerDiscovery::Cluster;
        Ok(Self { login, sentinel: login_info(&url.sentinel), tls, script, is_cluster })
    }

    /// The settings for connections to Sentinels.
    pub fn for_sentinels(&self) -> Self {
        Self { login: self.sentinel.clone(), ..self.clone() }
    }

    /// Opens a connection without checking the server. `config` has the timeouts.
    pub async fn open(
        &self,
        server: &RedisAddress,
        config: AsyncConnectionConfig,
        protocol: redis::ProtocolVersion,
    ) -> RedisResult<MultiplexedConnection> {
        let address = match (server, &self.tls) {
            (RedisAddress::Unix(path), _) => ConnectionAddr::Unix(path.clone()),
            (RedisAddress::Tcp(host, port), None) => ConnectionAddr::Tcp(host.clone(), *port),
            (RedisAddress::Tcp(host, port), Some(_)) => ConnectionAddr::TcpTls {
                host: host.clone(),
                port: *port,
                insecure: false,
                tls_params: None,
            },
        };
        let login = self.login.clone().set_protocol(protocol);
        let info = address.into_connection_info()?.set_redis_settings(login);
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match &self.tls {
            Some(tls) if matches!(server, RedisAddress::Tcp(..)) => {
                Client::build_with_tls(info, tls.clone())?
            }
            _ => Client::open(info)?,
        };
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Connects, checks the server, loads the script and measures the clock offset. `epoch` is the
    /// configuration epoch in which Sentinels report this server.
    pub async fn connect_checked(
        &self,
        server: &RedisAddress,
        epoch: Option<u64>,
    ) -> Result<ReadyConnection, ConnectError> {
        // No timeouts of the driver: the caller has one deadline for everything below.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let opened = self.open(server, config, redis::ProtocolVersion::RESP2).await;
        let mut connection = opened.map_err(|error| to_connect_error(server, &error))?;
        let role_asked = Instant::now();
        let asked = redis::cmd("INFO").query_async::<String>(&mut connection).await;
        let info = asked.map_err(|error| to_connect_error(server, &error))?;
        self.check_topology(server, &info)?;
        check_server(server, &info)?;
        let load = redis::cmd("SCRIPT").arg("LOAD").arg(self.script).to_owned();
        let loaded = load.query_async::<String>(&mut connection).await;
        let script = loaded.map_err(|error| to_connect_error(server, &error))?;
        let asked = ClockOffset::measure(&mut connection).await;
        let clock_offset = asked.map_err(|error| to_connect_error(server, &error))?;
        let field = |name| info_field(&info, name).unwrap_or_default().to_owned();
        let run_id = match epoch {
            Some(epoch) => format!("{} {epoch}", field("run_id")),
            None => field("run_id"),
        };
        let server_info = ServerInfo {
            server: server.clone(),
            script,
            run_id,
            replication_id: field("master_replid"),
            followed_replication_id: field("master_replid2"),
            clock_offset,
            // Redis shows this field only if the setting is above 0.
            needs_replicas: info_field(&info, "min_slaves_good_slaves").is_some(),
            confirmation: epoch.map(|epoch| PrimaryConfirmation::new(epoch, role_asked)),
        };
        Ok(ReadyConnection { connection, server_info: Arc::new(server_info) })
    }

    /// Refuses a server that does not fit the scheme of the URL.
    fn check_topology(&self, server: &RedisAddress, info: &str) -> Result<(), ConnectError> {
        let is_sentinel = info_field(info, "redis_mode") == Some("sentinel");
        // Some servers that are compatible with Redis do not have the field.
        let reason = match (self.is_cluster, info_field(info, "cluster_enabled")) {
            _ if is_sentinel => IS_SENTINEL,
            (false, Some("1")) => IN_CLUSTER,
            (true, Some("0")) => NOT_IN_CLUSTER,
            _ => return Ok(()),
        };
        Err(ConnectError::Refused { server: server.to_string(), reason: reason.to_owned() })
    }
}

const IS_SENTINEL: &str = "it is a Sentinel, which stores nothing; write \
     redis+sentinel://HOST:PORT/NAME, with the name of `sentinel monitor`";
const IN_CLUSTER: &str =
    "it is a server of a cluster (cluster-enabled is yes); write redis+cluster://HOST:PORT";
const NOT_IN_CLUSTER: &str = "it is no server of a cluster (cluster-enabled is no); write \
     redis://HOST:PORT for a single server, or redis+sentinel://HOST:PORT/NAME for one that \
     Sentinels watch";

/// The login of a connection, without the driver's `CLIENT SETINFO`: the user's ACL need not allow
/// it.
fn login_info(login: &RedisCredentials) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = &login.user {
        info = info.set_username(user);
    }
    if let Some(password) = &login.password {
        info = info.set_password(password);
    }
    info
}

fn read_certificates(options: &RedisOptions) -> Result<TlsCertificates, ConnectError> {
    let read = |file: &std::path::PathBuf| {
        let failed = |reason: String| ConnectError::Certificates { file: file.clone(), reason };
        let bytes = fs::read(file).map_err(|error| failed(error.to_string()))?;
        if bytes.windows(17).any(|window| window == b"BEGIN CERTIFICATE") {
            return Ok(bytes);
        }
        Err(failed("it contains no certificate in PEM format".to_owned()))
    };
    let root_cert = options.ca_file.as_ref().map(read).transpose()?;
    Ok(TlsCertificates { client_tls: None, root_cert })
}

/// Refuses a replica, which takes no writes, and a server that evicts keys when it is full: an
/// evicted block would be lifted.
pub(super) fn check_server(server: &RedisAddress, info: &str) -> Result<(), ConnectError> {
    let server = server.to_string();
    if info_field(info, "role") == Some("slave") {
        return Err(ConnectError::Replica { server });
    }
    // With maxmemory 0 there is no memory limit, and no policy evicts anything.
    let policy = info_field(info, "maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && info_field(info, "maxmemory") != Some("0") {
        return Err(ConnectError::Evicts { server, policy: policy.to_owned() });
    }
    Ok(())
}

/// What a server does not report, so that it cannot be checked, and the consequence.
pub(super) fn unreported_settings(run_id: &str, memory: &str) -> Option<String> {
    if info_field(memory, "maxmemory_policy").is_none() {
        return Some(
            "the server does not report `maxmemory_policy` in INFO: if it evicts keys when its \
             memory is full, blocks end early; set it to `noeviction`"
                .to_owned(),
        );
    }
    run_id.is_empty().then(|| {
        "the server does not report `run_id` in INFO: a restart that loses blocks is not noticed \
         unless it loses all data"
            .to_owned()
    })
}

/// The value of a field in the text of `INFO`.
pub(super) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_end);
    info.lines().find_map(value)
}

pub(super) fn to_connect_error(server: &RedisAddress, error: &RedisError) -> ConnectError {
    let server = server.to_string();
    let text = error_text(error);
    if text.contains("cluster support disabled") {
        return ConnectError::Refused { server, reason: NOT_IN_CLUSTER.to_owned() };
    }
    // A Sentinel knows few commands, and neither CLUSTER nor SCRIPT.
    if text.contains("unknown command") {
        let reason = format!("it does not know a command of Redis; it may be a Sentinel: {FORMS}");
        return ConnectError::Refused { server, reason };
    }
    match error_code(error) {
        Some(code) => {
            let meaning = known_meaning(&code).unwrap_or("an error that is not documented here");
            ConnectError::Refused { server, reason: format!("{code}, {meaning}") }
        }
        None => ConnectError::Unreachable { server, reason: describe_io_error(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(info: &str) -> String {
        let server = RedisAddress::Tcp("h".to_owned(), 1);
        check_server(&server, info).map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn a_server_that_evicts_is_refused_by_its_policy_with_the_command_that_helps() {
        let message =
            verdict("role:master\r\nmaxmemory:1048576\r\nmaxmemory_policy:volatile-lru\r\n");
        assert!(message.contains("volatile-lru"), "{message}");
        assert!(message.contains("CONFIG SET maxmemory-policy noeviction"), "{message}");
        assert_eq!(verdict("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"), "fits");
        assert_eq!(verdict("maxmemory:1\r\nmaxmemory_policy:noeviction\r\n"), "fits");
        assert!(verdict("role:slave\r\n").contains("is a replica"));
    }

    /// Regression: a server that does not report how it evicts passed for one that does not.
    #[test]
    fn a_server_that_does_not_report_its_settings_is_a_warning() {
        let memory = "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(unreported_settings("f00d", memory), None);
        let without_policy = unreported_settings("f00d", "maxmemory:0\r\n").unwrap();
        assert!(without_policy.contains("`maxmemory_policy`"), "{without_policy}");
        let without_id = unreported_settings("", memory).unwrap();
        assert!(without_id.contains("`run_id`"), "{without_id}");
    }
}
