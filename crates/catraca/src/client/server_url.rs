//! The URL of a server, in the parts that a connection and a request need.

use std::net::IpAddr;

use http::Uri;

use super::builder::ClientBuildError;

/// The URL of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port; 80 or 443 by default.
    pub port: u16,
    /// Host and port for the `Host` header.
    pub authority: String,
    /// Whether the scheme is https.
    pub is_https: bool,
    /// The path of the URL, below which the API is.
    prefix: String,
}

impl ServerUrl {
    /// Parses a URL such as `https://gate.example/catraca`.
    pub fn parse(text: &str) -> Result<Self, ClientBuildError> {
        let invalid = |why: &str| ClientBuildError::Url { why: why.to_owned() };
        let uri: Uri = text.parse().map_err(|_| invalid("it is not a URL"))?;
        let is_https = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid("it starts neither with http:// nor with https://")),
        };
        let authority = uri.authority().ok_or_else(|| invalid("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(ClientBuildError::UrlWithUser);
        }
        if uri.query().is_some() {
            return Err(invalid("it has a query"));
        }
        let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if !after_host.is_empty() && authority.port_u16().is_none() {
            return Err(invalid("it has no port between 1 and 65535 after its host"));
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            authority: authority.as_str().to_owned(),
            is_https,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The path of an API call, below the path of the URL.
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
        assert_eq!((plain.host.as_str(), plain.port, plain.is_https), ("127.0.0.1", 7878, false));
        assert_eq!(plain.path("/v1/check"), "/v1/check");
        let six = ServerUrl::parse("http://[::1]/").unwrap();
        assert_eq!((six.host.as_str(), six.port, six.authority.as_str()), ("::1", 80, "[::1]"));
        let below = ServerUrl::parse("https://gate.example/catraca/").unwrap();
        assert_eq!((below.port, below.path("/v1/check").as_str()), (443, "/catraca/v1/check"));
        assert_eq!(below.to_text(), "https://gate.example/catraca");
        let remote = ServerUrl::parse("http://gate.example").unwrap();
        assert!(remote.is_plaintext() && !plain.is_plaintext() && !below.is_plaintext());
    }

    #[test]
    fn mistakes_are_named_and_a_password_is_not_shown() {
        let wrong = [
            ("127.0.0.1:7878", "neither"),
            ("ftp://host", "neither"),
            ("http://ana:secret@host", "user name"),
            ("http://host?x=1", "query"),
            ("http://host:99999", "port"),
            ("http://", "not a URL"),
            ("", "not a URL"),
        ];
        for (text, why) in wrong {
            let message = ServerUrl::parse(text).unwrap_err().to_string();
            assert!(message.contains(why) && !message.contains("secret"), "{text:?}: {message}");
        }
    }
}
