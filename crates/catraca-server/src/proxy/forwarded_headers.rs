//! The headers of a request to an upstream, and of its response to the client.
//!
//! Headers of one connection are not passed on, also those that `Connection` names. What a client
//! says about its own address is not passed on either: the headers about it are written afresh from
//! what this server knows.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::core::address::Address;
use data_encoding::HEXLOWER;
use hyper::http::header::{self, Entry};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED_PREFIX: &str = "x-forwarded-";
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TICKET: HeaderName = HeaderName::from_static("catraca-ticket");
/// Headers that belong to one connection.
static HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HTTP2_SETTINGS,
];
/// The longest request id of a client that is passed on.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// What this server knows about the sender of a request.
pub struct Sender {
    /// The client.
    pub client: Address,
    /// The other end of the connection: the client, or a trusted proxy.
    pub peer: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub is_trusted_proxy: bool,
    /// How the peer sent the request: `http` or `https`.
    pub scheme: &'static str,
}

/// The values of the headers about the sender of a connection's last request. Most requests of a
/// connection have the same ones.
#[derive(Default)]
pub struct SenderCache(Mutex<Option<SenderValues>>);

struct SenderValues {
    client: Address,
    host: Option<HeaderValue>,
    scheme: HeaderValue,
    /// `X-Forwarded-For`.
    hops: Option<HeaderValue>,
    /// `X-Real-IP`.
    address: Option<HeaderValue>,
    forwarded: Option<HeaderValue>,
}

impl SenderValues {
    fn new(client: Address, peer: IpAddr, host: Option<HeaderValue>, scheme: HeaderValue) -> Self {
        let peer = Address::from_ip(peer);
        let address = client.to_string();
        let mut hops = address.clone();
        if peer != client {
            let _ = write!(hops, ", {peer}");
        }
        let forwarded = forwarded_value(client, peer, host.as_ref(), &scheme);
        Self {
            client,
            host,
            scheme,
            hops: HeaderValue::try_from(hops).ok(),
            address: HeaderValue::try_from(address).ok(),
            forwarded: HeaderValue::try_from(forwarded).ok(),
        }
    }

    fn is_of(&self, client: Address, host: Option<&HeaderValue>, scheme: &HeaderValue) -> bool {
        self.client == client && self.host.as_ref() == host && self.scheme == scheme
    }

