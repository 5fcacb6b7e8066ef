//! Where the database is: the URL, read by name, and a way to show it.
//!
//! Must not show a password, not even one that was written in the wrong place.

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::tls::Tls;
use crate::url::redacted;

/// A database, and how people may see it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) config: Config,
    /// How connections to it are encrypted.
    pub(super) tls: Tls,
    /// As people may see it.
    pub(crate) shown: String,
}

/// Why a URL names no database.
pub(crate) struct NotAPlace {
    /// What was written, without a password.
    pub(crate) url: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

impl Place {
    pub(crate) fn read(url: &str) -> Result<Self, NotAPlace> {
        let wrong = |reason: String| NotAPlace { url: redacted(url), reason };
        let (tls, rest) = Tls::read(url).map_err(wrong)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
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
        tls.apply(&mut config);
        if config.get_application_name().is_none() {
            config.application_name("catraca");
        }
        let shown = shown(&config);
        Ok(Self { config, tls, shown })
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
        Place::read(url).map(|place| place.shown).map_err(|wrong| wrong.reason).expect_err(url)
    }

    #[test]
    fn a_place_is_shown_without_its_password() {
        let place = Place::read("postgres://ana:s3cret@db.example:5433/shop");
        let shown = place.map(|place| place.shown).map_err(|wrong| wrong.reason);
        assert_eq!(shown.as_deref(), Ok("postgres://ana@db.example:5433/shop"));
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        let wrong = [
            ("postgres://ana:s3cret@/shop", "names no host"),
            ("postgres://db/shop", "names no user"),
            ("postgres://ana:s3cret@db", "names no database"),
            ("postgres://ana:s3cret@db:port/shop", "port"),
            ("postgres://ana:s3cret@db/shop?ssl=1", "ssl"),
            ("postgres://ana:s3cret@db/shop?sslmode=yes", "sslmode is one of disable"),
            ("postgres://ana:s3cret@db/shop?sslrootcert=/ca.pem", "write sslmode=verify-full"),
        ];
        for (url, why) in wrong {
            let said = refused(url);
            assert!(said.contains(why), "{url}: {said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}
