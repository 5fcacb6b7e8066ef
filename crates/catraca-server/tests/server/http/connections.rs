//! Limits on connections: of the whole server, and of one peer address.
//!
//! Peers are addresses of the loopback network: 127.0.0.2 is another peer than 127.0.0.3.

use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::TestServer;

const POLICY: &str = "[policy.a]\nby = ['ip']\nwindow = '10000 per 1s'\n";
const CHECK: &str = r#"{"gate":"a","subject":{"ip":"198.51.100.7"}}"#;
const ATTACKER: &str = "127.0.0.2";
const CALLER: &str = "127.0.0.3";

fn start_server(settings: &str) -> TestServer {
    TestServer::with_catalog(&format!("{POLICY}[server]\n{settings}\n"))
}

/// A connection of the live feed: busy until the test ends it.
fn busy_connection(server: &TestServer, source: &str) -> RawConnection {
    let mut connection = server.connect_from(source);
    connection.send("GET /v1/events", &[], b"");
    connection.read_until(": listening");
    connection
}

/// A connection whose request is incomplete: busy until its body arrives or the client closes it.
fn waiting_for_body(server: &TestServer, source: &str) -> RawConnection {
    let mut connection = server.connect_from(source);
    connection.send_bytes(&head("POST /v1/check", &[JSON, ("Expect", "100-continue")], Some(50)));
    connection.read_until("100 Continue");
    connection
}

/// A connection that has been answered and waits for the next request.
fn idle_connection(server: &TestServer, source: &str) -> RawConnection {
    let mut connection = server.connect_from(source);
    connection.send("GET /healthz", &[], b"");
    assert_eq!(connection.read_response().status, 200);
    connection
}

/// Whether a check on a new connection is answered.
fn is_served(server: &TestServer, source: &str) -> bool {
    let mut connection = server.connect_from(source);
    connection.post("/v1/check", CHECK);
    let answer = connection.read_response();
    if answer.status == 503 {
        assert_eq!(answer.problem_code(), "too-many-connections");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(connection.is_closed());
    }
    answer.status == 200
}

fn counter(server: &TestServer, source: &str, series: &str) -> u64 {
    // The previous connection may still be open, and then the server refuses this one.
    let metrics = loop {
        let mut connection = server.connect_from(source);
        connection.send("GET /metrics", &[], b"");
        let answer = connection.read_response();
        if answer.status == 200 {
            break answer.body;
        }
    };
    let line = metrics.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap_or_else(|| panic!("{series}: {metrics}")).trim().parse().unwrap()
}

#[test]
fn other_peers_are_served_beside_500_silent_connections_of_one() {
    for settings in [
        "connections_max = 400",
        "connections_max = 400\nconnections_per_address = 400",
        "connections_max = 1000\nconnections_per_address = 400",
    ] {
        let server = start_server(settings);
        let silent: Vec<RawConnection> = (0..500).map(|_| server.connect_from(ATTACKER)).collect();
        for _ in 0..50 {
            assert!(is_served(&server, CALLER), "{settings}");
        }
        assert!(is_served(&server, ATTACKER), "{settings}");
        let idle_closed = ["connections_max", "connections_per_address"].map(|limit| {
            counter(
                &server,
                CALLER,
                &format!("catraca_connections_idle_closed_total{{limit=\"{limit}\"}}"),
            )
        });
        assert!(idle_closed.iter().sum::<u64>() >= 100, "{settings}: {idle_closed:?}");
        drop(silent);
    }
}

#[test]
fn a_peer_whose_connections_are_all_at_work_leaves_half_of_them_to_others() {
    let server = start_server("connections_max = 8");
    let busy_connections: Vec<RawConnection> =
        (0..4).map(|_| busy_connection(&server, ATTACKER)).collect();
    for _ in 0..20 {
        assert!(!is_served(&server, ATTACKER));
        assert!(is_served(&server, CALLER));
    }
    // Each address gets half of what the others leave.
    let rest = [CALLER, CALLER, "127.0.0.4", "127.0.0.5"];
    let others = rest.map(|source| busy_connection(&server, source));
    assert!(!is_served(&server, "127.0.0.6"), "no connection is idle");
    drop((busy_connections, others));
}

