//! Upstreams that do not answer, and routes with several of them.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::helpers::{
    ProxyServer, SOON, TIMEOUT_SERIES, TestUpstream, catalog, response, wait_until,
};
use crate::http::tls::certificate;
use crate::test_server::catalog_file;

const LIMIT: &str = "window = '99 per 1m'";
/// More than a test that asks again and again can use.
const NO_LIMIT: &str = "bucket = { size = 1000000, refill = '1000000 per 1s' }";

/// A URL on which nothing listens.
fn closed_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn each_failure_has_a_status_and_a_code() {
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/slow") {
            return !call.is_closed_by_peer();
        }
        if call.line().contains("/other") {
            call.send("SSH-2.0-OpenSSH_9\r\n\r\n");
        }
        if call.line().contains("/101") {
            call.send(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            );
        }
        false
    });
    let text = catalog(LIMIT, &upstream) + "[proxy]\nfirst_byte_timeout = '100ms'\n";
    let server = ProxyServer::start(&text);
    for (path, status, code) in [
        ("/closed", 502, "upstream-broken"),
        ("/other", 502, "upstream-broken"),
        ("/101", 502, "upstream-broken"),
        ("/slow", 504, "upstream-timeout"),
    ] {
        let mut client = server.connect();
        client.send(&format!("GET {path}"), &[], b"");
        let answer = client.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (status, code), "{path}");
    }
    for series in TIMEOUT_SERIES {
        assert_eq!(server.metric(series), 1, "{series}");
    }
    let unreachable = TestUpstream::unreachable(closed_url());
    let server = ProxyServer::start(&catalog(LIMIT, &unreachable));
    let mut client = server.connect();
    client.send("POST /", &[], b"body");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-unreachable"));
}

/// The connection is made, and the handshake of TLS is never answered.
#[test]
fn an_upstream_that_accepts_and_stays_silent_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = TestUpstream::unreachable(format!("https://localhost:{port}"));
    let file = catalog_file("");
    certificate(file.parent().unwrap(), "7");
    // Without the timeout of the connection, the request would wait for longer than the test.
    let settings = "[proxy]\nca_file = 'cert.pem'\nconnect_timeout = '100ms'\n\
                    first_byte_timeout = '1h'\n";
    std::fs::write(&file, catalog(LIMIT, &silent) + settings).unwrap();
    let server = ProxyServer::start_file(&file);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (502, "upstream-unreachable"));
    let series = "catraca_proxy_upstream_failures_total{cause=\"unreachable\"}";
    assert_eq!(server.metric(series), 1);
    drop(listener);
}

#[test]
fn a_client_that_stops_sending_gets_a_408() {
    let upstream = TestUpstream::start(|call| {
        call.read_body();
        false
    });
    let text = catalog(LIMIT, &upstream) + "[proxy]\nfirst_byte_timeout = '100ms'\n";
    let server = ProxyServer::start(&text);
    let mut client = server.connect();
    client.send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (408, "body-timeout"));
    assert!(client.is_closed());
}

#[test]
fn a_silent_stream_is_ended_after_idle_timeout() {
    let upstream = TestUpstream::start(|call| {
        call.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
        !call.is_closed_by_peer()
    });
    let text = catalog(LIMIT, &upstream) + "[proxy]\nidle_timeout = '100ms'\n";
    let server = ProxyServer::start(&text);
    let mut client = server.connect();
    let started = Instant::now();
    client.send("GET /", &[], b"");
    let text = client.read_to_end();
    assert!(text.ends_with("1\r\na\r\n"), "{text}");
    assert!(started.elapsed().as_millis() >= 100);
}

