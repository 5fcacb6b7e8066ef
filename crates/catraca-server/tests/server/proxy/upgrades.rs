//! Connections that switch to another protocol.

use std::sync::{Mutex, mpsc};

use super::helpers::{ProxyServer, TestUpstream, catalog, wait_until};

const IN_FLIGHT: &str = "inflight = 2\nhold = '10m'";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n";

fn upgrade_request() -> &'static [u8] {
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
      Sec-WebSocket-Key: x\r\n\r\n"
}

#[test]
fn bytes_pass_in_both_directions_after_a_101() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        let names = ["upgrade", "connection", "sec-websocket-key"];
        seen.send(names.map(|name| call.header(name).unwrap_or_default())).unwrap();
        // The first bytes of the new protocol are in the same packet.
        call.send(&format!("{SWITCH}hello\n"));
        while let Some(line) = call.try_read_line() {
            call.send(&format!("echo {line}"));
        }
        false
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut client = server.connect();
    client.send_bytes(upgrade_request());
    let head = client.read_head();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    let expected = ["websocket", "upgrade", "x"].map(str::to_owned);
    assert_eq!(calls.recv().unwrap(), expected);
    assert_eq!(client.read_until("\n"), "hello\n");
    for text in ["one\n", "two\n"] {
        client.send_bytes(text.as_bytes());
        assert_eq!(client.read_until("\n"), format!("echo {text}"));
    }
    assert_eq!(server.remaining("site"), 1);
    client.half_close();
    assert_eq!(client.read_to_end(), "");
    server.wait_for_remaining("site", 2);
}

#[test]
fn a_client_that_goes_away_ends_the_upstream_and_returns_the_lease() {
    let upstream = TestUpstream::start(|call| {
        call.send(SWITCH);
        assert!(call.is_closed_by_peer());
        false
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut client = server.connect();
    client.send_bytes(upgrade_request());
    client.read_head();
    assert_eq!(server.remaining("site"), 1);
    drop(client);
    server.wait_for_remaining("site", 2);
}

#[test]
fn an_upstream_that_does_not_switch_answers_as_usual() {
    let upstream = TestUpstream::start(|call| {
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        true
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut client = server.connect();
    for _ in 0..2 {
        client.send_bytes(upgrade_request());
        let answer = client.read_response();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }
    server.wait_for_remaining("site", 2);
}

#[test]
fn a_silent_tunnel_is_ended_after_idle_timeout() {
    let upstream = TestUpstream::start(|call| {
        call.send(SWITCH);
        !call.is_closed_by_peer()
    });
    let text = catalog(IN_FLIGHT, &upstream) + "[proxy]\nidle_timeout = '50ms'\n";
    let server = ProxyServer::start(&text);
    let mut client = server.connect();
    client.send_bytes(upgrade_request());
    client.read_head();
    assert!(client.is_closed());
    server.wait_for_remaining("site", 2);
}

#[test]
fn a_switch_to_another_version_of_http_is_not_forwarded() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        let names = ["upgrade", "connection", "http2-settings"];
        seen.send(names.map(|name| call.header(name).unwrap_or_default())).unwrap();
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        true
    });
    let server = ProxyServer::start(&catalog("window = '99 per 1m'", &upstream));
    let mut client = server.connect();
    for protocol in ["h2c", "H2C", "HTTP/2.0", "TLS/1.2", "websocket, h2c", "h2c, websocket"] {
        client.send_bytes(
            format!(
                "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                 Upgrade: {protocol}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
            )
            .as_bytes(),
        );
        assert_eq!(client.read_response().body, "ok", "{protocol}");
        assert_eq!(calls.recv().unwrap(), [""; 3].map(str::to_owned), "{protocol}");
    }
}

#[test]
fn an_upstream_must_switch_to_the_protocol_that_was_asked_for() {
    let upstream = TestUpstream::start(|call| {
        call.send(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: Upgrade\r\n\r\n",
        );
        !call.is_closed_by_peer()
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut client = server.connect();
    client.send_bytes(upgrade_request());
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-broken"));
    server.wait_for_remaining("site", 2);
}

#[test]
fn how_a_tunnel_ended_is_a_header_of_the_outcome() {
    let upstream = TestUpstream::start(|call| {
        call.send(SWITCH);
        call.try_read_line();
        call.reset();
        false
    });
    let when = "headers[\"catraca-ended\"] == \"upstream-broken\"";
    let policy = format!("window = '9 per 1m'\nban = [{{ when = '{when}', for = '1h' }}]");
    let server = ProxyServer::start(&catalog(&policy, &upstream));
    let mut client = server.connect();
    client.send_bytes(upgrade_request());
    client.read_head();
    client.send_bytes(b"go\n");
    client.read_to_end_lossy();
    wait_until("the rule has banned", || !server.peek("site").allowed);
}

/// A rule of the gate reads the body, so that the request goes on without its client.
#[test]
fn a_switch_after_its_client_has_gone_returns_the_lease() {
    let (began, beginnings) = mpsc::channel();
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        began.send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        call.send(SWITCH);
        !call.is_closed_by_peer()
    });
    let policy = format!("{IN_FLIGHT}\nban = [{{ when = 'body.x == 5', for = '1m' }}]");
    let server = ProxyServer::start(&catalog(&policy, &upstream));
    let connections = server.context.connections.count();
    for _ in 0..3 {
        let mut client = server.connect();
        client.send_bytes(upgrade_request());
        beginnings.recv().unwrap();
        drop(client);
        wait_until("the server sees it", || server.metric("catraca_proxy_abandoned_requests") == 1);
        open.send(()).unwrap();
        server.wait_for_remaining("site", 2);
    }
    wait_until("no connection is left", || server.context.connections.count() == connections);
}
