//! Timeouts of slow clients: their connections are closed, and other clients are not delayed.
//!
//! The timeouts are short, and tests wait until the server closes a connection, not for a time.

use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use catraca_testkit::fault_proxy::{Fault, FaultProxy};
use catraca_testkit::redis::RedisServer;

use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::{TestServer, catalog_file};

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
    let metrics = server.request("GET /metrics", &[]).body;
    let series = "catraca_connection_timeouts_total{phase=\"body\"} 2";
    assert!(metrics.lines().any(|line| line == series), "{metrics}");
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
    // Read before the flood: the first events of a flood may already be among the missed ones.
    deny_a_hundred(&mut connection);
    listener.read_until("event: denied");
    // Some 10 MiB: more than the buffers of a connection that is not read.
    (0..700).for_each(|_| deny_a_hundred(&mut connection));
    listener.read_until("event: missed");
    let missed = listener.read_until("data: ");
    let missed = missed.split("\"missed\":").nth(1).and_then(|rest| rest.split('}').next());
    assert!(missed.unwrap().parse::<u64>().unwrap() > 0);
    listener.read_to_end();
}

/// A server over a Redis whose replies are delayed by `delay` each.
fn slow_store(redis: &RedisServer, delay: Duration, setting: &str) -> (TestServer, FaultProxy) {
    let proxy = FaultProxy::start(([127, 0, 0, 1], redis.port()).into()).unwrap();
    let store = format!("[store]\nurl = 'redis://{}'\ndeadline = '9s'\n", proxy.address());
    let policy = "[policy.a]\nby = ['ip']\nwindow = '5 per 1h'\n";
    let file = catalog_file(&format!("{policy}{store}[server]\n{setting}\n"));
    // A node of a shared store never makes its own secret.
    fs::write(file.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    let server = TestServer::from_file(&file);
    assert_eq!(server.json("/v1/check", BIG).1["degraded"], false);
    proxy.set(Fault::Delay(delay));
    (server, proxy)
}

/// Regression: while a handler ran, `body_timeout` counted instead of `answer_timeout`, so a slow
/// call was applied and its connection closed without a response.
#[test]
fn the_time_of_a_body_does_not_count_while_a_handler_runs() {
    let Some(redis) = RedisServer::start() else { return };
    let delay = Duration::from_millis(500);
    let (server, _proxy) = slow_store(&redis, delay, "body_timeout = '50ms'");
    let (status, decision) = server.json("/v1/check", BIG);
    assert_eq!((status, &decision["remaining"]), (200, &3.into()), "{decision}");
}

#[test]
fn a_handler_that_exceeds_answer_timeout_is_answered_503() {
    let Some(redis) = RedisServer::start() else { return };
    let delay = Duration::from_secs(4);
    let (server, _proxy) = slow_store(&redis, delay, "answer_timeout = '200ms'");
    let answer = server.post("/v1/check", BIG);
    assert_eq!((answer.status, answer.problem_code().as_str()), (503, "answer-timeout"));
    assert!(answer.body.contains("it may have been applied"), "{}", answer.body);
}

/// Regression: the slots of listeners that had disconnected were free only after 30 seconds.
#[test]
fn the_slot_of_a_listener_that_disconnects_is_free_within_a_second() {
    // Bytes that the server does not read must not hide the end of the connection.
    for extra in [&b""[..], b"GET /healthz HTTP/1.1\r\n"] {
        let server = start_server("");
        let listen = |extra: &[u8]| {
            let mut listener = server.connect();
            listener.send_bytes(&[&head("GET /v1/events", &[], None), extra].concat());
            listener
        };
        let mut listeners: Vec<_> = (0..64).map(|_| listen(extra)).collect();
        for listener in &mut listeners {
            listener.read_until(": listening");
        }
        assert_eq!(listen(b"").read_response().problem_code(), "too-many-listeners");
        drop(listeners);
        let disconnected = Instant::now();
        while listen(b"").try_read_response().unwrap().status != 200 {
            assert!(disconnected.elapsed() < Duration::from_secs(5), "no slot is free");
        }
        println!("a slot was free {:?} after the disconnect", disconnected.elapsed());
        assert!(disconnected.elapsed() < Duration::from_secs(1), "{:?}", disconnected.elapsed());
    }
}
