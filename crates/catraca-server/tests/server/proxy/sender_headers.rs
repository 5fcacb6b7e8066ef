//! Headers in which a client says who it is or what it asks for: each name, at each place of a
//! request, from a client and from a trusted proxy. What is counted must be what the upstream gets.

use std::sync::mpsc;

use catraca::{Check, CheckMode};

use super::helpers::{ProxyServer, TestUpstream, response};
use crate::raw_connection::RawConnection;

const FORGED: &str = "203.0.113.9";
const CLIENT: &str = "127.0.0.1";
const TRUSTED: &str = "127.0.0.2";

/// What becomes of a header that a trusted proxy sends. From a client, none of them arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FromProxy {
    /// It states the client's address.
    Counted,
    /// It is passed on as it is.
    Passed,
    /// It is written afresh from what the proxy knows, or removed.
    Dropped,
}

/// The name and a forged value.
const HEADERS: [(&str, &str, FromProxy); 50] = [
    ("X-Forwarded-For", FORGED, FromProxy::Counted),
    ("x-forwarded-for", FORGED, FromProxy::Counted),
    ("X_Forwarded_For", FORGED, FromProxy::Dropped),
    ("X-Forwarded_For", FORGED, FromProxy::Dropped),
    ("Forwarded", "for=203.0.113.9", FromProxy::Dropped),
    ("X-Real-IP", FORGED, FromProxy::Dropped),
    ("X_Real_IP", FORGED, FromProxy::Dropped),
    ("X-Forwarded-Host", "forged.example", FromProxy::Passed),
    ("X_Forwarded_Host", "forged.example", FromProxy::Dropped),
    ("X-Forwarded-Proto", "wss", FromProxy::Passed),
    ("X-Forwarded-Port", "61616", FromProxy::Dropped),
    ("X-Forwarded-Prefix", "/forged", FromProxy::Dropped),
    ("X-Forwarded-Uri", "/forged", FromProxy::Dropped),
    ("X-Forwarded-Method", "DELETE", FromProxy::Dropped),
    ("X-Forwarded-Server", "forged.example", FromProxy::Dropped),
    ("X-Forwarded-User", "root", FromProxy::Dropped),
    ("X-Client-IP", FORGED, FromProxy::Passed),
    ("X_Client_IP", FORGED, FromProxy::Dropped),
    ("True-Client-IP", FORGED, FromProxy::Passed),
    ("CF-Connecting-IP", FORGED, FromProxy::Passed),
    ("X-Cluster-Client-IP", FORGED, FromProxy::Passed),
    ("X-Envoy-External-Address", FORGED, FromProxy::Passed),
    ("CF-Connecting-IPv6", FORGED, FromProxy::Passed),
    ("Fly-Client-IP", FORGED, FromProxy::Passed),
    ("Fly_Client_IP", FORGED, FromProxy::Dropped),
    ("X-Forwarded", FORGED, FromProxy::Passed),
    ("Forwarded-For", FORGED, FromProxy::Passed),
    ("X-Original-Forwarded-For", FORGED, FromProxy::Passed),
    ("Proxy-Client-IP", FORGED, FromProxy::Passed),
    ("WL-Proxy-Client-IP", FORGED, FromProxy::Passed),
    ("X-Azure-ClientIP", FORGED, FromProxy::Passed),
    ("X-ProxyUser-Ip", FORGED, FromProxy::Passed),
    ("X-Real-Client-IP", FORGED, FromProxy::Passed),
    ("X-Appengine-User-IP", FORGED, FromProxy::Passed),
    ("X_Appengine_User_IP", FORGED, FromProxy::Dropped),
    ("X-Override-URL", "/forged", FromProxy::Dropped),
    ("X-Original-URL", "/forged", FromProxy::Dropped),
    ("X_Original_URL", "/forged", FromProxy::Dropped),
    ("X-Original-URI", "/forged", FromProxy::Dropped),
    ("X-Original-Method", "DELETE", FromProxy::Dropped),
    ("X-Rewrite-URL", "/forged", FromProxy::Dropped),
    ("X-HTTP-Method", "DELETE", FromProxy::Dropped),
    ("X-HTTP-Method-Override", "DELETE", FromProxy::Dropped),
    ("X_HTTP_Method_Override", "DELETE", FromProxy::Dropped),
    ("X-Method-Override", "DELETE", FromProxy::Dropped),
    ("Catraca-Ticket", "forged", FromProxy::Dropped),
    ("Proxy", "http://forged.example", FromProxy::Dropped),
    ("Proxy-Authorization", "Basic Zm9yZ2Vk", FromProxy::Dropped),
    ("HTTP2-Settings", "AAMAAABkAAQAAP__", FromProxy::Dropped),
    ("X_Customer", "forged", FromProxy::Dropped),
];

/// Where a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Last,
    /// On two lines, of which the second has the value.
    Twice,
    /// `Connection` names it, so that it belongs to this connection alone.
    NamedByConnection,
    /// After the body.
    Trailer,
}

const PLACES: [Place; 5] =
    [Place::First, Place::Last, Place::Twice, Place::NamedByConnection, Place::Trailer];

