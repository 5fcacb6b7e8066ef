//! Limits on heads, bodies and pipelined requests: what exceeds them is refused, the rest is
//! answered.

use std::net::TcpStream;

use crate::raw_connection::{JSON, head};
use crate::test_server::TestServer;

const CHECK: &str = r#"{"gate":"search","subject":{"user":"ana"}}"#;

#[test]
fn a_body_beyond_the_bound_is_413_before_it_is_sent() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    connection.send_bytes(&head("POST /v1/check", &[JSON], Some(1 << 30)));
    let answer = connection.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (413, "body-too-large"));
    assert!(connection.is_closed(), "the rest of the body would be read as a request");
}

/// Regression: the connection was closed while the client sent, so its system dropped the 413.
#[test]
fn a_client_that_sends_its_whole_body_reads_the_413() {
    let server = TestServer::demo();
    let size = 6 << 20;
    let mut connection = server.connect();
    connection.send_bytes(&head("POST /v1/check", &[JSON], Some(size)));
    connection.send_bytes(&vec![b' '; size]);
    let answer = connection.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (413, "body-too-large"));
}

#[test]
fn a_body_without_a_length_is_cut_at_the_bound() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    let mut request = head("POST /v1/check", &[JSON, ("Transfer-Encoding", "chunked")], None);
    request.extend(format!("{:x}\r\n", 64 << 10).into_bytes());
    connection.send_bytes(&request);
    let chunk = vec![b' '; 64 << 10];
    for _ in 0..17 {
        if connection.try_send_bytes(&chunk).is_err()
            || connection.try_send_bytes(b"\r\n10000\r\n").is_err()
        {
            break;
        }
    }
    let answer = connection.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (413, "body-too-large"));
}

#[test]
fn a_body_in_pieces_is_put_together() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    connection.send_bytes(&head("POST /v1/check", &[JSON, ("Transfer-Encoding", "chunked")], None));
    for piece in CHECK.as_bytes().chunks(7) {
        connection.send_bytes(format!("{:x}\r\n", piece.len()).as_bytes());
        connection.send_bytes(piece);
        connection.send_bytes(b"\r\n");
    }
    connection.send_bytes(b"0\r\n\r\n");
    assert_eq!(connection.read_response().json()["allowed"], true);
    let large = format!("{}{CHECK}", " ".repeat((1 << 20) - CHECK.len()));
    assert_eq!(server.json("/v1/check", &large).1["allowed"], true);
}

#[test]
fn a_head_beyond_the_bound_is_431_and_the_others_are_still_served() {
    let server = TestServer::demo();
    let long = "x".repeat(20 << 10);
    let many: Vec<(String, &str)> = (0..120).map(|n| (format!("x-{n}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    for headers in [&[("X-Long", long.as_str())][..], &many] {
        let mut connection = server.connect();
        // The server may close the connection before it has read all of the head.
        let _ = connection.try_send_bytes(&head("GET /healthz", headers, None));
        let answer = connection.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (431, "head-too-large"));
    }
    assert_eq!(server.request("GET /healthz", &[]).status, 200);
}

#[test]
fn what_is_no_http_is_400() {
    let server = TestServer::demo();
    for noise in ["\u{16}\u{3}\u{1}\r\n\r\n", "GET\r\n\r\n", "PING\r\n*1\r\n$4\r\nPING\r\n\r\n"] {
        let mut connection = server.connect();
        connection.send_bytes(noise.as_bytes());
        let answer = connection.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "bad-head"), "{noise:?}");
        assert!(connection.is_closed());
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    let check = [head("POST /v1/check", &[JSON], Some(CHECK.len())), CHECK.into()].concat();
    let other = head("GET /healthz", &[], None);
    let all: Vec<u8> = (0..40).flat_map(|_| [&check[..], &other].concat()).collect();
    connection.send_bytes(&all);
    for left in (60..100).rev() {
        let decision = connection.read_response().json();
        let remaining = decision["remaining"].as_i64().unwrap();
        // Ten units per second are refilled, so a slow machine may see some more.
        assert!((left..100).contains(&remaining), "{remaining}");
        assert_eq!(connection.read_response().body, "ok\n");
    }
}

#[test]
fn who_has_said_all_is_still_answered() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    connection.post("/v1/check", CHECK);
    connection.half_close();
    assert_eq!(connection.read_response().json()["allowed"], true);
    assert!(connection.is_closed());
    let mut cut = server.connect();
    cut.send_bytes(&head("POST /v1/check", &[JSON], Some(100)));
    cut.send_bytes(b"{");
    cut.half_close();
    // The body is incomplete: the request is refused or the connection closed, and nothing is
    // decided.
    if let Ok(answer) = cut.try_read_response() {
        assert_eq!(answer.status, 400, "{answer:?}");
    }
}

#[test]
fn a_thousand_idle_connections_do_not_matter() {
    let server = TestServer::demo();
    let idle: Vec<TcpStream> =
        (0..1_000).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let mut connection = server.connect();
    for _ in 0..20 {
        connection.post("/v1/check", CHECK);
        assert_eq!(connection.read_response().status, 200);
    }
    drop(idle);
}

/// Regression: the response did not say that the connection closes, so a client could send its next
/// request into a closed connection.
#[test]
fn a_response_after_which_the_connection_closes_says_so() {
    let server = TestServer::with_catalog("[server]\nbody_timeout = '200ms'\n");
    let unread = head("POST /v1/check", &[JSON], Some(50));
    let not_json = head("POST /v1/check", &[("Content-Type", "text/plain")], Some(50));
    let unknown = head("POST /v1/nothing", &[JSON], Some(50));
    let large = head("POST /v1/check", &[JSON], Some(1 << 30));
    let without_body = head("GET /healthz", &[], Some(50));
    for (request, status) in
        [(unread, 408), (not_json, 415), (unknown, 404), (large, 413), (without_body, 200)]
    {
        let mut connection = server.connect();
        connection.send_bytes(&request);
        let answer = connection.read_response();
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert!(connection.is_closed());
    }
    // A body that has arrived is discarded, and the connection stays open.
    let mut connection = server.connect();
    for _ in 0..3 {
        connection.post("/v1/nothing", "{}");
        let answer = connection.read_response();
        assert_eq!((answer.status, answer.header("connection")), (404, None), "{answer:?}");
    }
}
