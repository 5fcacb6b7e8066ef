//! Locks and slots from the command line.

use crate::operate::helpers::{json, run, run_ok, start_server};

#[test]
fn a_slot_is_held_seen_confirmed_moved_and_given_back() {
    let server = start_server();
    let hold = |from: &str, to: &str| {
        let from = format!("2030-01-07T{from}:00Z");
        let to = format!("2030-01-07T{to}:00Z");
        run(&server, &["slots", "hold", "ana", "--from", &from, "--to", &to, "--ttl-ms", "60000"])
    };
    let held = hold("10:00", "10:30");
    let lease = held.out.lines().find_map(|line| line.strip_prefix("lease ")).unwrap().to_owned();
    hold("10:15", "10:45").assert_exit(1, &["`ana` is taken by another holder", "409"]);
    assert_eq!(hold("10:30", "11:00").code, Some(0));
    assert!(run_ok(&server, &["slots", "confirm", &lease]).starts_with("confirmed ana"));
    let range = ["--from", "2030-01-07T09:00:00Z", "--to", "2030-01-07T12:00:00Z"];
    let seen = run_ok(&server, &[&["slots", "list", "ana"][..], &range].concat());
    assert!(seen.contains("confirmed") && seen.contains("free from"), "{seen}");
    let there = ["--from", "2030-01-07T11:00:00Z", "--to", "2030-01-07T11:30:00Z"];
    assert!(run_ok(&server, &[&["slots", "move", &lease][..], &there].concat()).contains("11:00"));
    assert_eq!(run_ok(&server, &["slots", "cancel", &lease]).trim(), "released");
    assert_eq!(run(&server, &["slots", "cancel", &lease]).code, Some(1));
}

#[test]
fn leases_are_listed_counted_ended_and_cleared() {
    let server = start_server();
    assert_eq!(run_ok(&server, &["locks", "list"]).trim(), "There are no active leases.");
    let body = r#"{"tenant":"t1","kind":"payment","key":"order-7","owner_label":"worker 3"}"#;
    assert_eq!(server.post("/v1/locks/acquire", body).status, 200);
    let listed = run_ok(&server, &["locks", "list", "--tenant", "t1"]);
    assert!(listed.contains("order-7") && listed.contains("worker 3"), "{listed}");
    let fence = json(&server, &["locks", "list"])["locks"][0]["fence"].to_string();
    let why = ["--why", "its holder is gone", "--cool-down-ms", "0"];
    let ended = run_ok(&server, &[&["locks", "release", &fence][..], &why].concat());
    assert_eq!(ended.trim(), "ended order-7");
    run(&server, &[&["locks", "release", &fence][..], &why].concat())
        .assert_exit(1, &["unknown-lease"]);
    assert!(run_ok(&server, &["audit"]).contains("its holder is gone"));
    assert_eq!(server.post("/v1/locks/acquire", body).status, 200);
    assert_eq!(
        run_ok(&server, &["locks", "clear", "t1", "--why", "test"]).trim(),
        "ended 1 leases"
    );
    let stats = json(&server, &["locks", "stats"]);
    assert_eq!((&stats["success"], &stats["forced"]), (&2.into(), &2.into()), "{stats}");
    assert!(run_ok(&server, &["locks", "stats"]).contains("payment"));
}

#[test]
fn a_lock_is_acquired_renewed_and_released_by_its_id() {
    let server = start_server();
    let acquire = ["locks", "acquire", "payment", "order-7", "--ttl-ms", "30000", "--owner", "ana"];
    let granted = run_ok(&server, &acquire);
    let lease = granted.lines().find_map(|line| line.strip_prefix("lease ")).unwrap().to_owned();
    assert!(
        granted.starts_with("held order-7 until ") && granted.contains("\nfence "),
        "{granted}"
    );
    run(&server, &acquire).assert_exit(1, &["`order-7` is taken", "409"]);
    let renewed = run_ok(&server, &["locks", "renew", &lease, "--ttl-ms", "60000"]);
    assert!(renewed.starts_with("held until 2"), "{renewed}");
    assert_eq!(run_ok(&server, &["locks", "release", &lease]).trim(), "released");
    assert_eq!(run(&server, &["locks", "release", &lease]).code, Some(1));
    run(&server, &["locks", "release", "17"]).assert_exit(2, &["--why"]);
    run(&server, &["locks", "release", "abc"]).assert_exit(2, &["32 hexadecimal digits"]);
}
