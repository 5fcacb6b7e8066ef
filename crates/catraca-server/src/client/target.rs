//! Where a server is: an address read from a URL, with what is wrong about it named.

use std::net::IpAddr;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Uri;

const FIX: &str = "write a URL such as http://127.0.0.1:7878 for --server or CATRACA_URL";

/// A server's address.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The name or address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What `Host` says.
    pub authority: String,
    /// Whether it is https.
    pub secure: bool,
    prefix: String,
}

impl Target {
    /// Reads a URL.
    pub fn read(text: &str) -> Result<Self> {
        let uri: Uri = text.parse().with_context(|| format!("{text:?} is no URL; {FIX}"))?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => bail!("{text:?} begins neither with http:// nor with https://; {FIX}"),
        };
        let authority =
            uri.authority().with_context(|| format!("{text:?} names no host; {FIX}"))?;
        ensure!(
            !authority.as_str().contains('@'),
            "a URL must not hold a name or a key, for others can see it; use --key-file or \
             CATRACA_KEY"
        );
        ensure!(uri.query().is_none(), "{text:?} has a query, which a server's URL has not; {FIX}");
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        ensure!(
            after_host.is_empty() || authority.port_u16().is_some(),
            "{text:?} has no port between 1 and 65535 after its host; {FIX}"
        );
        let bare = authority.host().trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: bare.to_owned(),
            port: authority.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            secure,
        })
    }

    /// A path of the API, below the server's own.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// As a person would write it.
    pub fn shown(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.prefix)
    }

    /// Whether others may read what is sent there.
    pub fn is_overheard(&self) -> bool {
        let address: Option<IpAddr> = self.host.parse().ok();
        let here = address.is_some_and(|address| address.to_canonical().is_loopback())
            || self.host.eq_ignore_ascii_case("localhost");
        !self.secure && !here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_host_port_and_prefix() {
        let plain = Target::read("http://127.0.0.1:7878").unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("127.0.0.1", 7878));
        assert_eq!(plain.path("/v1/check"), "/v1/check");
        assert!(!plain.is_overheard());
        let six = Target::read("http://[::1]/").unwrap();
        assert_eq!((six.host.as_str(), six.port, six.authority.as_str()), ("::1", 80, "[::1]"));
        let below = Target::read("https://gate.example/catraca/").unwrap();
        assert_eq!((below.port, below.path("/v1/check").as_str()), (443, "/catraca/v1/check"));
        assert!(
            !below.is_overheard() && Target::read("http://gate.example").unwrap().is_overheard()
        );
    }

    #[test]
    fn mistakes_are_named_with_a_fix() {
        let wrong = [
            ("127.0.0.1:7878", "--server"),
            ("ftp://host", "neither"),
            ("http://ana:secret@host", "--key-file"),
            ("http://host?x=1", "query"),
            ("http://", "no URL"),
            ("", "no URL"),
        ];
        for (text, fix) in wrong {
            let said = format!("{:#}", Target::read(text).unwrap_err());
            assert!(said.contains(fix) && !said.contains("secret"), "{text:?}: {said}");
        }
    }
}
