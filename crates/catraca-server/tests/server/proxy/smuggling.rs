//! Requests that two servers could read in two ways are refused, and the connection is closed.

use std::sync::mpsc;

use super::helpers::{ProxyServer, TestUpstream, catalog};

/// Requests that must get a 400 and never reach an upstream, with `|` for the end of a line.
const REFUSED: &[(&str, &str)] = &[
    ("CL and TE", "POST / HTTP/1.1|Host: a|Content-Length: 4|Transfer-Encoding: chunked||0||"),
    ("TE and CL", "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Content-Length: 4||0||"),
    ("equal lengths", "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 1||x"),
    ("two lengths", "POST / HTTP/1.1|Host: a|Content-Length: 1|Content-Length: 2||x"),
    ("a list of lengths", "POST / HTTP/1.1|Host: a|Content-Length: 1, 1||x"),
    ("a signed length", "POST / HTTP/1.1|Host: a|Content-Length: +1||x"),
    ("an unknown coding", "POST / HTTP/1.1|Host: a|Transfer-Encoding: xchunked||0||"),
    ("not chunked at last", "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked, identity||0||"),
    ("TE in HTTP/1.0", "POST / HTTP/1.0|Host: a|Transfer-Encoding: chunked||0||"),
    ("a folded header", "GET / HTTP/1.1|Host: a|X: b| c||"),
    ("a space before the colon", "POST / HTTP/1.1|Host: a|Content-Length : 1||x"),
    ("a null byte", "GET / HTTP/1.1|Host: a|X: \0||"),
    ("no host", "GET / HTTP/1.1||"),
    ("two hosts", "GET / HTTP/1.1|Host: a|Host: b||"),
    ("another host in the target", "GET http://b/ HTTP/1.1|Host: a||"),
    ("a host with a path", "GET / HTTP/1.1|Host: a/b||"),
    ("an invalid chunk size", "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked||xyz|"),
    ("a chunk that is too long", "POST / HTTP/1.1|Host: a|Transfer-Encoding: chunked||1|ab|0||"),
];

#[test]
fn ambiguous_requests_are_refused_and_the_connection_is_closed() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        call.read_body();
        if !call.is_broken {
            seen.send(call.line().to_owned()).unwrap();
        }
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog("window = '999 per 1m'", &upstream));
    for (name, request) in REFUSED {
        // Also after another request, whose head and body are in the same packet.
        for prefix in ["", "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n"] {
            let mut client = server.connect();
            let request = request.replace('|', "\r\n");
            client.send_bytes(format!("{prefix}{request}").as_bytes());
            if !prefix.is_empty() {
                assert_eq!(client.read_response().status, 200, "{name}");
            }
            let answer = client.read_response();
            assert_eq!(answer.status, 400, "{name}: {answer:?}");
            // hyper itself answers broken chunks, and what follows another request in the same
            // packet, without a body.
            if answer.header("content-length") != Some("0") {
                answer.problem_code();
            }
            assert!(client.is_closed(), "{name}");
        }
    }
    let mut client = server.connect();
    client.send_bytes(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    assert_eq!(client.read_response().status, 405);
    assert!(calls.try_iter().all(|line| line.starts_with("GET /plain ")));
}

#[test]
fn an_absolute_target_is_forwarded_as_a_path() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send((call.line().to_owned(), call.header("host").unwrap())).unwrap();
        call.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        true
    });
    let server = ProxyServer::start(&catalog("window = '9 per 1m'", &upstream));
    for rest in ["HTTP/1.1\r\nHost: A:8080\r\n\r\n", "HTTP/1.0\r\n\r\n"] {
        let mut client = server.connect();
        client.send_bytes(format!("GET http://a:8080/x?y {rest}").as_bytes());
        assert_eq!(client.read_response().status, 200, "{rest}");
        let expected = ("GET /x?y HTTP/1.1".to_owned(), "a:8080".to_owned());
        assert_eq!(calls.recv().unwrap(), expected);
    }
}
