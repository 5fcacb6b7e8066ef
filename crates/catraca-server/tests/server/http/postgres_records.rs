//! The real binary with records in PostgreSQL: durability, an outage, and two nodes at once.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::admin::{CATALOG, expect_durable, expect_ok, payer, reason};
use crate::test_server::{TestServer, binary, catalog_file};
use catraca_testkit::postgres::{PASSWORD, PostgresServer, kill};

/// The catalog files of two nodes with one secret and one password file.
pub fn nodes(postgres: &PostgresServer) -> [PathBuf; 2] {
    [(); 2].map(|()| {
        let url = format!("postgres://catraca@127.0.0.1:{}/postgres", postgres.port);
        let records = format!("[records]\nurl = '{url}'\npassword_file = 'password'\n");
        let file = catalog_file(&format!("{CATALOG}{records}"));
        fs::write(file.with_file_name("password"), format!("{PASSWORD}\n")).unwrap();
        fs::write(file.with_file_name("catraca.secret"), "5e".repeat(32)).unwrap();
        file
    })
}

fn order(customer: &str) -> String {
    let subject = format!(r#"{{"customer":"{customer}"}}"#);
    format!(r#"{{"policy":"api","subject":{subject},"for":"1h","reason":"fraud"}}"#)
}

fn is_blocked(server: &TestServer, customer: &str) -> bool {
    reason(server, "api", &format!(r#"{{"customer":"{customer}"}}"#)) == "blocked"
}

/// covers: X-24, B-03
#[test]
fn acts_survive_kills_and_a_restart_of_the_database() {
    let postgres = PostgresServer::start();
    let [file, _] = nodes(&postgres);
    let server = TestServer::from_file(&file);
    assert!(server.greeting.contains("postgres://catraca"), "{}", server.greeting);
    assert!(!server.greeting.contains(PASSWORD), "{}", server.greeting);
    expect_durable(&server, "POST /v1/blocks", &order("before"));
    postgres.stop("QUIT");
    let begun = Instant::now();
    assert_eq!(expect_ok(&server, "POST /v1/blocks", &order("meanwhile"))["durable"], false);
    assert!(is_blocked(&server, "meanwhile") && reason(&server, "lookup", &payer()) == "ok");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    postgres.run();
    while expect_ok(&server, "POST /v1/blocks", &order("after"))["durable"] != true {}
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    for customer in ["before", "meanwhile", "after"] {
        assert!(is_blocked(&server, customer), "{customer}");
    }
    // A stop does not wait for an unavailable database.
    postgres.stop("INT");
    assert_eq!(expect_ok(&server, "POST /v1/blocks", &order("late"))["durable"], false);
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(!status.success() && stderr.contains("could not be written"), "{stderr}");
    assert!(!stderr.contains(PASSWORD), "{stderr}");
}

/// The process ids of a database server: its parent, and the backends of Catraca.
fn process_ids(postgres: &PostgresServer) -> Vec<String> {
    let file = fs::read_to_string(postgres.data().join("postmaster.pid")).unwrap();
    let parent = file.lines().next().unwrap().trim().to_owned();
    let backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'catraca'";
    let backends = postgres.psql("postgres", backends).into_iter().flatten();
    std::iter::once(parent).chain(backends).collect()
}

/// Regression: while the database hung, operators' reads queued and were cut off without an answer.
#[test]
fn reads_of_a_database_that_hangs_are_answered_with_503() {
    let postgres = PostgresServer::start();
    let [file, _] = nodes(&postgres);
    let server = TestServer::from_file(&file);
    expect_durable(&server, "POST /v1/blocks", &order("before"));
    let processes = process_ids(&postgres);
    assert!(processes.len() >= 3, "{processes:?}");
    processes.iter().for_each(|id| kill("STOP", id));
    let calls = [
        "GET /v1/blocks",
        "GET /v1/audit",
        "GET /v1/blocklist",
        "GET /v1/stats",
        "GET /v1/selftest",
    ];
    let answers: Vec<_> = thread::scope(|scope| {
        let ask = |call: &'static str| {
            let begun = Instant::now();
            let answer = server.request(call, &[]);
            (call, answer.status, answer.problem_code(), begun.elapsed())
        };
        let asking = calls.map(|call| scope.spawn(move || ask(call)));
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    // Decisions do not wait.
    let begun = Instant::now();
    assert!(is_blocked(&server, "before"));
    let decided = begun.elapsed();
    processes.iter().for_each(|id| kill("CONT", id));
    for (call, status, code, took) in &answers {
        println!("{call}: {status} {code} after {took:?}");
        assert_eq!((*status, code.as_str()), (503, "records-failed"), "{call}");
        // The wait for queued records and the deadline of the query, on a machine with other work.
        assert!(*took < Duration::from_secs(20), "{call}: {took:?}");
    }
    assert!(decided < Duration::from_secs(5), "{decided:?}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.request("GET /v1/blocks", &[]).status != 200 {
        assert!(Instant::now() < deadline, "reads work again");
    }
}

/// covers: X-24
#[test]
fn two_nodes_share_their_records_and_need_one_secret() {
    let postgres = PostgresServer::start();
    let [one, other] = nodes(&postgres);
    let first = TestServer::from_file(&one);
    let second = TestServer::from_file(&other);
    expect_durable(&first, "POST /v1/blocks", &order("of-the-first"));
    expect_durable(&second, "POST /v1/blocks", &order("of-the-second"));
    let seen = expect_ok(&first, "GET /v1/blocks", "")["blocks"].as_array().unwrap().len();
    assert_eq!(seen, 2);
    drop(first);
    let first = TestServer::from_file(&one);
    assert!(is_blocked(&first, "of-the-first") && is_blocked(&first, "of-the-second"));
    drop((first, second));
    let refused = |why: &str| {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
        let output = binary().args(serve).arg(&one).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && stderr.contains(why), "{stderr}");
    };
    let secret = one.with_file_name("catraca.secret");
    fs::write(&secret, "e5".repeat(32)).unwrap();
    refused("bring the old secret back");
    fs::remove_file(&secret).unwrap();
    refused("openssl rand -hex");
    fs::write(one.with_file_name("password"), "wrong").unwrap();
    fs::write(&secret, "5e".repeat(32)).unwrap();
    refused("password authentication failed");
}
