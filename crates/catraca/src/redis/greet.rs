//! Making one connection, and looking at who is there before anything is kept in it.
//!
//! Must not try twice nor wait: who keeps the line does.

use std::fs;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
};
use redis::{RedisError, RedisResult, TlsCertificates};

use super::ahead::Ahead;
use super::error::ConnectError;
use super::failure::{broken, code, named};
use super::options::RedisOptions;
use super::url::{Login, Place, Server};

/// How to speak to the servers of a place.
#[derive(Clone)]
pub(super) struct Manners {
    login: RedisConnectionInfo,
    /// For Sentinels, which have passwords of their own and no databases.
    sentinel: RedisConnectionInfo,
    tls: Option<TlsCertificates>,
    /// What servers are given to run.
    script: &'static str,
}

/// What is known of a server that was greeted.
#[derive(Clone)]
pub(super) struct Greeted {
    pub connection: MultiplexedConnection,
    pub about: Arc<About>,
}

pub(super) struct About {
    pub server: Server,
    /// The script's digest.
    pub script: String,
    /// Another one after every start of the server.
    pub run_id: String,
    pub ahead: Ahead,
}

impl Manners {
    pub fn new(
        place: &Place,
        options: &RedisOptions,
        script: &'static str,
    ) -> Result<Self, ConnectError> {
        let tls = if place.tls { Some(certificates(options)?) } else { None };
        let login = introduced(&place.login).set_db(place.db);
        Ok(Self { login, sentinel: introduced(&place.sentinel), tls, script })
    }

    /// The same towards Sentinels.
    pub fn to_sentinels(&self) -> Self {
        Self { login: self.sentinel.clone(), ..self.clone() }
    }

    /// A bare connection. `config` bounds how long it may take.
    pub async fn open(
        &self,
        server: &Server,
        config: AsyncConnectionConfig,
        protocol: redis::ProtocolVersion,
    ) -> RedisResult<MultiplexedConnection> {
        let address = match (server, &self.tls) {
            (Server::Unix(path), _) => ConnectionAddr::Unix(path.clone()),
            (Server::Tcp(host, port), None) => ConnectionAddr::Tcp(host.clone(), *port),
            (Server::Tcp(host, port), Some(_)) => ConnectionAddr::TcpTls {
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
            Some(tls) if matches!(server, Server::Tcp(..)) => {
                Client::build_with_tls(info, tls.clone())?
            }
            _ => Client::open(info)?,
        };
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// A connection to a primary that keeps what it is given, with the script loaded.
    pub async fn greet(&self, server: &Server) -> Result<Greeted, ConnectError> {
        // Deadlines are kept outside, over everything at once.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let opened = self.open(server, config, redis::ProtocolVersion::RESP2).await;
        let mut connection = opened.map_err(|error| refusal(server, &error))?;
        let asked = redis::cmd("INFO").query_async::<String>(&mut connection).await;
        let info = asked.map_err(|error| refusal(server, &error))?;
        fits(server, &info)?;
        let load = redis::cmd("SCRIPT").arg("LOAD").arg(self.script).to_owned();
        let loaded = load.query_async::<String>(&mut connection).await;
        let script = loaded.map_err(|error| refusal(server, &error))?;
        let asked = Ahead::of(&mut connection).await;
        let ahead = asked.map_err(|error| refusal(server, &error))?;
        let run_id = field(&info, "run_id").unwrap_or_default().to_owned();
        let about = Arc::new(About { server: server.clone(), script, run_id, ahead });
        Ok(Greeted { connection, about })
    }
}

fn introduced(login: &Login) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = &login.user {
        info = info.set_username(user);
    }
    if let Some(password) = &login.password {
        info = info.set_password(password);
    }
    info
}

fn certificates(options: &RedisOptions) -> Result<TlsCertificates, ConnectError> {
    let read = |file: &std::path::PathBuf| {
        let failed = |reason: String| ConnectError::Certificates { file: file.clone(), reason };
        let bytes = fs::read(file).map_err(|error| failed(error.to_string()))?;
        if bytes.windows(17).any(|words| words == b"BEGIN CERTIFICATE") {
            return Ok(bytes);
        }
        Err(failed("there is no certificate in PEM in it".to_owned()))
    };
    let root_cert = options.ca_file.as_ref().map(read).transpose()?;
    Ok(TlsCertificates { client_tls: None, root_cert })
}

/// Whether this server may be trusted with blocks.
pub(super) fn fits(server: &Server, info: &str) -> Result<(), ConnectError> {
    let server = server.to_string();
    if field(info, "role") == Some("slave") {
        return Err(ConnectError::Replica { server });
    }
    let policy = field(info, "maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" && field(info, "maxmemory") != Some("0") {
        return Err(ConnectError::Evicts { server, policy: policy.to_owned() });
    }
    Ok(())
}

/// A field of what `INFO` tells.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_end);
    info.lines().find_map(value)
}

pub(super) fn refusal(server: &Server, error: &RedisError) -> ConnectError {
    let server = server.to_string();
    match code(error) {
        Some(code) => {
            let meaning = named(code).unwrap_or("it says nothing that is known here");
            ConnectError::Refused { server, reason: format!("{code}, {meaning}") }
        }
        None => ConnectError::Unreachable { server, reason: broken(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(info: &str) -> String {
        let server = Server::Tcp("h".to_owned(), 1);
        fits(&server, info).map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn a_server_that_evicts_is_refused_by_its_policy_with_the_command_that_helps() {
        let told = judged("role:master\r\nmaxmemory:1048576\r\nmaxmemory_policy:volatile-lru\r\n");
        assert!(told.contains("volatile-lru"), "{told}");
        assert!(told.contains("CONFIG SET maxmemory-policy noeviction"), "{told}");
        assert_eq!(judged("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"), "fits");
        assert_eq!(judged("maxmemory:1\r\nmaxmemory_policy:noeviction\r\n"), "fits");
        assert!(judged("role:slave\r\n").contains("is a replica"));
    }
}
