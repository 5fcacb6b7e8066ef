//! Parses Redis URLs: servers, how the primary is found, credentials, TLS, database.
//!
//! `redis://`, `rediss://` (TLS) and `unix://` name one server; `redis+sentinel://` names Sentinels
//! and a primary, `redis+cluster://` some servers of a cluster; `rediss+...` is the same with TLS.
//! Errors and `Display` never contain the URL as it was given: it may contain a password.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::connect_error::ConnectError;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;
pub(super) const FORMS: &str = "write redis://host:port/db, rediss://host:port/db, \
                     unix:///path?db=0, \
                     redis+sentinel://host:port,host:port/name?sentinel_password=… or \
                     redis+cluster://host:port,host:port";

#[derive(Clone)]
pub(super) struct RedisUrl {
    pub discovery: ServerDiscovery,
    pub servers: Vec<RedisAddress>,
    pub tls: bool,
    pub login: RedisCredentials,
    /// Credentials for the Sentinels, which are separate from those of the servers.
    pub sentinel: RedisCredentials,
    pub db: i64,
}

/// User and password of a login.
#[derive(Clone, Default)]
pub(super) struct RedisCredentials {
    pub user: Option<String>,
    pub password: Option<String>,
}

/// How the server to use is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerDiscovery {
    /// It is the server in the URL.
    Single,
    /// Sentinels report the address of the primary of this name.
    SentinelPrimary(String),
    /// The servers in the URL report all primaries of the cluster.
    Cluster,
}

/// The address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RedisAddress {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The URL without user and password.
impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(RedisAddress::to_string).collect();
        let servers = servers.join(",");
        let scheme = if self.tls { "rediss" } else { "redis" };
        match &self.discovery {
            ServerDiscovery::Single if matches!(self.servers[..], [RedisAddress::Unix(_)]) => {
                write!(f, "unix://{servers}?db={}", self.db)
            }
            ServerDiscovery::Single => write!(f, "{scheme}://{servers}/{}", self.db),
            ServerDiscovery::SentinelPrimary(name) => {
                write!(f, "{scheme}+sentinel://{servers}/{name}?db={}", self.db)
            }
            ServerDiscovery::Cluster => write!(f, "{scheme}+cluster://{servers}"),
        }
    }
}

impl RedisUrl {
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        parse(url).map_err(|reason| ConnectError::Url(format!("{reason}; {FORMS}")))
    }
}

/// Whether the scheme of a URL is one of this store, even if the rest of the URL is invalid.
pub fn is_redis(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| parse_scheme(scheme).is_some())
}

/// Whether a scheme means TLS, and its part behind the `+`.
fn parse_scheme(scheme: &str) -> Option<(bool, &str)> {
    match scheme.split_once('+').unwrap_or((scheme, "")) {
        ("unix", "") | ("redis", "unix") => Some((false, "unix")),
        ("redis" | "valkey", kind @ ("" | "sentinel" | "cluster")) => Some((false, kind)),
        ("rediss" | "valkeys", kind @ ("" | "sentinel" | "cluster")) => Some((true, kind)),
        _ => None,
    }
}

fn parse(url: &str) -> Result<RedisUrl, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it has no scheme")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A slash or an at sign in a password must be written as %2F or %40.
    let start = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(start);
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let unknown = || format!("unknown scheme {scheme:?}");
    let (tls, kind) = parse_scheme(scheme).ok_or_else(unknown)?;
    let mut parsed = RedisUrl {
        discovery: ServerDiscovery::Single,
        servers: Vec::new(),
        tls,
        login: RedisCredentials { user: decode(user)?, password: decode(password)? },
        sentinel: RedisCredentials::default(),
        db: 0,
    };
    let path_db = parsed.parse_hosts(kind, hosts, path)?;
    parsed.parse_query(query)?;
    // The database in the path wins over `?db=`.
    if let Some(db) = path_db {
        parsed.db = parse_database(&db)?;
    }
    if parsed.discovery == ServerDiscovery::Cluster && parsed.db != 0 {
        return Err("a cluster has only database 0".to_owned());
    }
    Ok(parsed)
}

impl RedisUrl {
    /// Parses servers and path; returns the database in the path.
    fn parse_hosts(
        &mut self,
        kind: &str,
        hosts: &str,
        path: &str,
    ) -> Result<Option<String>, String> {
        if kind == "unix" {
            let path = decode(path)?.filter(|_| hosts.is_empty());
            let path = path.ok_or("a socket must be an absolute path, after three slashes")?;
            self.servers.push(RedisAddress::Unix(path.into()));
            return Ok(None);
        }
        let port = if kind == "sentinel" { SENTINEL_PORT } else { PORT };
        for host in hosts.split(',') {
            self.servers.push(parse_server(host, port)?);
        }
        let path = decode(path.trim_start_matches('/'))?;
        match kind {
            "sentinel" => {
                let name = path.ok_or("the name of the primary is missing behind the Sentinels")?;
                self.discovery = ServerDiscovery::SentinelPrimary(name);
                Ok(None)
            }
            "cluster" => {
                self.discovery = ServerDiscovery::Cluster;
                Ok(path)
            }
            _ if self.servers.len() > 1 => Err("it names several servers".to_owned()),
            _ => Ok(path),
        }
    }