#[test]
fn beyond_the_bound_connections_are_told_so_and_places_come_free() {
    let server = start_server("connections_max = 3\nconnections_per_address = 3");
    let busy_connections: Vec<RawConnection> =
        (0..2).map(|_| busy_connection(&server, CALLER)).collect();
    let leaving = waiting_for_body(&server, CALLER);
    assert!(!is_served(&server, CALLER));
    assert!(!is_served(&server, ATTACKER));
    drop(leaving);
    // The server notices the closed connection asynchronously; each try is a new connection.
    assert!((0..10_000).any(|_| is_served(&server, ATTACKER)));
    let shed = "catraca_connections_shed_total{limit=\"connections_per_address\"}";
    assert_eq!(counter(&server, ATTACKER, shed), 1);
    drop(busy_connections);
    server.signal("TERM");
    let (_, stderr) = server.wait_for_exit();
    let lines = |text: &str| stderr.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("connections_max is reached and no connection is idle"), 1, "{stderr}");
    assert_eq!(lines("its address has connections_per_address connections"), 1, "{stderr}");
}

#[test]
fn the_longest_idle_connection_of_the_largest_holder_gives_way() {
    // A connection is idle a moment after its response: on a busy machine the second one may be
    // idle first. Then the second one gives way, and the next attempt decides.
    assert!((0..5).any(|_| the_first_of_two_idle_connections_gives_way()));
}

fn the_first_of_two_idle_connections_gives_way() -> bool {
    let server = start_server("connections_max = 4\nconnections_per_address = 3");
    let mut lone = idle_connection(&server, "127.0.0.4");
    let mut first = idle_connection(&server, ATTACKER);
    let mut second = idle_connection(&server, ATTACKER);
    let at_work = busy_connection(&server, ATTACKER);
    let mut newcomer = idle_connection(&server, CALLER);
    let gave_way = first.is_closed();
    let kept = if gave_way { &mut second } else { &mut first };
    for connection in [&mut lone, kept, &mut newcomer] {
        connection.send("GET /healthz", &[], b"");
        assert_eq!(connection.read_response().status, 200);
    }
    at_work.half_close();
    gave_way
}

/// New connections arrive while requests are unread in the sockets of connections that look idle.
#[test]
fn a_request_that_was_sent_before_its_connection_is_closed_is_answered() {
    for _ in 0..5 {
        let server = start_server("connections_max = 64\nconnections_per_address = 64");
        let mut silent: Vec<RawConnection> = (0..64).map(|_| server.connect_from(CALLER)).collect();
        silent.iter_mut().for_each(|connection| connection.post("/v1/check", CHECK));
        let newcomers: Vec<RawConnection> =
            (0..64).map(|_| server.connect_from(ATTACKER)).collect();
        for connection in &mut silent {
            assert_eq!(connection.read_response().status, 200);
        }
        drop(newcomers);
    }
}

#[test]
fn trusted_proxies_have_no_cap_of_their_own() {
    let network = format!("[network]\ntrusted_proxies = ['{CALLER}/32']\n");
    let settings = "[server]\nconnections_max = 6\nconnections_per_address = 1\n";
    let server = TestServer::with_catalog(&format!("{POLICY}{network}{settings}"));
    let busy_connections: Vec<RawConnection> =
        (0..4).map(|_| busy_connection(&server, CALLER)).collect();
    assert!(is_served(&server, CALLER));
    let other = busy_connection(&server, ATTACKER);
    assert!(!is_served(&server, ATTACKER));
    assert!(is_served(&server, CALLER));
    drop((busy_connections, other));
}
