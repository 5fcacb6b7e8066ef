//! Requests that last longer than `hold`: a settle that comes later is not applied, so a slow
//! client must not be able to delay it.

use std::sync::{Mutex, mpsc};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::http::Request;
use tokio::runtime::Runtime;

use super::h2_helpers::TlsProxy;
use super::helpers::{ProxyServer, TIMEOUT_SERIES, TestUpstream, catalog, response, wait_until};

/// Nine tenths of it are long enough for a busy machine to settle in the last one.
const HOLD: &str = "hold = '5s'";
const PRICES: &str = "bucket = { size = 1000, refill = '1 per 1h' }\nreserve = 1\n\
    cost = { '404' = 20, '408' = 30, '504' = 60, default = 300 }";
const IN_FLIGHT: &str = "inflight = 2";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n";
const UPGRADE: &[u8] =
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n1\r\na\r\n";

fn with_hold(policy: &str, upstream: &TestUpstream) -> ProxyServer {
    ProxyServer::start(&catalog(&format!("{policy}\n{HOLD}"), upstream))
}

/// A channel whose receiver many threads may use.
fn gate() -> (mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>) {
    let (open, wait) = mpsc::channel();
    (open, Mutex::new(wait))
}

fn no_settle_failed(server: &ProxyServer) {
    assert_eq!(server.metric("catraca_proxy_settle_failures_total"), 0);
}

#[test]
fn a_slow_upload_ends_before_its_check_expires() {
    let upstream = TestUpstream::start(|call| {
        call.read_body();
        call.send(&response("404 Not Found", "", ""));
        !call.is_broken
    });
    let server = with_hold(PRICES, &upstream);
    let mut client = server.connect();
    client.send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (408, "body-timeout"));
    server.wait_for_remaining("site", 970);
    no_settle_failed(&server);
}

#[test]
fn a_slow_upstream_is_not_waited_for_until_the_check_expires() {
    let upstream = TestUpstream::start(|call| !call.is_closed_by_peer());
    let server = with_hold(PRICES, &upstream);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (504, "upstream-timeout"));
    server.wait_for_remaining("site", 940);
    no_settle_failed(&server);
}

/// The metrics must not blame an upstream for the time that a client took.
#[test]
fn an_upload_that_leaves_no_time_is_no_failure_of_the_upstream() {
    let (began, beginnings) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        began.send(()).unwrap();
        call.read_body();
        !call.is_closed_by_peer()
    });
    let server = with_hold(PRICES, &upstream);
    let mut client = server.connect();
    client.send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf");
    beginnings.recv().unwrap();
    client.send_bytes(b"half");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (504, "upstream-timeout"));
    server.wait_for_remaining("site", 940);
    no_failure_was_counted(&server);
}

#[test]
fn a_held_response_that_lasts_too_long_is_no_failure_of_the_upstream() {
    let upstream = TestUpstream::start(|call| {
        call.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n");
        call.send("content-length: 20\r\n\r\n{");
        !call.is_closed_by_peer()
    });
    let ban = "ban = [{ when = 'body.reject_id == 5', for = '1h', status = 400 }]";
    let server = with_hold(&format!("{IN_FLIGHT}\n{ban}"), &upstream);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (504, "upstream-timeout"));
    server.wait_for_remaining("site", 2);
    no_failure_was_counted(&server);
}

fn no_failure_was_counted(server: &ProxyServer) {
    for series in TIMEOUT_SERIES {
        assert_eq!(server.metric(series), 0, "{series}");
    }
    no_settle_failed(server);
}

/// hyper polls no body whose client has no room for it.
#[test]
fn a_client_that_does_not_read_pays_and_is_banned() {
    let body = "x".repeat(1 << 20);
    let upstream = TestUpstream::start(move |call| {
        call.send(&response("404 Not Found", "", &body));
        true
    });
    let policy = format!("{PRICES}\n{HOLD}\nban = [{{ when = 'status == 404', for = '1h' }}]");
    let proxy = TlsProxy::start(&catalog(&policy, &upstream));
    Runtime::new().unwrap().block_on(async {
        let mut client = proxy.client::<Empty<Bytes>>(10).await;
        let request = Request::get("https://localhost/").body(Empty::new()).unwrap();
        let unread = client.send_request(request).await.unwrap();
        assert_eq!(unread.status(), 404);
        let server = &proxy.server;
        tokio::task::block_in_place(|| {
            wait_until("the rule has banned", || !server.peek("site").allowed);
            assert_eq!(server.context.proxy_metrics.settle_failures(), 0);
        });
        drop(unread);
    });
}

#[test]
fn a_stream_goes_on_after_its_check_is_settled() {
    let (open, wait) = gate();
    let upstream = TestUpstream::start(move |call| {
        call.send(&format!("HTTP/1.1 404 Not Found\r\n{CHUNKED}"));
        wait.lock().unwrap().recv().unwrap();
        call.send("1\r\nb\r\n0\r\n\r\n");
        true
    });
    let server = with_hold(PRICES, &upstream);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    client.read_until("a\r\n");
    assert_eq!(server.remaining("site"), 999);
    server.wait_for_remaining("site", 980);
    open.send(()).unwrap();
    client.read_until("b\r\n");
    assert_eq!(server.remaining("site"), 980);
    no_settle_failed(&server);
}

/// Without its lease, a response in progress would not be counted.
#[test]
fn a_stream_that_a_lease_counts_ends_with_its_lease() {
    let (closed, ends) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        call.send(&format!("HTTP/1.1 200 OK\r\n{CHUNKED}"));
        closed.send(call.is_closed_by_peer()).unwrap();
        false
    });
    let server = with_hold(IN_FLIGHT, &upstream);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    client.read_until("a\r\n");
    assert_eq!(server.remaining("site"), 1);
    assert_eq!(client.read_to_end_lossy(), "", "the response is not complete");
    assert!(ends.recv().unwrap());
    server.wait_for_remaining("site", 2);
    no_settle_failed(&server);
}

#[test]
fn a_tunnel_that_a_lease_counts_ends_with_its_lease() {
    let (closed, ends) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        call.send(SWITCH);
        while let Some(line) = call.try_read_line() {
            call.send(&line);
        }
        closed.send(()).unwrap();
        false
    });
    let when = "headers[\"catraca-ended\"] == \"hold-over\"";
    let policy = format!("{IN_FLIGHT}\nban = [{{ when = '{when}', for = '1h' }}]");
    let server = with_hold(&policy, &upstream);
    let mut client = server.connect();
    client.send_bytes(UPGRADE);
    client.read_head();
    client.send_bytes(b"one\n");
    assert_eq!(client.read_until("\n"), "one\n");
    assert_eq!(server.remaining("site"), 1);
    assert!(client.is_closed());
    ends.recv().unwrap();
    wait_until("the outcome says why", || !server.peek("site").allowed);
    no_settle_failed(&server);
}

#[test]
fn a_tunnel_without_a_lease_goes_on_after_its_check_is_settled() {
    let upstream = TestUpstream::start(|call| {
        call.send(SWITCH);
        while let Some(line) = call.try_read_line() {
            call.send(&line);
        }
        false
    });
    let policy = "window = '9 per 1m'\nban = [{ when = 'status == 101', for = '1h' }]";
    let server = with_hold(policy, &upstream);
    let mut client = server.connect();
    client.send_bytes(UPGRADE);
    client.read_head();
    wait_until("the rule has banned", || !server.peek("site").allowed);
    client.send_bytes(b"one\n");
    assert_eq!(client.read_until("\n"), "one\n");
    no_settle_failed(&server);
}