fn request(name: &str, value: &str, place: Place) -> String {
    let line = format!("{name}: {value}\r\n");
    let host = "Host: localhost\r\nX-Customer: ana\r\n";
    let headers = match place {
        Place::First => format!("{line}{host}"),
        Place::Last => format!("{host}{line}"),
        Place::Twice => format!("{line}{host}{line}"),
        Place::NamedByConnection => format!("{host}Connection: {name}\r\n{line}"),
        Place::Trailer => {
            return format!(
                "POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\nTrailer: {name}\r\n\r\n\
                 1\r\nx\r\n0\r\n{line}\r\n"
            );
        }
    };
    format!("POST / HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n")
}

fn remaining(server: &ProxyServer, ip: &str) -> i64 {
    let check = Check::new("site", [("ip", ip), ("customer", "ana")]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let decision = runtime.block_on(server.context.decide(&check, CheckMode::Peek));
    decision.unwrap().remaining.unwrap()
}

#[test]
fn what_is_counted_is_what_the_upstream_gets() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        let head = call.head.clone();
        let body = call.read_raw_body();
        seen.send(head + &body).unwrap();
        call.send(&response("200 OK", "", ""));
        true
    });
    let url = &upstream.url;
    let server = ProxyServer::start(&format!(
        "[policy.site]\nby = ['ip', 'customer']\nwindow = '10000 per 1h'\n\
         [[route]]\nmatch = '/**'\ngate = 'site'\nupstream = '{url}'\n\
         set = {{ customer = 'header:x-customer' }}\n\
         [network]\ntrusted_proxies = ['{TRUSTED}']\n"
    ));
    let mut count = 0;
    for (name, value, from_proxy) in HEADERS {
        for place in PLACES {
            for peer in [CLIENT, TRUSTED] {
                count += 1;
                let what = format!("{name} {place:?} from {peer}");
                let is_trusted = peer == TRUSTED;
                let is_read = is_trusted && place != Place::Trailer;
                let is_believed = is_read && from_proxy == FromProxy::Counted;
                let counted = if is_believed { FORGED } else { peer };
                let before = [FORGED, CLIENT, TRUSTED].map(|ip| remaining(&server, ip));
                let mut client = RawConnection::open_from(peer, &server.address);
                client.send_bytes(request(name, value, place).as_bytes());
                assert_eq!(client.read_response().status, 200, "{what}");
                for (ip, before) in [FORGED, CLIENT, TRUSTED].iter().zip(before) {
                    let charged = i64::from(*ip == counted);
                    assert_eq!(before - remaining(&server, ip), charged, "{what}: {ip}");
                }
                let arrived = calls.recv().unwrap();
                assert!(arrived.starts_with("POST / HTTP/1.1\r\n"), "{what}: {arrived}");
                let hops = match is_believed {
                    true => format!("{FORGED}, {TRUSTED}"),
                    false => peer.to_owned(),
                };
                assert_eq!(values(&arrived, "x-forwarded-for"), [hops], "{what}: {arrived}");
                assert_eq!(values(&arrived, "x-real-ip"), [counted], "{what}: {arrived}");
                assert_eq!(values(&arrived, "x-customer"), ["ana"], "{what}: {arrived}");
                let is_named = place == Place::NamedByConnection;
                // A proxy that states a host or a scheme twice is not believed.
                let is_ambiguous = place == Place::Twice && name.starts_with("X-Forwarded-");
                let is_passed = is_read && from_proxy == FromProxy::Passed && !is_named;
                let may_arrive = (is_passed && !is_ambiguous) || is_believed;
                assert_eq!(arrived.contains(value), may_arrive, "{what}: {arrived}");
            }
        }
    }
    assert!(count >= 200, "{count}");
}

/// The values of a header, under any of its spellings.
fn values(head: &str, name: &str) -> Vec<String> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let spelled = |own: &str| own.to_ascii_lowercase().replace('_', "-") == name;
    lines.filter(|(own, _)| spelled(own)).map(|(_, value)| value.trim().to_owned()).collect()
}

#[test]
fn a_header_that_connection_names_is_absent_for_the_check_too() {
    let upstream = TestUpstream::start(|call| {
        let customer = call.header("x-customer").unwrap_or_default();
        call.send(&response("200 OK", "", &customer));
        true
    });
    let url = &upstream.url;
    let server = ProxyServer::start(&format!(
        "[policy.known]\nby = ['customer']\nwindow = '1 per 1h'\n\
         [policy.unknown]\nby = ['ip']\nwindow = '1 per 1h'\n\
         [[route]]\nmatch = '/**'\nupstream = '{url}'\nset = {{ customer = 'header:x-customer' }}\n\
         gate = {{ by = 'customer', map = {{ ana = 'known' }}, absent = 'unknown' }}\n"
    ));
    let ana = ("X-Customer", "ana");
    let hidden = [ana, ("Connection", "X-Customer")];
    for (headers, status, body) in [
        (&hidden[..], 200, ""),
        (&hidden[..], 429, ""),
        (&[ana][..], 200, "ana"),
        (&[ana][..], 429, ""),
    ] {
        let mut client = server.connect();
        client.send("GET /", headers, b"");
        let answer = client.read_response();
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 200 {
            assert_eq!(answer.body, body);
        }
    }
}
