//! The headers that an upstream gets: none of one connection, and none in which a client states who
//! it is.

use hyper::http::{HeaderMap, HeaderName, HeaderValue};

/// The client and the peer of every request.
pub const CLIENT: &str = "198.51.100.7";
pub const PEER: &str = "10.0.0.1";
/// The protocol between the peer and this server.
pub const SCHEME: &str = "https";
const HOPS: &str = "198.51.100.7, 10.0.0.1";
const OF_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];
/// The headers that are written for the upstream.
const WRITTEN: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// The input has headers in lines, `name: value`. `prepare` makes them those of the request to the
/// upstream; it is called with whether the peer is a trusted proxy.
pub fn check(data: &[u8], prepare: impl Fn(&mut HeaderMap, bool)) {
    for is_trusted in [false, true] {
        let sent = read(data);
        let mut headers = sent.clone();
        prepare(&mut headers, is_trusted);
        for name in OF_CONNECTION {
            assert!(!headers.contains_key(name), "{name}");
        }
        assert!(headers.get_all("te").iter().all(|value| value == "trailers"));
        for name in named_by_connection(&sent) {
            let is_known = WRITTEN.contains(&name.as_str()) || name == "te";
            assert!(is_known || !headers.contains_key(&name), "{name} is named by Connection");
        }
        assert!(headers.get_all("cookie").iter().count() <= 1);
        check_sender(&headers, is_trusted);
    }
}

fn read(data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all("connection").iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(','));
    names.map(|name| name.trim().to_ascii_lowercase()).collect()
}

/// What is written says who the client is, and nothing that the client chose can add to it.
fn check_sender(headers: &HeaderMap, is_trusted: bool) {
    for name in headers.keys().map(HeaderName::as_str) {
        let is_stated = name.starts_with("x-forwarded-") || name == "catraca-ticket";
        assert!(!is_stated || WRITTEN.contains(&name), "{name}");
    }
    let one = |name: &str| {
        let mut lines = headers.get_all(name).iter();
        let value = lines.next().map(|value| value.to_str().unwrap_or_default().to_owned());
        assert!(lines.next().is_none(), "two lines of {name}");
        value.unwrap_or_default()
    };
    assert_eq!(one("x-forwarded-for"), HOPS);
    assert_eq!(one("x-real-ip"), CLIENT);
    let scheme = one("x-forwarded-proto");
    let allowed: &[&str] = if is_trusted { &["http", "https", "ws", "wss"] } else { &[SCHEME] };
    assert!(allowed.contains(&scheme.as_str()), "{scheme}");
    one("x-forwarded-host");
    let forwarded = one("forwarded");
    let rest = forwarded.strip_prefix(&format!("for={CLIENT}")).expect("the client");
    let rest = rest.strip_suffix(&format!(";proto={scheme}, for={PEER}")).expect("the peer");
    let host = rest.strip_prefix(";host=\"").and_then(|host| host.strip_suffix('"'));
    let is_host = |host: &str| !host.is_empty() && !host.contains(['"', ';', ',', ' ', '\\']);
    assert!(rest.is_empty() || host.is_some_and(is_host), "{forwarded}");
}