#[test]
fn a_connection_that_the_upstream_closed_is_not_used_again() {
    let upstream = TestUpstream::start(|call| {
        call.send(&response("200 OK", "", "ok"));
        false
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    for _ in 0..20 {
        client.send("GET /", &[], b"");
        assert_eq!(client.read_response().status, 200);
    }
}

/// An upstream that answers with its name.
fn named(name: &'static str) -> TestUpstream {
    TestUpstream::start(move |call| {
        call.read_body();
        call.send(&response("200 OK", "", name));
        true
    })
}

/// A server whose route has these upstreams.
fn server_with(urls: &[&str]) -> ProxyServer {
    server_with_settings(urls, "down_time = '1h'\n")
}

/// The same with settings of `[proxy]`.
fn server_with_settings(urls: &[&str], settings: &str) -> ProxyServer {
    let list = urls.iter().map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", ");
    ProxyServer::start(&format!(
        "[policy.site]\nby = ['ip']\n{NO_LIMIT}\n[[route]]\nmatch = '/**'\ngate = 'site'\n\
         upstream = [{list}]\n[proxy]\n{settings}"
    ))
}

#[test]
fn several_upstreams_take_turns() {
    let first = named("first");
    let second = named("second");
    let server = server_with(&[&first.url, &second.url]);
    let mut client = server.connect();
    let answers: Vec<String> = (0..4)
        .map(|_| {
            client.send("GET /", &[], b"");
            client.read_response().body
        })
        .collect();
    assert_eq!(answers, ["first", "second", "first", "second"]);
}

#[test]
fn a_request_that_was_not_sent_goes_to_the_next_upstream() {
    let dead = closed_url();
    let alive = named("alive");
    let server = server_with(&[&dead, &alive.url]);
    let mut client = server.connect();
    for _ in 0..4 {
        client.send("POST /", &[], b"body");
        assert_eq!(client.read_response().body, "alive");
    }
}

#[test]
fn requests_wait_for_the_only_connection_and_then_use_it() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (began, beginnings) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        began.send(call.line().to_owned()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        call.send(&response("200 OK", "", "ok"));
        true
    });
    let more = "[proxy]\nconnections_max = 1\nconnect_timeout = '30s'\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream) + more));
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("GET /{number}"), &[], b"");
    }
    // All are checked, so all but one wait, or are about to.
    server.wait_for_remaining("site", 95);
    let mut served: Vec<String> = Vec::new();
    for _ in &clients {
        served.push(beginnings.recv().unwrap());
        open.send(()).unwrap();
    }
    served.sort();
    let expected: Vec<_> = (0..4).map(|number| format!("GET /{number} HTTP/1.1")).collect();
    assert_eq!(served, expected);
    for client in &mut clients {
        assert_eq!(client.read_response().status, 200);
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_request_that_waits_too_long_for_a_connection_gets_a_503() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        wait.lock().unwrap().recv().unwrap();
        call.send(&response("200 OK", "", "ok"));
        true
    });
    let more = "[proxy]\nconnections_max = 1\nconnect_timeout = '50ms'\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream) + more));
    let mut first = server.connect();
    first.send("GET /", &[], b"");
    wait_until("the upstream has a connection", || upstream.connections() == 1);
    let mut second = server.connect();
    second.send("GET /", &[], b"");
    let busy = second.read_response();
    assert_eq!((busy.status, busy.problem_code().as_str()), (503, "upstream-busy"));
    assert_eq!(busy.header("retry-after"), Some("1"));
    open.send(()).unwrap();
    assert_eq!(first.read_response().status, 200);
    open.send(()).unwrap();
    second.send("GET /", &[], b"");
    assert_eq!(second.read_response().status, 200);
    let series = "catraca_proxy_upstream_failures_total{cause=\"busy\"}";
    assert_eq!(server.metric(series), 1);
}

#[test]
fn a_client_that_sends_too_slowly_gets_a_408() {
    let upstream = TestUpstream::start(|call| {
        call.read_body();
        false
    });
    let more = "[proxy]\nfirst_byte_timeout = '1s'\nupload_rate_min = 1000\n";
    let server = ProxyServer::start(&(catalog(LIMIT, &upstream) + more));
    let mut client = server.connect();
    client.send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.set_read_timeout(Duration::from_millis(100));
    // Every part starts `first_byte_timeout` again, and still the request ends.
    let started = Instant::now();
    let answer = loop {
        assert!(started.elapsed() < SOON, "the request has not ended");
        let _ = client.try_send_bytes(b"1\r\nx\r\n");
        if let Ok(answer) = client.try_read_response() {
            break answer;
        }
    };
    assert_eq!((answer.status, answer.problem_code().as_str()), (408, "body-timeout"));
}

/// Sends so many requests to a route with two upstreams, and counts the statuses of the failures.
fn failures(server: &ProxyServer, requests: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..requests {
        let mut client = server.connect();
        client.send("POST /", &[], b"body");
        let answer = client.read_response();
        match answer.status {
            200 => assert_eq!(answer.body, "alive"),
            status => statuses.push(status),
        }
    }
    statuses
}

#[test]
fn an_upstream_that_breaks_five_connections_gets_no_requests_for_a_while() {
    let broken = TestUpstream::start(|call| {
        call.read_body();
        false
    });
    let alive = named("alive");
    let server = server_with(&[&broken.url, &alive.url]);
    assert_eq!(failures(&server, 30), [502; 5]);
    assert_eq!(broken.connections(), 5);
}

#[test]
fn an_upstream_that_does_not_answer_in_time_gets_no_requests_for_a_while() {
    let silent = TestUpstream::start(|call| {
        call.read_body();
        !call.is_closed_by_peer()
    });
    let alive = named("alive");
    let urls = [&*silent.url, &*alive.url];
    let server = server_with_settings(&urls, "down_time = '1h'\nfirst_byte_timeout = '2s'\n");
    assert_eq!(failures(&server, 10), [504]);
    assert_eq!(silent.connections(), 1);
}

#[test]
fn an_upstream_that_failed_is_tried_again_after_down_time() {
    let works = Arc::new(AtomicBool::new(false));
    let is_working = Arc::clone(&works);
    let returning = TestUpstream::start(move |call| {
        call.read_body();
        let works = is_working.load(Ordering::SeqCst);
        if works {
            call.send(&response("200 OK", "", "back"));
        }
        works
    });
    let alive = named("alive");
    let urls = [&*returning.url, &*alive.url];
    let server = server_with_settings(&urls, "down_time = '100ms'\n");
    // At least the five after which it is marked.
    let mut failed = 0;
    wait_until("it has failed five times", || {
        failed += failures(&server, 2).len();
        failed >= 5
    });
    works.store(true, Ordering::SeqCst);
    wait_until("it gets requests again", || {
        let mut client = server.connect();
        client.send("POST /", &[], b"body");
        client.read_response().body == "back"
    });
}
