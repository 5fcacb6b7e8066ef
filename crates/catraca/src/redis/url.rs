//! A Redis URL as what it says: which servers, in what way, as whom.
//!
//! `redis://`, `rediss://` (encrypted) and `unix://` name one server; `redis+sentinel://` names
//! Sentinels and a primary, `redis+cluster://` some servers of a cluster; with `rediss` both are
//! encrypted. Must not show what it read: there may be a password in it.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::error::ConnectError;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;
const FORMS: &str = "write redis://host:port/db, rediss://host:port/db, unix:///path?db=0, \
                     redis+sentinel://host:port,host:port/name?sentinel_password=… or \
                     redis+cluster://host:port,host:port";

/// What a URL says.
#[derive(Clone)]
pub(super) struct Place {
    pub kind: Kind,
    pub servers: Vec<Server>,
    pub tls: bool,
    pub login: Login,
    /// What the Sentinels themselves want to know.
    pub sentinel: Login,
    pub db: i64,
}

/// As whom.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
}

/// How the servers are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The one that is named.
    One,
    /// The primary of this name, as Sentinels know it.
    Sentinel(String),
    /// The primaries that the cluster names.
    Cluster,
}

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Server {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The URL again, without user and password.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(Server::to_string).collect();
        let (servers, scheme) = (servers.join(","), if self.tls { "rediss" } else { "redis" });
        match &self.kind {
            Kind::One if matches!(self.servers[..], [Server::Unix(_)]) => {
                write!(f, "unix://{servers}?db={}", self.db)
            }
            Kind::One => write!(f, "{scheme}://{servers}/{}", self.db),
            Kind::Sentinel(name) => {
                write!(f, "{scheme}+sentinel://{servers}/{name}?db={}", self.db)
            }
            Kind::Cluster => write!(f, "{scheme}+cluster://{servers}"),
        }
    }
}

impl Place {
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        read(url).map_err(|reason| ConnectError::Url(format!("{reason}; {FORMS}")))
    }
}

/// Whether a URL is for this store, however wrong the rest of it may be.
pub fn is_redis(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| known(scheme).is_some())
}

/// Whether a scheme is encrypted, and what it connects to.
fn known(scheme: &str) -> Option<(bool, &str)> {
    match scheme.split_once('+').unwrap_or((scheme, "")) {
        ("unix", "") | ("redis", "unix") => Some((false, "unix")),
        ("redis" | "valkey", kind @ ("" | "sentinel" | "cluster")) => Some((false, kind)),
        ("rediss" | "valkeys", kind @ ("" | "sentinel" | "cluster")) => Some((true, kind)),
        _ => None,
    }
}

fn read(url: &str) -> Result<Place, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it has no scheme")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold a slash or an at sign only if it is written as %2F or %40.
    let start = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(start);
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let unknown = || format!("nothing is known of its scheme {scheme:?}");
    let (tls, kind) = known(scheme).ok_or_else(unknown)?;
    let mut place = Place {
        kind: Kind::One,
        servers: Vec::new(),
        tls,
        login: Login { user: some(user)?, password: some(password)? },
        sentinel: Login::default(),
        db: 0,
    };
    let path_db = place.take_hosts(kind, hosts, path)?;
    place.take_query(query)?;
    if let Some(db) = path_db {
        place.db = database(&db)?;
    }
    if place.kind == Kind::Cluster && place.db != 0 {
        return Err("a cluster has only database 0".to_owned());
    }
    Ok(place)
}