    fn parse_query(&mut self, query: &str) -> Result<(), String> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "db" => self.db = parse_database(value)?,
                "user" => self.login.user = decode(value)?,
                "pass" | "password" => self.login.password = decode(value)?,
                "sentinel_user" => self.sentinel.user = decode(value)?,
                "sentinel_password" => self.sentinel.password = decode(value)?,
                _ => {
                    return Err(format!(
                        "its parameter {name:?} is none of db, user, password, sentinel_user, \
                         sentinel_password"
                    ));
                }
            }
        }
        let has_login = self.sentinel.user.is_some() || self.sentinel.password.is_some();
        if has_login && !matches!(self.discovery, ServerDiscovery::SentinelPrimary(_)) {
            return Err("it has credentials for Sentinels, and names none".to_owned());
        }
        Ok(())
    }
}

fn parse_database(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| format!("{text:?} is no number of a database"))
}

fn parse_server(text: &str, default_port: u16) -> Result<RedisAddress, String> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']').ok_or("an IPv6 address lacks its closing bracket")?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(digits) => digits.parse().ok().filter(|port| *port > 0),
        None if rest.is_empty() => Some(default_port),
        None => None,
    };
    let host = decode(host)?.ok_or("a server has no name")?;
    Ok(RedisAddress::Tcp(host, port.ok_or("a port is a number from 1 to 65535")?))
}

/// Decodes percent-encoding; an empty text is none.
fn decode(text: &str) -> Result<Option<String>, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| "it is not UTF-8")?;
    Ok(Some(decoded.into_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(url: &str) -> String {
        match RedisUrl::parse(url) {
            Ok(url) => url.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_form_is_parsed_and_displayed_without_its_password() {
        for (url, expected) in [
            ("redis://h", "redis://h:6379/0"),
            ("rediss://me:s%40crt@h:1/3", "rediss://h:1/3"),
            ("redis://:s@[::1]:7000/?db=2", "redis://[::1]:7000/2"),
            ("unix:///run/redis.sock?db=1&pass=s", "unix:///run/redis.sock?db=1"),
            ("redis+unix:///r.sock", "unix:///r.sock?db=0"),
            ("redis+sentinel://a,b:1/main?db=4", "redis+sentinel://a:26379,b:1/main?db=4"),
            ("rediss+cluster://a:1,b:2", "rediss+cluster://a:1,b:2"),
        ] {
            assert_eq!(redacted(url), expected, "{url}");
        }
        let url = RedisUrl::parse("redis://me:s%40crt@h").unwrap();
        let login = (url.login.user.as_deref(), url.login.password.as_deref());
        assert_eq!(login, (Some("me"), Some("s@crt")));
        let url = "redis+sentinel://:p@a/main?sentinel_user=w&sentinel_password=s%26crt";
        let url = RedisUrl::parse(url).unwrap();
        assert_eq!(url.login.password.as_deref(), Some("p"));
        let login = (url.sentinel.user.as_deref(), url.sentinel.password.as_deref());
        assert_eq!(login, (Some("w"), Some("s&crt")));
        assert_eq!(url.to_string(), "redis+sentinel://a:26379/main?db=0");
    }

    #[test]
    fn invalid_urls_are_refused_without_showing_the_password() {
        for (url, words) in [
            ("localhost:6379", "no scheme"),
            ("http://secret@h", "scheme \"http\""),
            ("redis://:secret@h:0", "a port is a number"),
            ("redis://:secret@h/x", "no number of a database"),
            ("redis://:secret@a,b", "several servers"),
            ("redis://:secret@", "a server has no name"),
            ("redis://:secret@[::1", "closing bracket"),
            ("redis+sentinel://:secret@h", "name of the primary"),
            ("redis+cluster://:secret@h/1", "only database 0"),
            ("unix://:secret@redis.sock", "absolute path"),
            ("redis://:secret@h?timeout=1", "\"timeout\" is none of"),
            ("redis://h?sentinel_password=secret", "and names none"),
        ] {
            let message = redacted(url);
            assert!(message.contains(words), "{url}: {message}");
            assert!(!message.contains("secret"), "{message}");
            assert!(message.contains("write redis://host:port/db"), "{message}");
        }
    }
}
