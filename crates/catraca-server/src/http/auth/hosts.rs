//! Checks of `Host` and `Origin`, so that no web page of another site can call this server from a
//! browser on the same machine.
//!
//! A page under a DNS name that was rebound to this machine sends that name as `Host`; any other
//! page of another site sends its own `Origin`. Loopback addresses are parsed, not compared as
//! text: `127.example.com` is not one. The table in `roles` defines which endpoints are checked.

use std::net::IpAddr;

use hyper::http::uri::Authority;
use hyper::http::{HeaderMap, HeaderName, StatusCode, header};

use crate::http::bodies::problem::Problem;

/// Refuses a `Host` that is not this server's, and an `Origin` other than that host.
pub fn check(headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let host = single(headers, &header::HOST).and_then(authority);
    let host = host.filter(|host| is_own_host(host.host(), hosts)).ok_or_else(wrong_host)?;
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single(headers, &header::ORIGIN).and_then(site).ok_or_else(wrong_origin)?;
    let same = origin.name == host.host().to_ascii_lowercase()
        // A `Host` without a port has the default port of the page's scheme.
        && origin.port == host.port_u16().unwrap_or(origin.default_port);
    if same { Ok(()) } else { Err(wrong_origin()) }
}

/// The origin of a web page.
struct Site {
    name: String,
    port: u16,
    default_port: u16,
}

/// Parses an `Origin` such as `https://example.com:8443`.
fn site(text: &str) -> Option<Site> {
    let secure = text.strip_prefix("https://").map(|rest| (rest, 443));
    let (rest, default_port) = secure.or(text.strip_prefix("http://").map(|rest| (rest, 80)))?;
    let authority = authority(rest)?;
    let port = authority.port_u16().unwrap_or(default_port);
    Some(Site { name: authority.host().to_ascii_lowercase(), port, default_port })
}

/// Parses `host` or `host:port`.
fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let rest = authority.as_str().strip_prefix(authority.host())?;
    // Nothing but a port may follow the host, and it must be a number.
    let has_valid_port = rest.is_empty() || rest.starts_with(':') && authority.port_u16().is_some();
    has_valid_port.then_some(authority)
}

/// Whether a host is a loopback address, `localhost`, or one of the configured names.
fn is_own_host(host: &str, hosts: &[String]) -> bool {
    // IPv6 addresses are in brackets.
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let address: Option<IpAddr> = bare.parse().ok();
    address.is_some_and(|address| address.to_canonical().is_loopback())
        || host.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|name| name.eq_ignore_ascii_case(bare))
}

/// The value of a header that was sent exactly once, in readable ASCII.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?.to_str().ok()?;
    lines.next().is_none().then_some(line)
}

fn wrong_host() -> Problem {
    let detail = "`Host` is neither a loopback address nor a name in `[server] hosts`: call by one \
                  of these; a proxy that sends its client's `Host` must be in `[network] \
                  trusted_proxies` or send a key";
    Problem::new(StatusCode::FORBIDDEN, "host-not-allowed", detail)
}

fn wrong_origin() -> Problem {
    let detail = "`Origin` is that of another site; call from a page of this server, or without it";
    Problem::new(StatusCode::FORBIDDEN, "origin-not-allowed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(lines: &[(&'static str, &str)]) -> &'static str {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        check(&headers, &["Turnstile.Example".to_owned()]).err().map_or("ok", |found| found.code)
    }

    #[test]
    fn a_host_is_loopback_or_a_name_of_ours() {
        for host in [
            "localhost",
            "LOCALHOST:7878",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]:7878",
            "[::ffff:127.0.0.1]",
            "turnstile.example:443",
        ] {
            assert_eq!(code(&[("host", host)]), "ok", "{host}");
        }
        for host in [
            "127.example.com",
            "127.0.0.1.example.com",
            "localhost.example.com",
            "localhost@example.com",
            "example.com@localhost",
            "127.0.0.1:80:80",
            "127.0.0.1:x",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0.0.0.0",
            "192.0.2.1",
            "[::]",
            "a.turnstile.example",
            "localhost ",
            "localhost,example.com",
            "",
        ] {
            assert_eq!(code(&[("host", host)]), "host-not-allowed", "{host}");
        }
        assert_eq!(code(&[]), "host-not-allowed");
        assert_eq!(code(&[("host", "localhost"), ("host", "localhost")]), "host-not-allowed");
    }

    #[test]
    fn an_origin_is_that_of_the_host_when_it_is_sent() {
        let host = ("host", "localhost:7878");
        assert_eq!(code(&[host, ("origin", "http://localhost:7878")]), "ok");
        assert_eq!(code(&[host, ("origin", "https://LOCALHOST:7878")]), "ok");
        let named = ("host", "turnstile.example");
        assert_eq!(code(&[named, ("origin", "https://turnstile.example")]), "ok");
        assert_eq!(code(&[named, ("origin", "https://turnstile.example:443")]), "ok");
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:7879",
            "http://127.0.0.1:7878",
            "http://example.com:7878",
            "http://localhost:7878.example.com",
            "http://localhost:7878/path",
            "http://user@localhost:7878",
            "ftp://localhost:7878",
            "localhost:7878",
        ] {
            assert_eq!(code(&[host, ("origin", origin)]), "origin-not-allowed", "{origin}");
        }
        let page = ("origin", "http://localhost:7878");
        assert_eq!(code(&[host, page, page]), "origin-not-allowed");
    }
}