impl Place {
    /// Reads servers and path; returns the database that the path names.
    fn take_hosts(
        &mut self,
        kind: &str,
        hosts: &str,
        path: &str,
    ) -> Result<Option<String>, String> {
        if kind == "unix" {
            let path = some(path)?.filter(|_| hosts.is_empty());
            let path = path.ok_or("a socket is an absolute path, after three slashes")?;
            self.servers.push(Server::Unix(path.into()));
            return Ok(None);
        }
        let port = if kind == "sentinel" { SENTINEL_PORT } else { PORT };
        for host in hosts.split(',') {
            self.servers.push(server(host, port)?);
        }
        let path = some(path.trim_start_matches('/'))?;
        match kind {
            "sentinel" => {
                let name = path.ok_or("the name of the primary is missing after the Sentinels")?;
                self.kind = Kind::Sentinel(name);
                Ok(None)
            }
            "cluster" => {
                self.kind = Kind::Cluster;
                Ok(path)
            }
            _ if self.servers.len() > 1 => Err("it names several servers".to_owned()),
            _ => Ok(path),
        }
    }

    fn take_query(&mut self, query: &str) -> Result<(), String> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "db" => self.db = database(value)?,
                "user" => self.login.user = some(value)?,
                "pass" | "password" => self.login.password = some(value)?,
                "sentinel_user" => self.sentinel.user = some(value)?,
                "sentinel_password" => self.sentinel.password = some(value)?,
                _ => {
                    return Err(format!(
                        "its parameter {name:?} is none of db, user, password, sentinel_user, \
                         sentinel_password"
                    ));
                }
            }
        }
        let told = self.sentinel.user.is_some() || self.sentinel.password.is_some();
        if told && !matches!(self.kind, Kind::Sentinel(_)) {
            return Err("it tells Sentinels who we are, and names none".to_owned());
        }
        Ok(())
    }
}

fn database(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| format!("{text:?} is no number of a database"))
}

fn server(text: &str, port: u16) -> Result<Server, String> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']').ok_or("an IPv6 address lacks its closing bracket")?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let named = match rest.strip_prefix(':') {
        Some(digits) => digits.parse().ok().filter(|port| *port > 0),
        None if rest.is_empty() => Some(port),
        None => None,
    };
    let host = some(host)?.ok_or("a server has no name")?;
    Ok(Server::Tcp(host, named.ok_or("a port is a number from 1 to 65535")?))
}

/// The text that is meant, if there is one.
fn some(text: &str) -> Result<Option<String>, String> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| "it is not UTF-8")?;
    Ok(Some(decoded.into_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match Place::parse(url) {
            Ok(place) => place.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_form_is_read_and_shown_without_its_password() {
        for (url, expected) in [
            ("redis://h", "redis://h:6379/0"),
            ("rediss://me:s%40crt@h:1/3", "rediss://h:1/3"),
            ("redis://:s@[::1]:7000/?db=2", "redis://[::1]:7000/2"),
            ("unix:///run/redis.sock?db=1&pass=s", "unix:///run/redis.sock?db=1"),
            ("redis+unix:///r.sock", "unix:///r.sock?db=0"),
            ("redis+sentinel://a,b:1/main?db=4", "redis+sentinel://a:26379,b:1/main?db=4"),
            ("rediss+cluster://a:1,b:2", "rediss+cluster://a:1,b:2"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
        let place = Place::parse("redis://me:s%40crt@h").unwrap();
        let login = (place.login.user.as_deref(), place.login.password.as_deref());
        assert_eq!(login, (Some("me"), Some("s@crt")));
        let url = "redis+sentinel://:p@a/main?sentinel_user=w&sentinel_password=s%26crt";
        let place = Place::parse(url).unwrap();
        assert_eq!(place.login.password.as_deref(), Some("p"));
        let login = (place.sentinel.user.as_deref(), place.sentinel.password.as_deref());
        assert_eq!(login, (Some("w"), Some("s&crt")));
        assert_eq!(place.to_string(), "redis+sentinel://a:26379/main?db=0");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_without_the_password() {
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
            let message = shown(url);
            assert!(message.contains(words), "{url}: {message}");
            assert!(!message.contains("secret"), "{message}");
            assert!(message.contains("write redis://host:port/db"), "{message}");
        }
    }
}
