//! Parses the URL of a PostgreSQL database. Neither errors nor the redacted form contain a
//! password, not even one that was written in the wrong part of the URL.

use std::future::pending;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::tls::Tls;
use crate::url::redact;

/// A parsed URL: how to connect to a database.
#[derive(Clone)]
pub(crate) struct DatabaseUrl {
    /// Its hosts: one, or a primary and its standbys in any order.
    pub(super) hosts: Vec<DatabaseHost>,
    /// The newest timeline of any primary that was used; copies of the URL share it.
    pub(super) newest_timeline: Arc<NewestTimeline>,
    /// TLS settings and connector.
    pub(super) tls: Tls,
    /// User, host, port and database, for messages.
    pub(crate) redacted: String,
}

/// How to connect to one host.
#[derive(Clone)]
pub(super) struct DatabaseHost {
    pub(super) config: Config,
    /// Host and port, for messages.
    pub(super) name: String,
}

/// The newest timeline that was seen; 0 if none was.
#[derive(Default)]
pub(super) struct NewestTimeline(watch::Sender<u32>);

impl NewestTimeline {
    /// Takes note of a timeline; returns the newest.
    pub(super) fn raise(&self, timeline: u32) -> u32 {
        self.0.send_if_modified(|newest| {
            let is_newer = timeline > *newest;
            *newest = timeline.max(*newest);
            is_newer
        });
        *self.0.borrow()
    }

    /// Completes when a newer timeline than this one was seen.
    pub(super) async fn wait_for_newer(&self, timeline: u32) {
        // The sender is `self`, so it is not closed meanwhile.
        let _ = self.0.subscribe().wait_for(|newest| *newest > timeline).await;
    }
}

/// Why a URL is invalid.
pub(crate) struct InvalidDatabaseUrl {
    /// The URL without its password.
    pub(crate) url: String,
    /// The cause.
    pub(crate) reason: String,
}

impl DatabaseUrl {
    pub(crate) fn read(url: &str) -> Result<Self, InvalidDatabaseUrl> {
        let invalid = |reason: String| InvalidDatabaseUrl { url: redact(url), reason };
        let (tls, rest) = Tls::read(url).map_err(invalid)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            invalid(cause.unwrap_or_else(|| error.to_string()))
        })?;
        let missing = |what: &str| invalid(format!("it names no {what}"));
        if config.get_hosts().is_empty() {
            return Err(missing("host"));
        }
        if config.get_user().is_none() {
            return Err(missing("user"));
        }
        if config.get_dbname().is_none() {
            return Err(missing("database"));
        }
        tls.apply(&mut config);
        if config.get_application_name().is_none() {
            config.application_name("catraca");
        }
        let hosts = split_hosts(&config).map_err(invalid)?;
        let redacted = redacted_text(&config, &hosts);
        Ok(Self { hosts, newest_timeline: Arc::default(), tls, redacted })
    }

    /// Completes when another server than one with this timeline has become the primary; never if
    /// the timeline is not known (0).
    pub(crate) async fn wait_replaced(&self, timeline: u32) {
        match timeline {
            0 => pending().await,
            timeline => self.newest_timeline.wait_for_newer(timeline).await,
        }
    }

    /// Whether there are hosts to compare with each other.
    pub(crate) fn has_several_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Whether a newer timeline than this one was seen. A server that does not tell its own has 0.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_replaced(&self, timeline: u32) -> bool {
        timeline > 0 && self.newest_timeline.raise(0) > timeline
    }

    /// Sets how long sent data may stay unacknowledged.
    #[cfg(feature = "records")]
    pub(crate) fn set_tcp_user_timeout(&mut self, timeout: std::time::Duration) {
        for host in &mut self.hosts {
            host.config.tcp_user_timeout(timeout);
        }
    }
}

