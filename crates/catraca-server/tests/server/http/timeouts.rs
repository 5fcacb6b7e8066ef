//! Timeouts of slow clients: their connections are closed, and other clients are not delayed.
//!
//! The timeouts are short, and tests wait until the server closes a connection, not for a time.

use std::io::ErrorKind;
use std::time::Duration;

use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::TestServer;

const BIG: &str = r#"{"gate":"a","subject":{"ip":"198.51.100.7"}}"#;

fn start_server(setting: &str) -> TestServer {
    let policy = "[policy.a]\nby = ['ip']\nwindow = '10000 per 1s'\n";
    TestServer::with_catalog(&format!("{policy}[server]\n{setting}\n"))
}

#[test]
fn a_head_that_trickles_is_cut_off() {
    let server = start_server("head_timeout = '200ms'");
    let mut slow = server.connect();
    slow.send_bytes(b"GET /healthz HTTP/1.1\r\n");
    slow.set_read_timeout(Duration::from_millis(20));
    // The timeout is for the whole head: more lines do not extend it.
    let cut = (0..500).any(|number| {
        slow.try_send_bytes(format!("x-{number}: y\r\n").as_bytes()).is_err() || slow.is_closed()
    });
    assert!(cut);
    assert_eq!(server.request("GET /healthz", &[]).status, 200);
}

#[test]
fn who_says_nothing_is_cut_off_and_who_keeps_asking_is_not() {
    let server = start_server("head_timeout = '200ms'\nidle_timeout = '300ms'");
    let mut silent = server.connect();
    let mut busy = server.connect();
    let mut idle = server.connect();
    idle.send("GET /healthz", &[], b"");
    assert_eq!(idle.read_response().status, 200);
    silent.set_read_timeout(Duration::from_millis(10));
    idle.set_read_timeout(Duration::from_millis(10));
    let mut silent_is_cut = false;
    let mut idle_is_cut = false;
    for _ in 0..1_000 {
        busy.post("/v1/check", BIG);
        assert_eq!(busy.read_response().status, 200);
        silent_is_cut = silent_is_cut || silent.is_closed();
        idle_is_cut = idle_is_cut || idle.is_closed();
        if silent_is_cut && idle_is_cut {
            return;
        }
    }
    panic!("silent {silent_is_cut}, idle {idle_is_cut}");
}

#[test]
fn a_body_that_does_not_come_is_answered_408() {
    let server = start_server("body_timeout = '200ms'");
    for path in ["/v1/check", "/v1/settle"] {
        let mut slow = server.connect();
        slow.send_bytes(&head(&format!("POST {path}"), &[JSON], Some(50)));
        slow.send_bytes(b"{");
        let answer = slow.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (408, "body-timeout"));
        assert!(answer.body.contains("200ms"), "{}", answer.body);
        assert!(slow.is_closed());
    }
}

#[test]
fn who_never_reads_answers_is_cut_off() {
    let server = start_server("answer_timeout = '200ms'\nbody_timeout = '200ms'");
    let mut unread = server.connect();
    let list = format!("[{}]", vec![BIG; 100].join(","));
    let one = [head("POST /v1/check/batch", &[JSON], Some(list.len())), list.into()].concat();
    // Every response has some 30 KiB, more than the sockets' buffers can hold for so many requests.
    let cut = (0..100_000).find_map(|_| unread.try_send_bytes(&one).err());
    let cut = cut.map(|error| error.kind());
    assert!(matches!(cut, Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)), "{cut:?}");
    let mut other = RawConnection::open(&server.address);
    other.post("/v1/check", BIG);
    assert_eq!(other.read_response().status, 200);
}

/// A server, and a connection of the live feed that the test does not read from.
fn unread_feed(setting: &str) -> (TestServer, RawConnection) {
    let policy = "[policy.a]\nby = ['ip']\nwindow = '1 per 1h'\n";
    let server = TestServer::with_catalog(&format!("{policy}[server]\n{setting}\n"));
    let mut listener = server.connect();
    listener.send("GET /v1/events", &[], b"");
    listener.read_until(": listening");
    (server, listener)
}

/// Causes a hundred denials.
fn deny_a_hundred(connection: &mut RawConnection) {
    let list = format!("[{}]", vec![BIG; 100].join(","));
    connection.post("/v1/check/batch", &list);
    assert_eq!(connection.read_response().status, 200);
}

#[test]
fn a_listener_that_never_reads_is_cut_off() {
    let (server, mut listener) = unread_feed("answer_timeout = '200ms'");
    let mut connection = server.connect();
    // The server does not read from a connection of the live feed, so the client's writes block.
    let cut = (0..20_000).any(|_| {
        deny_a_hundred(&mut connection);
        listener.try_send_bytes(b" ").is_err()
    });
    assert!(cut);
    assert_eq!(server.request("GET /healthz", &[]).status, 200);
}

#[test]
fn a_listener_that_falls_behind_is_told_how_far_and_sent_away() {
    let (server, mut listener) = unread_feed("answer_timeout = '5m'");
    let mut connection = server.connect();
    // Some 10 MiB: more than the buffers of a connection that is not read.
    (0..700).for_each(|_| deny_a_hundred(&mut connection));
    let events = listener.read_until("event: missed");
    assert!(events.contains("event: denied"), "buffered events are delivered");
    let missed = listener.read_until("data: ");
    let missed = missed.split("\"missed\":").nth(1).and_then(|rest| rest.split('}').next());
    assert!(missed.unwrap().parse::<u64>().unwrap() > 0);
    listener.read_to_end();
}
