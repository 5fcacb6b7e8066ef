//! Parses the URL of a PostgreSQL database. Neither errors nor the redacted form contain a
//! password, not even one that was written in the wrong part of the URL.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::tls::Tls;
use crate::url::redact;

/// A parsed URL: how to connect to a database.
#[derive(Clone)]
pub(crate) struct DatabaseUrl {
    pub(crate) config: Config,
    /// TLS settings and connector.
    pub(super) tls: Tls,
    /// User, host, port and database, for messages.
    pub(crate) redacted: String,
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
        let redacted = redacted_text(&config);
        Ok(Self { config, tls, redacted })
    }
}

/// User, host, port and database; parameters and the password are left out.
fn redacted_text(config: &Config) -> String {
    let user = config.get_user().unwrap_or_default();
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    format!("postgres://{user}@{host}{port}/{}", config.get_dbname().unwrap_or_default())
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
