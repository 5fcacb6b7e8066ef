//! Where the database is: the URL, read by name, and a way to show it.
//!
//! Must not show a password, not even one that was written in the wrong place.

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::records::error::OpenError;
use crate::records::url::redacted;

/// A database that records can be in.
pub(super) struct Place {
    pub(super) config: Config,
    /// As people may see it.
    pub(super) shown: String,
}

impl Place {
    pub(super) fn read(url: &str) -> Result<Self, OpenError> {
        let wrong = |reason: String| OpenError::Postgres { url: redacted(url), reason };
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            wrong(cause.unwrap_or_else(|| error.to_string()))
        })?;
        let missing = |what: &str| wrong(format!("it names no {what}"));
        if config.get_hosts().is_empty() {
            return Err(missing("host"));
        }
        if config.get_user().is_none() {
            return Err(missing("user"));
        }
        if config.get_dbname().is_none() {
            return Err(missing("database"));
        }
        if config.get_ssl_mode() == SslMode::Require {
            let reason = "this program speaks to PostgreSQL without TLS: leave out sslmode=require \
                          and reach the server over a private network, a socket or a tunnel";
            return Err(wrong(reason.to_owned()));
        }
        if config.get_application_name().is_none() {
            config.application_name("catraca");
        }
        let shown = shown(&config);
        Ok(Self { config, shown })
    }
}

/// User, host, port and database; whatever else the URL says is left out.
fn shown(config: &Config) -> String {
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
        Place::read(url).map(|place| place.shown).expect_err(url).to_string()
    }

    #[test]
    fn a_place_is_shown_without_its_password() {
        let place = Place::read("postgres://ana:s3cret@db.example:5433/shop").unwrap();
        assert_eq!(place.shown, "postgres://ana@db.example:5433/shop");
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        let wrong = [
            ("postgres://ana:s3cret@/shop", "names no host"),
            ("postgres://db/shop", "names no user"),
            ("postgres://ana:s3cret@db", "names no database"),
            ("postgres://ana:s3cret@db:port/shop", "port"),
            ("postgres://ana:s3cret@db/shop?ssl=1", "ssl"),
            ("postgres://ana:s3cret@db/shop?sslmode=require", "without TLS"),
        ];
        for (url, why) in wrong {
            let said = refused(url);
            assert!(said.contains(why) && said.contains("postgres://USER"), "{url}: {said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}
