//! Parses and validates the URL of `--server` and `CATRACA_URL`.

use std::net::IpAddr;

use anyhow::{Context, Result, bail, ensure};
use hyper::http::Uri;

const FIX: &str = "write a URL such as http://127.0.0.1:7878 for --server or CATRACA_URL";

/// The URL of a server, in parts.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; 80 or 443 by default.
    pub port: u16,
    /// Host and port for the `Host` header.
    pub authority: String,
    /// Whether the scheme is https.
    pub is_https: bool,
    prefix: String,
}

impl ServerUrl {
    /// Parses a URL; the error says how to fix it.
    pub fn parse(text: &str) -> Result<Self> {
        let uri: Uri = text.parse().with_context(|| format!("{text:?} is not a URL; {FIX}"))?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => bail!("{text:?} starts neither with http:// nor with https://; {FIX}"),
        };
        let authority =
            uri.authority().with_context(|| format!("{text:?} names no host; {FIX}"))?;
        ensure!(
            !authority.as_str().contains('@'),
            "the URL must not contain a user name or key, because other users can see it; use \
             --key-file or CATRACA_KEY"
        );
        ensure!(uri.query().is_none(), "{text:?} has a query, which is not allowed here; {FIX}");
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        ensure!(
            after_host.is_empty() || authority.port_u16().is_some(),
            "{text:?} has no port between 1 and 65535 after its host; {FIX}"
        );
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            is_https,
        })
    }

    /// The path of an API call, below the path of the server's URL.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// The URL for messages.
    pub fn to_text(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.prefix)
    }

    /// Whether requests leave this machine unencrypted.
    pub fn is_plaintext(&self) -> bool {
        let address: Option<IpAddr> = self.host.parse().ok();
        let is_local = address.is_some_and(|address| address.to_canonical().is_loopback())
            || self.host.eq_ignore_ascii_case("localhost");
        !self.is_https && !is_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_host_port_and_prefix() {
        let plain = ServerUrl::parse("http://127.0.0.1:7878").unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("127.0.0.1", 7878));
        assert_eq!(plain.path("/v1/check"), "/v1/check");
        assert!(!plain.is_plaintext());
        let six = ServerUrl::parse("http://[::1]/").unwrap();
        assert_eq!((six.host.as_str(), six.port, six.authority.as_str()), ("::1", 80, "[::1]"));
        let below = ServerUrl::parse("https://gate.example/catraca/").unwrap();
        assert_eq!((below.port, below.path("/v1/check").as_str()), (443, "/catraca/v1/check"));
        assert!(
            !below.is_plaintext()
                && ServerUrl::parse("http://gate.example").unwrap().is_plaintext()
        );
    }

    #[test]
    fn mistakes_are_named_with_a_fix() {
        let wrong = [
            ("127.0.0.1:7878", "--server"),
            ("ftp://host", "neither"),
            ("http://ana:secret@host", "--key-file"),
            ("http://host?x=1", "query"),
            ("http://", "not a URL"),
            ("", "not a URL"),
        ];
        for (text, fix) in wrong {
            let message = format!("{:#}", ServerUrl::parse(text).unwrap_err());
            assert!(message.contains(fix) && !message.contains("secret"), "{text:?}: {message}");
        }
    }
}