    fn write(&self, headers: &mut HeaderMap) {
        let scheme = Some(&self.scheme);
        for (name, value) in [
            (X_FORWARDED_FOR, self.hops.as_ref()),
            (X_REAL_IP, self.address.as_ref()),
            (header::FORWARDED, self.forwarded.as_ref()),
            (X_FORWARDED_HOST, self.host.as_ref()),
            (X_FORWARDED_PROTO, scheme),
        ] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// Removes what belongs to one connection: the headers that `Connection` names, and the known ones.
/// `TE: trailers` stays, because gRPC needs it.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none, and then `Connection` names none either.
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    let takes_trailers = headers.get(header::TE).is_some_and(|value| value == "trailers");
    for name in named {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// Makes the length of a response one: if the upstream sent it in chunks, its `Content-Length` does
/// not count. To be called before `remove_hop_by_hop`.
pub fn remove_second_length(headers: &mut HeaderMap) {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
        return;
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let first = lengths.next();
    if let Some(length) = first.filter(|_| lengths.next().is_some()).cloned() {
        headers.insert(header::CONTENT_LENGTH, length);
    }
}

/// Removes the conditions, ranges and accepted encodings of a request whose rules read the body of
/// the response: the client's choice must not hide the body from the rules.
pub fn ask_for_whole_body(headers: &mut HeaderMap) {
    for name in [
        header::ACCEPT_ENCODING,
        header::RANGE,
        header::IF_RANGE,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
    ] {
        headers.remove(name);
    }
}

/// Joins lines of cookies, which HTTP/2 may split and HTTP/1.1 may not.
pub fn join_cookies(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(header::COOKIE).iter();
    if lines.next().is_none() || lines.next().is_none() {
        return;
    }
    let lines: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Asks for, or agrees to, a switch to another protocol.
pub fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

/// Replaces the headers about the sender of a request.
pub fn set_sender(headers: &mut HeaderMap, sender: &Sender, cache: &SenderCache) {
    let stated_host = sent_by_proxy(headers, sender, &X_FORWARDED_HOST, is_host);
    let stated_scheme = sent_by_proxy(headers, sender, &X_FORWARDED_PROTO, is_scheme);
    remove_sender(headers);
    let sent_host = headers.get(header::HOST).filter(|host| !host.is_empty());
    let host = stated_host.or_else(|| sent_host.cloned());
    let scheme = stated_scheme.unwrap_or(HeaderValue::from_static(sender.scheme));
    let mut cached = cache.0.lock();
    let values = match cached.take() {
        Some(values) if values.is_of(sender.client, host.as_ref(), &scheme) => values,
        _ => SenderValues::new(sender.client, sender.peer, host, scheme),
    };
    cached.insert(values).write(headers);
}

/// Removes all headers in which a client could state who it is.
fn remove_sender(headers: &mut HeaderMap) {
    let states_sender = |name: &HeaderName| {
        name.as_str().starts_with(FORWARDED_PREFIX)
            || *name == header::FORWARDED
            || *name == X_REAL_IP
            || *name == TICKET
    };
    let stated: Vec<HeaderName> =
        headers.keys().filter(|name| states_sender(name)).cloned().collect();
    for name in stated {
        headers.remove(name);
    }
}

/// The value of a header that a trusted proxy sent once.
fn sent_by_proxy(
    headers: &HeaderMap,
    sender: &Sender,
    name: &HeaderName,
    is_valid: fn(&str) -> bool,
) -> Option<HeaderValue> {
    let mut lines = headers.get_all(name).iter().filter(|_| sender.is_trusted_proxy);
    let value = lines.next().filter(|value| value.to_str().is_ok_and(is_valid));
    if lines.next().is_some() { None } else { value.cloned() }
}

fn is_scheme(text: &str) -> bool {
    matches!(text, "http" | "https" | "ws" | "wss")
}

fn is_host(text: &str) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_host_byte)
}

/// The value of `Forwarded` (RFC 7239).
fn forwarded_value(
    client: Address,
    peer: Address,
    host: Option<&HeaderValue>,
    scheme: &HeaderValue,
) -> String {
    let mut text = String::new();
    let _ = write!(text, "for={}", node(client));
    if let Some(host) = host.and_then(|host| host.to_str().ok()).filter(|host| is_host(host)) {
        let _ = write!(text, ";host=\"{host}\"");
    }
    let _ = write!(text, ";proto={}", scheme.to_str().unwrap_or("http"));
    if peer != client {
        let _ = write!(text, ", for={}", node(peer));
    }
    text
}

/// An address as `Forwarded` writes it.
fn node(address: Address) -> String {
    let text = address.to_string();
    if text.contains(':') { format!("\"[{text}]\"") } else { text }
}

/// The request id of a client if it is one readable line, else a new one.
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_single = headers.get_all(X_REQUEST_ID).iter().count() == 1;
    let is_readable = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    match headers.get(X_REQUEST_ID).filter(|value| is_single && is_readable(value)) {
        Some(value) => value.clone(),
        None => new_request_id(),
    }
}

/// Makes this the request id that the upstream gets.
pub fn set_request_id(headers: &mut HeaderMap, id: HeaderValue) {
    headers.insert(X_REQUEST_ID, id);
}

/// Adds the request id to a response that has none.
pub fn add_request_id(headers: &mut HeaderMap, id: HeaderValue) {
    if let Entry::Vacant(entry) = headers.entry(X_REQUEST_ID) {
        entry.insert(id);
    }
}

/// Unique, but not secret: a random number of this process and a counter.
fn new_request_id() -> HeaderValue {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or_default());
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut text = [0; 32];
    HEXLOWER.encode_mut(&PROCESS.to_be_bytes(), &mut text[..16]);
    HEXLOWER.encode_mut(&number.to_be_bytes(), &mut text[16..]);
    HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("0"))
}

