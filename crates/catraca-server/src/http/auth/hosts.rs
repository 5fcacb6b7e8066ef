//! Checks of `Host`, `Origin` and `Sec-Fetch-Site`, so that no web page of another site can call
//! this server from a browser on the same machine.
//!
//! A page under a DNS name that was rebound to this machine sends that name as `Host`; any other
//! page of another site sends its own `Origin`, except in requests of images, links and frames: of
//! these, `Sec-Fetch-Site` says that another site caused them. Loopback addresses are parsed, not
//! compared as text: `127.example.com` is not one. The table of endpoints says which are checked.

use std::net::IpAddr;

use hyper::http::uri::Authority;
use hyper::http::{HeaderMap, HeaderName, StatusCode, Uri, header};

use crate::http::bodies::problem::Problem;

/// The header in which a browser says which site caused a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a `Host` that is not this server's, and an `Origin` other than that host. A target in
/// absolute form (`GET http://host/path`) must name the server as well.
pub fn check(target: &Uri, headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let host = single(headers, &header::HOST).and_then(authority);
    let host = host.filter(|host| is_own_host(host.host(), hosts)).ok_or_else(wrong_host)?;
    if let Some(named) = target.authority() {
        let named = authority(named.as_str()).filter(|named| is_own_host(named.host(), hosts));
        named.ok_or_else(wrong_host)?;
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single(headers, &header::ORIGIN).and_then(site).ok_or_else(wrong_origin)?;
    let same = origin.name == host.host().to_ascii_lowercase()
        // A `Host` without a port has the default port of the page's scheme.
        && origin.port == host.port_u16().unwrap_or(origin.default_port);
    if same { Ok(()) } else { Err(wrong_origin()) }
}

/// Refuses a request that a page of another origin caused. A request without the header is not a
/// browser's, or goes to a name without TLS that is no loopback address.
pub fn check_fetch_site(headers: &HeaderMap) -> Result<(), Problem> {
    // `none` is a request of the user, such as an address that was typed.
    let own = |site: &str| matches!(site, "same-origin" | "none");
    if !headers.contains_key(FETCH_SITE) || single(headers, &FETCH_SITE).is_some_and(own) {
        return Ok(());
    }
    let detail = "`Sec-Fetch-Site` says that a page of another site caused this request; call from \
                  a page of this server, or from a program";
    Err(Problem::new(StatusCode::FORBIDDEN, "origin-not-allowed", detail))
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
        check_at("/v1/check", &headers)
    }

    fn check_at(target: &str, headers: &HeaderMap) -> &'static str {
        let hosts = ["Turnstile.Example".to_owned()];
        let checked = check(&target.parse().unwrap(), headers, &hosts);
        checked.err().map_or("ok", |found| found.code)
    }

    /// Regression: the target in absolute form was ignored, although HTTP says that it counts.
    #[test]
    fn a_target_in_absolute_form_names_this_server() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost:7878".parse().unwrap());
        assert_eq!(check_at("http://localhost:7878/v1/check", &headers), "ok");
        assert_eq!(check_at("http://turnstile.example/v1/check", &headers), "ok");
        for target in ["http://example.com/v1/check", "http://localhost@example.com/v1/check"] {
            assert_eq!(check_at(target, &headers), "host-not-allowed", "{target}");
        }
    }

    #[test]
    fn a_request_that_another_site_caused_is_refused() {
        let check = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FETCH_SITE, line.parse().unwrap());
            }
            check_fetch_site(&headers).is_ok()
        };
        assert!(check(&[]) && check(&["same-origin"]) && check(&["none"]));
        for lines in [&["cross-site"][..], &["same-site"], &["", ""], &["none", "none"], &["x"]] {
            assert!(!check(lines), "{lines:?}");
        }
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
