//! Bodies pass part by part, in both directions, in bounded memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use super::helpers::{ProxyServer, SOON, TestUpstream, catalog, response};
use crate::test_server::TestServer;

const LIMIT: &str = "window = '99 per 1m'";

#[test]
fn a_part_of_a_response_arrives_before_the_next_one_is_sent() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        call.send(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
             transfer-encoding: chunked\r\n\r\n",
        );
        for number in 0..3 {
            wait.lock().unwrap().recv().unwrap();
            call.send(&format!("9\r\ndata: {number}\n\n\r\n"));
        }
        call.send("0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    client.send("GET /events", &[], b"");
    let head = client.read_head();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    for number in 0..3 {
        open.send(()).unwrap();
        client.read_until(&format!("data: {number}"));
    }
    client.read_until("0\r\n");
}

#[test]
fn a_part_of_a_request_arrives_before_the_next_one_is_sent() {
    let (got, parts) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        loop {
            let part = call.read_part();
            let is_last = part.is_empty();
            got.send(part).unwrap();
            if is_last {
                break;
            }
        }
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    client.send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for part in ["first", "later"] {
        client.send_bytes(format!("5\r\n{part}\r\n").as_bytes());
        assert_eq!(parts.recv_timeout(SOON).unwrap(), part.as_bytes());
    }
    client.send_bytes(b"0\r\n\r\n");
    assert_eq!(client.read_response().status, 200);
}

#[test]
fn an_expectation_is_answered_when_the_upstream_takes_the_body() {
    let upstream = TestUpstream::start(|call| {
        assert_eq!(call.header("expect"), None);
        assert_eq!(call.read_body(), b"body");
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    client.send_bytes(head.as_bytes());
    assert_eq!(client.read_response().status, 100);
    client.send_bytes(b"body");
    assert_eq!(client.read_response().status, 200);
}

/// 64 MiB in each direction; `CATRACA_PROXY_MIB` sets another size.
#[test]
fn large_bodies_pass_in_bounded_memory() {
    let mib: usize = std::env::var("CATRACA_PROXY_MIB").map_or(64, |mib| mib.parse().unwrap());
    let upstream = TestUpstream::start(move |call| {
        let length: usize = call.header("content-length").unwrap().parse().unwrap();
        call.copy_body(length);
        call.send(&format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"));
        let block = vec![b'b'; 1 << 20];
        (0..length >> 20).for_each(|_| call.send_bytes(&block));
        true
    });
    let text = catalog(LIMIT, &upstream) + "[proxy]\nlisten = '127.0.0.1:0'\n";
    let server = TestServer::with_catalog(&text);
    let line = server.greeting.lines().find(|line| line.starts_with("It proxies")).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let length = mib << 20;
    let before = peak_kib(&server);
    write!(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").unwrap();
    let block = vec![b'a'; 1 << 20];
    (0..mib).for_each(|_| client.write_all(&block).unwrap());
    let mut rest = length;
    let mut buffer = vec![0; 1 << 20];
    while rest > 0 {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0, "the response broke off");
        rest = rest.saturating_sub(buffer[..count].iter().filter(|byte| **byte == b'b').count());
    }
    let grown = peak_kib(&server) - before;
    assert!(grown < 16 << 10, "the proxy took {grown} KiB for a body of {mib} MiB");
}

/// More than the buffers of four sockets can have.
const UNREAD_MAX: usize = 128 << 20;
const BLOCK: usize = 64 << 10;
/// A sender that cannot send for so long is stopped.
const STOPPED: Duration = Duration::from_secs(1);

/// Sends until the peer takes no more; returns the number of bytes, at most a block above the
/// bound.
fn bytes_until_stopped(mut try_send: impl FnMut(&[u8]) -> bool) -> usize {
    let block = vec![b'a'; BLOCK];
    let mut sent = 0;
    while sent <= UNREAD_MAX && try_send(&block) {
        sent += block.len();
    }
    sent
}

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    let (stopped, counts) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        if call.line().contains("/small") {
            call.send(&response("200 OK", "", "small"));
            return true;
        }
        call.set_write_timeout(STOPPED);
        call.send(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 2 * UNREAD_MAX));
        stopped.send(bytes_until_stopped(|block| call.try_send_bytes(block))).unwrap();
        false
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut unread = server.connect();
    unread.send("GET /large", &[], b"");
    let sent = counts.recv_timeout(SOON).unwrap();
    assert!(sent < UNREAD_MAX, "the proxy took {sent} bytes for a client that reads nothing");
    let mut other = server.connect();
    other.send("GET /small", &[], b"");
    assert_eq!(other.read_response().body, "small");
    assert!(unread.read_head().starts_with("HTTP/1.1 200"));
}

#[test]
fn an_upstream_that_does_not_read_stops_the_client() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        if call.line().contains("/small") {
            call.send(&response("200 OK", "", "small"));
            return true;
        }
        wait.lock().unwrap().recv().unwrap();
        false
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = TcpStream::connect(&server.address).unwrap();
    client.set_write_timeout(Some(STOPPED)).unwrap();
    let length = 2 * UNREAD_MAX;
    write!(client, "POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").unwrap();
    let sent = bytes_until_stopped(|block| client.write_all(block).is_ok());
    assert!(sent < UNREAD_MAX, "the proxy took {sent} bytes for an upstream that reads nothing");
    let mut other = server.connect();
    other.send("GET /small", &[], b"");
    assert_eq!(other.read_response().body, "small");
    open.send(()).unwrap();
}

