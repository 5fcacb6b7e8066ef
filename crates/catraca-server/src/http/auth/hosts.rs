//! By which name a call came: a page of another site must not steer a browser here.
//!
//! A name that points at this machine for a moment gives itself away in `Host`, and a page of
//! another site in `Origin`. Addresses are read as addresses: `127.example.com` is none. Which
//! calls are checked is in `roles`.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};

use super::super::problem::Problem;

/// Refuses another host, and a page of another site.
pub fn check(headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let host = single(headers, &header::HOST).and_then(authority);
    let host = host.filter(|host| is_ours(host.host(), hosts)).ok_or_else(wrong_host)?;
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single(headers, &header::ORIGIN).and_then(site).ok_or_else(wrong_origin)?;
    let same = origin.name == host.host().to_ascii_lowercase()
        && origin.port == host.port_u16().unwrap_or(origin.usual_port);
    if same { Ok(()) } else { Err(wrong_origin()) }
}

/// Where a page comes from.
struct Site {
    name: String,
    port: u16,
    usual_port: u16,
}

fn site(text: &str) -> Option<Site> {
    let secure = text.strip_prefix("https://").map(|rest| (rest, 443));
    let (rest, usual_port) = secure.or(text.strip_prefix("http://").map(|rest| (rest, 80)))?;
    let authority = authority(rest)?;
    let port = authority.port_u16().unwrap_or(usual_port);
    Some(Site { name: authority.host().to_ascii_lowercase(), port, usual_port })
}

fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let rest = authority.as_str().strip_prefix(authority.host())?;
    let port = rest.is_empty() || rest.starts_with(':') && authority.port_u16().is_some();
    port.then_some(authority)
}

fn is_ours(host: &str, hosts: &[String]) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let address: Option<IpAddr> = bare.parse().ok();
    address.is_some_and(|address| address.to_canonical().is_loopback())
        || host.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|name| name.eq_ignore_ascii_case(bare))
}

/// A header that is there once and readable.
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