/// One configuration for each host. Of several hosts, only one that accepts writes is used.
fn split_hosts(config: &Config) -> Result<Vec<DatabaseHost>, String> {
    let hosts = config.get_hosts();
    let ports = config.get_ports();
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(format!("it names {} hosts and {} ports", hosts.len(), ports.len()));
    }
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        return Err(format!("it names {} hosts and {} addresses", hosts.len(), addresses.len()));
    }
    let split = |(index, host): (usize, &Host)| {
        let mut own = without_hosts(config);
        let name = match host {
            Host::Tcp(name) => {
                own.host(name);
                name.clone()
            }
            #[cfg(unix)]
            Host::Unix(path) => {
                own.host_path(path);
                path.display().to_string()
            }
        };
        if let Some(address) = addresses.get(index) {
            own.hostaddr(*address);
        }
        let port = ports.get(index).or(ports.first());
        if let Some(port) = port {
            own.port(*port);
        }
        if hosts.len() > 1 {
            own.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        DatabaseHost { config: own, name: name + &port }
    };
    Ok(hosts.iter().enumerate().map(split).collect())
}

/// A copy of all settings but the hosts and ports, which a configuration can only add.
fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    config.get_user().map(|user| copy.user(user));
    config.get_password().map(|password| copy.password(password));
    config.get_dbname().map(|name| copy.dbname(name));
    config.get_options().map(|options| copy.options(options));
    config.get_application_name().map(|name| copy.application_name(name));
    config.get_connect_timeout().map(|timeout| copy.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| copy.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| copy.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| copy.keepalives_retries(retries));
    copy.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts())
        .target_session_attrs(config.get_target_session_attrs());
    copy
}

/// User, hosts, ports and database; parameters and the password are left out.
fn redacted_text(config: &Config, hosts: &[DatabaseHost]) -> String {
    let user = config.get_user().unwrap_or_default();
    let hosts: Vec<&str> = hosts.iter().map(|host| &*host.name).collect();
    format!("postgres://{user}@{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        DatabaseUrl::read(url)
            .map(|url| url.redacted)
            .map_err(|invalid| invalid.reason)
            .expect_err(url)
    }

    #[test]
    fn the_redacted_form_has_no_password() {
        let url = DatabaseUrl::read("postgres://ana:s3cret@db.example:5433/shop");
        let redacted = url.map(|url| url.redacted).map_err(|invalid| invalid.reason);
        assert_eq!(redacted.as_deref(), Ok("postgres://ana@db.example:5433/shop"));
    }

    #[test]
    fn several_hosts_are_split_and_all_shown() {
        let url = DatabaseUrl::read("postgres://ana:s3cret@a:5433,b,c:5434/s?application_name=x");
        let Ok(url) = url else { panic!("it is valid") };
        assert_eq!(url.redacted, "postgres://ana@a:5433,b:5432,c:5434/s");
        for (host, port) in url.hosts.iter().zip([5_433, 5_432, 5_434]) {
            assert_eq!((host.config.get_hosts().len(), host.config.get_ports()), (1, &[port][..]));
            assert_eq!(host.config.get_password(), Some(&b"s3cret"[..]));
            assert_eq!(host.config.get_application_name(), Some("x"));
            let wanted = host.config.get_target_session_attrs();
            assert_eq!(wanted, TargetSessionAttrs::ReadWrite, "a standby is not used");
        }
        let reason = refused("postgres://ana@/shop?host=a&port=1,2");
        assert!(reason.contains("1 hosts and 2 ports"), "{reason}");
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        let invalid = [
            ("postgres://ana:s3cret@/shop", "names no host"),
            ("postgres://db/shop", "names no user"),
            ("postgres://ana:s3cret@db", "names no database"),
            ("postgres://ana:s3cret@db:port/shop", "port"),
            ("postgres://ana:s3cret@db/shop?ssl=1", "ssl"),
            ("postgres://ana:s3cret@db/shop?sslmode=yes", "sslmode is one of disable"),
            ("postgres://ana:s3cret@db/shop?sslrootcert=/ca.pem", "write sslmode=verify-full"),
        ];
        for (url, why) in invalid {
            let reason = refused(url);
            assert!(reason.contains(why), "{url}: {reason}");
            assert!(!reason.contains("s3cret"), "{reason}");
        }
    }
}
