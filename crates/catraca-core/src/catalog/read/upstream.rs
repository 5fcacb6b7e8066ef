//! `upstream` of a route: the servers that the reverse proxy forwards to.
//!
//! A URL has a scheme, a host and perhaps a port. A path would have to be joined with that of the
//! request, and servers disagree about how, so it is an error.

use std::net::Ipv6Addr;

use super::bounds::UPSTREAMS_MAX;
use crate::located::{Node, Report};

/// HTTP/1.1, HTTP with TLS, and HTTP/2 without it.
pub(super) const SCHEMES: [&str; 3] = ["http", "https", "h2c"];

/// Reads one URL or a list of them.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<Vec<String>> {
    let texts = node.texts(report, "an address such as \"http://127.0.0.1:9000\"")?;
    if texts.is_empty() {
        let message = "no server is named";
        let fix = "name at least one, such as http://127.0.0.1:9000, or remove the field";
        report.error("bad-upstream", node.location, message, fix);
        return None;
    }
    if let Some((extra, _)) = texts.get(UPSTREAMS_MAX) {
        let message = format!("{} servers are too many", texts.len());
        let fix = format!("name at most {UPSTREAMS_MAX}");
        report.error("bad-upstream", extra.location, message, fix);
        return None;
    }
    let mut urls: Vec<String> = Vec::new();
    let mut is_valid = true;
    for (item, text) in texts {
        let url = url(text).and_then(|url| match urls.contains(&url) {
            true => Err("is named twice"),
            false => Ok(url),
        });
        match url {
            Ok(url) => urls.push(url),
            Err(why) => {
                let message = format!("`{}` {why}", text.escape_debug());
                report.error("bad-upstream", item.location, message, FIX);
                is_valid = false;
            }
        }
    }
    is_valid.then_some(urls)
}

/// The URL in lower case and without a slash at its end.
fn url(text: &str) -> Result<String, &'static str> {
    const NOT_HTTP: &str = "is not the address of an HTTP server";
    let (scheme, rest) = text.split_once("://").ok_or(NOT_HTTP)?;
    let scheme = scheme.to_ascii_lowercase();
    if !SCHEMES.contains(&&*scheme) {
        return Err(NOT_HTTP);
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        return Err("has a user name; an upstream has none");
    }
    if authority.contains(['/', '?', '#']) {
        return Err("has a path or a query; requests are forwarded with their own");
    }
    if !is_authority(authority) {
        return Err(NOT_HTTP);
    }
    Ok(format!("{scheme}://{}", authority.to_ascii_lowercase()))
}

/// Whether a text is a host with or without a port.
fn is_authority(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return address.parse::<Ipv6Addr>().is_ok() && is_port;
    }
    match text.split_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => is_host(text),
    }
}

fn is_host(host: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_letter)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

const FIX: &str =
    "write http://, https:// or h2c://, a host and a port, such as http://127.0.0.1:9000";

/// The longest name of a host in DNS.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_upstream_is_a_scheme_a_host_and_a_port() {
        for (text, normal) in [
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("HTTPS://API.Example.org/", "https://api.example.org"),
            ("H2C://127.0.0.1:50051", "h2c://127.0.0.1:50051"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("http://[::1]", "http://[::1]"),
            ("http://my_service:65535", "http://my_service:65535"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(normal));
        }
        for text in [
            "",
            "127.0.0.1:9000",
            "https://",
            "ftp://a",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:65536",
            "http://a:+80",
            "http://a:8 0",
            "http://a b",
            "http://a/x",
            "http://a?x",
            "http://a#x",
            "http://user@a",
            "http://[::1",
            "http://[a]:80",
            "http://::1:80",
            "http://é",
            "http://[::1]x",
            "http://a//",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic_and_a_valid_one_is_stable(text in "\\PC{0,40}") {
            for text in [text.clone(), format!("http://{text}")] {
                if let Ok(normal) = url(&text) {
                    prop_assert_eq!(url(&normal), Ok(normal));
                }
            }
        }
    }
}
