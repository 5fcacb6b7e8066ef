//! Limits on connections: the whole server's, and that of one peer address.
//!
//! Peers are addresses of the loopback network: 127.0.0.2 is another peer than 127.0.0.3.

use crate::served::Served;
use crate::talk::{JSON, Talk, head};

const POLICY: &str = "[policy.a]\nby = ['ip']\nwindow = '10000 per 1s'\n";
const CHECK: &str = r#"{"gate":"a","subject":{"ip":"198.51.100.7"}}"#;
const ATTACKER: &str = "127.0.0.2";
const CALLER: &str = "127.0.0.3";

fn served(settings: &str) -> Served {
    Served::with(&format!("{POLICY}[server]\n{settings}\n"))
}

/// A connection that is at work for as long as the test wants.
fn busy(served: &Served, source: &str) -> Talk {
    let mut talk = served.connect_from(source);
    talk.send("GET /v1/events", &[], b"");
    talk.until(": listening");
    talk
}

/// A connection that is at work until its body comes or the client is gone.
fn waiting_for_body(served: &Served, source: &str) -> Talk {
    let mut talk = served.connect_from(source);
    talk.raw(&head("POST /v1/check", &[JSON, ("Expect", "100-continue")], Some(50)));
    talk.until("100 Continue");
    talk
}

/// A connection that has been answered and waits for the next request.
fn idle(served: &Served, source: &str) -> Talk {
    let mut talk = served.connect_from(source);
    talk.send("GET /healthz", &[], b"");
    assert_eq!(talk.answer().status, 200);
    talk
}

/// Whether a check on a new connection is answered.
fn is_served(served: &Served, source: &str) -> bool {
    let mut talk = served.connect_from(source);
    talk.post("/v1/check", CHECK);
    let answer = talk.answer();
    if answer.status == 503 {
        assert_eq!(answer.problem(), "too-many-connections");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(talk.is_closed());
    }
    answer.status == 200
}

fn counted(served: &Served, source: &str, series: &str) -> u64 {
    // The connection before may not be over yet, and then there is no room.
    let metrics = loop {
        let mut talk = served.connect_from(source);
        talk.send("GET /metrics", &[], b"");
        let answer = talk.answer();
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
        let served = served(settings);
        let silent: Vec<Talk> = (0..500).map(|_| served.connect_from(ATTACKER)).collect();
        for _ in 0..50 {
            assert!(is_served(&served, CALLER), "{settings}");
        }
        assert!(is_served(&served, ATTACKER), "{settings}");
        let idle_closed = ["connections_max", "connections_per_address"].map(|limit| {
            counted(
                &served,
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
    let served = served("connections_max = 8");
    let held: Vec<Talk> = (0..4).map(|_| busy(&served, ATTACKER)).collect();
    for _ in 0..20 {
        assert!(!is_served(&served, ATTACKER));
        assert!(is_served(&served, CALLER));
    }
    let others: Vec<Talk> = (0..4).map(|_| busy(&served, CALLER)).collect();
    assert!(!is_served(&served, "127.0.0.4"), "no connection is idle");
    drop((held, others));
}

#[test]
fn beyond_the_bound_connections_are_told_so_and_places_come_free() {
    let served = served("connections_max = 3\nconnections_per_address = 3");
    let held: Vec<Talk> = (0..2).map(|_| busy(&served, CALLER)).collect();
    let leaving = waiting_for_body(&served, CALLER);
    assert!(!is_served(&served, CALLER));
    assert!(!is_served(&served, ATTACKER));
    drop(leaving);
    // The server learns of it in its own time; each try is a connection of its own.
    assert!((0..10_000).any(|_| is_served(&served, ATTACKER)));
    let shed = "catraca_connections_shed_total{limit=\"connections_per_address\"}";
    assert_eq!(counted(&served, ATTACKER, shed), 1);
    drop(held);
    served.signal("TERM");
    let (_, said) = served.ended();
    let lines = |text: &str| said.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("connections_max reached and no connection is idle"), 1, "{said}");
    assert_eq!(lines("its address has connections_per_address connections"), 1, "{said}");
}

#[test]
fn the_longest_idle_connection_of_the_largest_holder_gives_way() {
    let served = served("connections_max = 4\nconnections_per_address = 3");
    let mut lone = idle(&served, "127.0.0.4");
    let mut first = idle(&served, ATTACKER);
    let mut second = idle(&served, ATTACKER);
    let at_work = busy(&served, ATTACKER);
    let mut newcomer = idle(&served, CALLER);
    assert!(first.is_closed());
    for talk in [&mut lone, &mut second, &mut newcomer] {
        talk.send("GET /healthz", &[], b"");
        assert_eq!(talk.answer().status, 200);
    }
    at_work.half_close();
}

/// Newcomers come while requests wait in the sockets of connections that still look idle.
#[test]
fn a_request_that_was_sent_before_its_connection_is_closed_is_answered() {
    for _ in 0..5 {
        let served = served("connections_max = 64\nconnections_per_address = 64");
        let mut silent: Vec<Talk> = (0..64).map(|_| served.connect_from(CALLER)).collect();
        silent.iter_mut().for_each(|talk| talk.post("/v1/check", CHECK));
        let newcomers: Vec<Talk> = (0..64).map(|_| served.connect_from(ATTACKER)).collect();
        for talk in &mut silent {
            assert_eq!(talk.answer().status, 200);
        }
        drop(newcomers);
    }
}

#[test]
fn trusted_proxies_have_no_cap_of_their_own() {
    let network = format!("[network]\ntrusted_proxies = ['{CALLER}/32']\n");
    let settings = "[server]\nconnections_max = 6\nconnections_per_address = 1\n";
    let served = Served::with(&format!("{POLICY}{network}{settings}"));
    let held: Vec<Talk> = (0..4).map(|_| busy(&served, CALLER)).collect();
    assert!(is_served(&served, CALLER));
    let other = busy(&served, ATTACKER);
    assert!(!is_served(&served, ATTACKER));
    assert!(is_served(&served, CALLER));
    drop((held, other));
}
