//! How a proxied request is settled, however it ends.

use std::sync::Mutex;
use std::sync::mpsc;

use super::helpers::{ProxyServer, TestUpstream, catalog, response, wait_until};

/// Each way in which a request can end has a price of its own.
const PRICES: &str = "bucket = { size = 1000, refill = '1 per 1h' }\nreserve = 1\n\
    cost = { '200' = 2, '404' = 20, '499' = 30, '502' = 40, '503' = 50, '504' = 60, none = 500, \
    default = 300 }";
const IN_FLIGHT: &str = "inflight = 2\nhold = '10m'";

/// Runs a gate that a test opens.
fn gate() -> (mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>) {
    let (open, wait) = mpsc::channel();
    (open, Mutex::new(wait))
}

#[test]
fn the_status_of_the_answer_decides_the_price() {
    let upstream = TestUpstream::start(|call| {
        let status = if call.line().contains("/known") { "200 OK" } else { "404 Not Found" };
        call.send(&response(status, "", "body"));
        true
    });
    let server = ProxyServer::start(&catalog(PRICES, &upstream));
    let mut client = server.connect();
    for (path, left) in [("/known", 998), ("/unknown", 978), ("/known", 976)] {
        client.send(&format!("GET {path}"), &[], b"");
        client.read_response();
        server.wait_for_remaining("site", left);
    }
}

#[test]
fn a_client_that_goes_away_settles_with_an_outcome_of_its_own() {
    let (began, beginnings) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        if call.line().contains("/head") {
            call.send("HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
        }
        began.send(()).unwrap();
        assert!(call.is_closed_by_peer(), "the request was not ended");
        false
    });
    let server = ProxyServer::start(&catalog(PRICES, &upstream));
    let mut client = server.connect();
    client.send("GET /silent", &[], b"");
    beginnings.recv().unwrap();
    drop(client);
    // 499: the answer had not begun.
    server.wait_for_remaining("site", 970);
    let mut client = server.connect();
    client.send("GET /head", &[], b"");
    client.read_until("a\r\n");
    drop(client);
    // The status of an answer that has begun counts: a client cannot hide it.
    server.wait_for_remaining("site", 950);
}

#[test]
fn failures_of_the_upstream_settle_with_the_status_that_the_client_gets() {
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/slow") {
            return !call.is_closed_by_peer();
        }
        if call.line().contains("/half") {
            call.send("HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nhalf");
        }
        false
    });
    let text = catalog(PRICES, &upstream) + "[proxy]\nfirst_byte_timeout = '100ms'\n";
    let server = ProxyServer::start(&text);
    for (path, status, left) in [("/dead", 502, 960), ("/slow", 504, 900)] {
        let mut client = server.connect();
        client.send(&format!("GET {path}"), &[], b"");
        assert_eq!(client.read_response().status, status);
        server.wait_for_remaining("site", left);
    }
    let mut client = server.connect();
    client.send("GET /half", &[], b"");
    // hyper may not have sent what had arrived, but the client sees that it is not all.
    assert!(client.try_read_response().is_err());
    server.wait_for_remaining("site", 880);
}

#[test]
fn how_a_response_ended_is_a_header_of_the_outcome() {
    let upstream = TestUpstream::start(|call| {
        call.send("HTTP/1.1 200 OK\r\ncatraca-ended: no\r\ncontent-length: 9\r\n\r\nhalf");
        false
    });
    let when = "headers[\"catraca-ended\"] == \"upstream-broken\"";
    let policy = &format!("window = '9 per 1m'\nban = [{{ when = '{when}', for = '1h' }}]");
    let server = ProxyServer::start(&catalog(policy, &upstream));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    assert!(client.try_read_response().is_err());
    wait_until("the rule has banned", || !server.peek("site").allowed);
}

/// A watch sees the statuses of proxied responses: the share of failures, not their number.
#[test]
fn a_watch_bans_by_the_share_of_failed_responses() {
    let upstream = TestUpstream::start(|call| {
        let status = if call.line().contains("/wrong") { "401 No" } else { "200 OK" };
        call.send(&response(status, "", ""));
        true
    });
    let watch = "window = '999 per 1h'\n\
        watch = { share = '401', of = ['200', '401'], above = '50%', min = 4, per = '1h', \
        ban = '1h' }";
    let server = ProxyServer::start(&catalog(watch, &upstream));
    let mut client = server.connect();
    let mut send = |path: &str| {
        client.send(&format!("GET {path}"), &[], b"");
        client.read_response().status
    };
    for path in ["/right", "/right", "/wrong", "/wrong"] {
        assert_ne!(send(path), 429, "{path}: half of the responses are no more than half");
    }
    // The settle of a response happens before the next request of its connection is read.
    assert_eq!(send("/wrong"), 401);
    wait_until("the watch has banned", || !server.peek("site").allowed);
    assert_eq!(send("/right"), 429);
}

#[test]
fn a_request_in_flight_is_counted_until_its_answer_ends() {
    let (open, wait) = gate();
    let upstream = TestUpstream::start(move |call| {
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na");
        wait.lock().unwrap().recv().unwrap();
        call.send("b");
        true
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    client.read_head();
    assert_eq!(server.remaining("site"), 1);
    let mut other = server.connect();
    other.send("GET /", &[], b"");
    other.read_head();
    let mut third = server.connect();
    third.send("GET /", &[], b"");
    assert_eq!(third.read_response().status, 429);
    open.send(()).unwrap();
    open.send(()).unwrap();
    server.wait_for_remaining("site", 2);
}

#[test]
fn leases_come_back_when_clients_and_upstreams_vanish() {
    let (began, beginnings) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        if !call.line().contains("/silent") {
            call.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        }
        began.send(()).unwrap();
        !call.line().contains("/broken") && !call.is_closed_by_peer()
    });
    let server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    for path in ["/silent", "/stalled", "/broken"] {
        let mut client = server.connect();
        client.send(&format!("GET {path}"), &[], b"");
        beginnings.recv().unwrap();
        drop(client);
        server.wait_for_remaining("site", 2);
    }
}

#[test]
fn a_stop_finishes_responses_in_progress_and_settles_the_rest() {
    let (open, wait) = gate();
    let upstream = TestUpstream::start(move |call| {
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na");
        wait.lock().unwrap().recv().unwrap();
        call.send("b");
        true
    });
    let mut server = ProxyServer::start(&catalog(IN_FLIGHT, &upstream));
    let mut finished = server.connect();
    finished.send("GET /", &[], b"");
    finished.read_head();
    let mut idle = server.connect();
    server.stop.notify_one();
    assert!(idle.is_closed(), "an idle connection ends at once");
    open.send(()).unwrap();
    assert_eq!(finished.read_to_end(), "ab");
    server.stop();
    assert_eq!(server.remaining("site"), 2);
}