#[cfg(test)]
#[path = "../../../../fuzz/checks/proxied_headers.rs"]
mod proxied_headers_check;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
        let mut lines = headers.get_all(name).iter();
        let value = lines.next().map_or("", |value| value.to_str().unwrap());
        assert!(lines.next().is_none(), "{name}");
        value
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on() {
        let mut headers = headers(&[
            ("connection", "close, X-Secret"),
            ("connection", "x-forwarded-for"),
            ("x-secret", "1"),
            ("x-forwarded-for", "1.2.3.4"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
            ("proxy-authorization", "Basic x"),
            ("accept", "*/*"),
        ]);
        remove_hop_by_hop(&mut headers);
        let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept", "te"]);
    }

    #[test]
    fn a_client_cannot_state_its_own_address() {
        let sent = [
            ("host", "shop.example"),
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-port", "1"),
            ("x-real-ip", "3.3.3.3"),
            ("forwarded", "for=4.4.4.4"),
            ("catraca-ticket", "5"),
        ];
        let sender = |client: &str, peer: &str, is_trusted_proxy| Sender {
            client: Address::from_ip(client.parse().unwrap()),
            peer: peer.parse().unwrap(),
            is_trusted_proxy,
            scheme: "https",
        };
        let mut direct = headers(&sent);
        let cache = SenderCache::default();
        set_sender(&mut direct, &sender("2001:db8::1", "2001:db8::1", false), &cache);
        assert_eq!(text(&direct, "x-forwarded-for"), "2001:db8::1");
        assert_eq!(text(&direct, "x-real-ip"), "2001:db8::1");
        assert_eq!(text(&direct, "x-forwarded-host"), "shop.example");
        assert_eq!(text(&direct, "x-forwarded-proto"), "https");
        let forwarded = "for=\"[2001:db8::1]\";host=\"shop.example\";proto=https";
        assert_eq!(text(&direct, "forwarded"), forwarded);
        assert_eq!(text(&direct, "x-forwarded-port"), "");
        assert_eq!(text(&direct, "catraca-ticket"), "");
        let mut proxied = headers(&[
            ("host", "internal"),
            ("x-forwarded-for", "9.9.9.9, 198.51.100.7"),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-proto", "http"),
        ]);
        let cache = SenderCache::default();
        set_sender(&mut proxied, &sender("198.51.100.7", "10.0.0.1", true), &cache);
        assert_eq!(text(&proxied, "x-forwarded-for"), "198.51.100.7, 10.0.0.1");
        let forwarded = "for=198.51.100.7;host=\"shop.example\";proto=http, for=10.0.0.1";
        assert_eq!(text(&proxied, "forwarded"), forwarded);
    }

    #[test]
    fn requests_of_a_connection_have_their_own_senders() {
        let cache = SenderCache::default();
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        for (client, host, scheme) in [
            ("198.51.100.7", "a.example", "http"),
            ("198.51.100.7", "a.example", "http"),
            ("198.51.100.8", "a.example", "http"),
            ("198.51.100.8", "b.example", "http"),
            ("198.51.100.8", "b.example", "https"),
            ("198.51.100.7", "a.example", "http"),
        ] {
            let sender = Sender {
                client: Address::from_ip(client.parse().unwrap()),
                peer,
                is_trusted_proxy: true,
                scheme,
            };
            let mut sent = headers(&[("host", host)]);
            set_sender(&mut sent, &sender, &cache);
            assert_eq!(text(&sent, "x-forwarded-for"), format!("{client}, {peer}"));
            assert_eq!(text(&sent, "x-real-ip"), client);
            assert_eq!(text(&sent, "x-forwarded-host"), host);
            assert_eq!(text(&sent, "x-forwarded-proto"), scheme);
            let forwarded = format!("for={client};host=\"{host}\";proto={scheme}, for={peer}");
            assert_eq!(text(&sent, "forwarded"), forwarded);
        }
    }

    #[test]
    fn several_lines_of_cookies_become_one() {
        let mut split = headers(&[("cookie", "a=1"), ("cookie", "b=2; c=3")]);
        join_cookies(&mut split);
        assert_eq!(text(&split, "cookie"), "a=1; b=2; c=3");
    }

    #[test]
    fn a_readable_request_id_stays_and_others_are_replaced() {
        assert_eq!(request_id(&headers(&[("x-request-id", "abc-1")])), "abc-1");
        for lines in
            [&[][..], &[("x-request-id", "a b")], &[("x-request-id", "a"), ("x-request-id", "b")]]
        {
            let mut sent = headers(lines);
            let id = request_id(&sent);
            set_request_id(&mut sent, id.clone());
            assert_eq!((id.len(), text(&sent, "x-request-id")), (32, id.to_str().unwrap()));
        }
    }

    /// Makes the headers those of a request to an upstream, as far as this module does.
    fn prepare(headers: &mut HeaderMap, is_trusted_proxy: bool) {
        let sender = Sender {
            client: Address::from_ip(proxied_headers_check::CLIENT.parse().unwrap()),
            peer: proxied_headers_check::PEER.parse().unwrap(),
            is_trusted_proxy,
            scheme: proxied_headers_check::SCHEME,
        };
        remove_hop_by_hop(headers);
        join_cookies(headers);
        set_sender(headers, &sender, &SenderCache::default());
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_proxied_headers() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/proxied_headers");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            proxied_headers_check::check(&input, prepare);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