/// The most memory that the server had at once.
fn peak_kib(server: &TestServer) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_chunked_body_of_a_get_arrives() {
    let upstream = TestUpstream::start(|call| {
        let body = String::from_utf8(call.read_body()).unwrap();
        call.send(&response("200 OK", "", &body));
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    for method in ["GET", "POST", "OPTIONS"] {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send_bytes(format!("{head}4\r\nbody\r\n0\r\n\r\n").as_bytes());
        assert_eq!(client.read_response().body, "body", "{method}");
    }
}

#[test]
fn the_length_of_an_answer_in_chunks_does_not_count() {
    let upstream = TestUpstream::start(|call| {
        call.send(
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
             6\r\nwhole\n\r\n0\r\n\r\n",
        );
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    for _ in 0..2 {
        client.send("GET /", &[], b"");
        let head = client.read_head();
        assert!(!head.contains("content-length"), "{head}");
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        assert_eq!(client.read_until("0\r\n"), "6\r\nwhole\n\r\n0\r\n");
        client.read_until("\r\n");
    }
}

/// A route whose cost is the length of the body: more than is charged must not pass.
#[test]
fn a_long_body_without_a_length_is_refused_if_its_length_counts() {
    let upstream = TestUpstream::start(|call| {
        let length = call.read_body().len().to_string();
        call.send(&response("200 OK", "", &length));
        true
    });
    let url = &upstream.url;
    let server = ProxyServer::start(&format!(
        "[policy.site]\nby = ['ip']\nbucket = {{ size = 1000000, refill = '1 per 1h' }}\n\
         [[route]]\nmatch = '/**'\ngate = 'site'\nupstream = '{url}'\n\
         cost = {{ bytes_per_unit = 1 }}\n[proxy]\nbody_bytes_max = 1000\n"
    ));
    let chunked = |length: usize| {
        let body = "x".repeat(length);
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             {length:x}\r\n{body}\r\n0\r\n\r\n"
        )
    };
    let mut client = server.connect();
    client.send_bytes(chunked(1_000).as_bytes());
    assert_eq!(client.read_response().body, "1000");
    client.send("POST /", &[], &[b'x'; 5_000]);
    assert_eq!(client.read_response().body, "5000");
    assert_eq!(server.remaining("site"), 994_000);
    let mut client = server.connect();
    client.send_bytes(chunked(5_000).as_bytes());
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (413, "request-body-too-large"));
    assert_eq!(server.remaining("site"), 994_000);
}
