//! Shutdown: responses in flight are finished, and idle connections do not delay the end.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::{TestServer, catalog_file};

const CHECK: &str = r#"{"gate":"search","subject":{"user":"ana"}}"#;
/// Less than the server waits for a response in flight.
const SOON: Duration = Duration::from_secs(8);

/// A request in flight: the server has read its head and asked for the body with 100 Continue.
fn in_flight(server: &TestServer) -> RawConnection {
    let mut connection = server.connect();
    let headers = [JSON, ("Expect", "100-continue")];
    connection.send_bytes(&head("POST /v1/check", &headers, Some(CHECK.len())));
    assert_eq!(connection.read_response().status, 100);
    connection
}

/// Waits until the server does not accept connections any more.
fn wait_until_closed(address: &str) {
    let deadline = Instant::now() + SOON;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "the server still accepts connections");
    }
}

/// covers: 002-19
#[test]
fn an_answer_in_flight_is_finished_after_either_signal() {
    for signal in ["TERM", "INT"] {
        let server = TestServer::demo();
        let mut connection = in_flight(&server);
        server.signal(signal);
        wait_until_closed(&server.address);
        connection.send_bytes(CHECK.as_bytes());
        let answer = connection.read_response();
        assert_eq!((answer.status, &answer.json()["allowed"]), (200, &true.into()));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(connection.is_closed());
        let (status, stderr) = server.wait_for_exit();
        assert!(status.success(), "{status}");
        assert!(
            stderr.contains(
                "stopped: 1 responses, 0 with 4xx, 0 with 5xx, 0 connections refused; 50%"
            ),
            "{stderr}"
        );
    }
}

#[test]
fn connections_that_ask_nothing_do_not_keep_the_process() {
    let server = TestServer::demo();
    let silent = server.connect();
    let mut idle = server.connect();
    idle.send("GET /healthz", &[], b"");
    assert_eq!(idle.read_response().status, 200);
    let begun = Instant::now();
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop((silent, idle));
}

#[test]
fn a_second_signal_does_not_wait() {
    let server = TestServer::demo();
    let connection = in_flight(&server);
    let begun = Instant::now();
    server.signal("TERM");
    wait_until_closed(&server.address);
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success() && stderr.contains("stopped: 0 responses"), "{stderr}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    drop(connection);
}

/// Sends checks until the connection is closed; returns how many were answered. Every check sent
/// before `stopping` was set must be answered.
fn send_until_closed(mut connection: RawConnection, stopping: &AtomicBool) -> u64 {
    let mut answered = 0;
    loop {
        let sent = connection.try_send_bytes(&head("POST /v1/check", &[JSON], Some(CHECK.len())));
        let sent = sent.and_then(|()| connection.try_send_bytes(CHECK.as_bytes()));
        let before = !stopping.load(Ordering::SeqCst);
        match sent.and_then(|()| connection.try_read_response()) {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                answered += 1;
                if answer.header("connection") == Some("close") {
                    return answered;
                }
            }
            Err(error) => {
                assert!(!before, "sent before the stop and not answered: {error}");
                return answered;
            }
        }
    }
}

/// covers: 002-19
#[test]
fn every_request_sent_before_the_stop_is_answered_and_what_it_counted_is_kept() {
    let catalog = "[policy.search]\nby = ['user']\nfixed = '10000000 per 1d'\n\
                   [store]\nsnapshot_interval = '1h'\n";
    let file = catalog_file(catalog);
    let mut answered = 0;
    for round in 0..3 {
        let server = TestServer::from_file(&file);
        let stopping = AtomicBool::new(false);
        // Half of the idle connections have been used, the others have sent nothing.
        let mut idle: Vec<RawConnection> = (0..24).map(|_| server.connect()).collect();
        for connection in &mut idle[..12] {
            connection.post("/v1/check", CHECK);
            assert_eq!(connection.read_response().status, 200);
            answered += 1;
        }
        let busy: Vec<RawConnection> = (0..8).map(|_| server.connect()).collect();
        std::thread::scope(|scope| {
            let busy: Vec<_> = busy
                .into_iter()
                .map(|connection| scope.spawn(|| send_until_closed(connection, &stopping)))
                .collect();
            idle.iter_mut().for_each(|connection| connection.post("/v1/check", CHECK));
            stopping.store(true, Ordering::SeqCst);
            server.signal("TERM");
            for connection in &mut idle {
                assert_eq!(connection.read_response().status, 200, "round {round}");
                answered += 1;
            }
            answered += busy.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>();
        });
        let begun = Instant::now();
        let (status, stderr) = server.wait_for_exit();
        assert!(status.success() && begun.elapsed() < SOON, "{stderr}");
    }
    let server = TestServer::from_file(&file);
    let left = server.json("/v1/peek", CHECK).1["remaining"].as_u64().unwrap();
    assert_eq!(10_000_000 - left, answered);
}

#[test]
fn probes_hear_of_a_stop_while_callers_are_still_served() {
    let policy = "[policy.search]\nby = ['user']\nwindow = '100 per 1h'\n";
    let server = TestServer::with_catalog(&format!("{policy}[server]\nstop_delay = '1m'\n"));
    assert_eq!(server.request("GET /readyz", &[]).status, 200);
    server.signal("TERM");
    let deadline = Instant::now() + SOON;
    let mut ready = server.request("GET /readyz", &[]);
    while ready.status != 503 {
        assert!(Instant::now() < deadline, "{ready:?}");
        ready = server.request("GET /readyz", &[]);
    }
    assert_eq!(
        (&ready.json()["ready"], &ready.json()["problems"][0]["what"]),
        (&false.into(), &"stopping".into())
    );
    assert_eq!(server.json("/v1/check", CHECK).0, 200);
    assert!(server.request("GET /metrics", &[]).body.contains("catraca_draining 1\n"));
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success() && Instant::now() < deadline, "{stderr}");
}
