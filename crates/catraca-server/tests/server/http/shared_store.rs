//! Two nodes of the real binary over a shared Redis or PostgreSQL that is killed.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use crate::http::admin::{expect_durable, expect_ok};
use crate::test_server::{TestServer, binary, catalog_file};
use catraca_testkit::postgres::{PASSWORD, PostgresServer};

const POLICIES: &str = r#"
[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "5m"
[policy.strict]
by     = ["ip"]
window = "3 per 1m"
on_failure = "closed"
[policy.browse]
by     = ["ip"]
window = "3 per 1m"
on_failure = "open"
[gate.pay]
policies = ["strict"]
[gate.all]
policies = ["browse", "login", "strict"]
"#;

/// The documented delay after which a change at one node applies at every other node.
const SOON: Duration = Duration::from_secs(1);

/// The catalog file of a node over these URLs, beside the secret of all nodes.
fn node(store: &str, records: &str) -> PathBuf {
    let text =
        format!("{POLICIES}\n[store]\nurl = {store:?}\nnodes = 3\n[records]\nurl = {records:?}\n");
    let path = catalog_file(&text);
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    path
}

fn check(server: &TestServer, gate: &str, ip: &str) -> serde_json::Value {
    let body = format!(r#"{{"gate":"{gate}","subject":{{"ip":"{ip}"}}}}"#);
    let (status, decision) = server.json("/v1/check", &body);
    assert_eq!(status, 200, "{decision}");
    decision
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON * 2, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{what}: {:?}", begun.elapsed());
}

#[test]
fn two_nodes_count_as_one_and_hear_each_others_operators() {
    let Some(redis) = RedisServer::start() else { return };
    let postgres = PostgresServer::start();
    let records = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let here = TestServer::from_file(&node(&redis.url(), &records));
    let there = TestServer::from_file(&node(&redis.url(), &records));
    assert!(here.greeting.contains("for 3 nodes"), "{}", here.greeting);
    let allowed = |server: &TestServer| check(server, "login", "192.0.2.1")["allowed"] == true;
    let seen = [&here, &there, &here, &there, &here].map(allowed);
    assert_eq!(seen, [true, true, true, false, false]);
    let entry = r#"{"range":"198.51.100.0/24","reason":"scanners"}"#;
    expect_durable(&here, "POST /v1/blocklist", entry);
    wait_until("a list", || check(&there, "login", "198.51.100.7")["reason"] == "blocklisted");
    expect_durable(&there, "PUT /v1/policies/login/mode", r#"{"mode":"off"}"#);
    wait_until("the kill switch", || allowed(&here));
}

/// For operators whose only server is PostgreSQL.
#[test]
fn two_nodes_need_nothing_but_a_database() {
    let postgres = PostgresServer::start();
    let url = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let here = TestServer::from_file(&node(&url, &url));
    let there = TestServer::from_file(&node(&url, &url));
    assert!(!here.greeting.contains(PASSWORD), "{}", here.greeting);
    let allowed = |server: &TestServer| check(server, "login", "192.0.2.1")["allowed"] == true;
    let seen = [&here, &there, &here, &there, &here].map(allowed);
    assert_eq!(seen, [true, true, true, false, false]);
    postgres.stop("QUIT");
    let decision = check(&there, "login", "192.0.2.2");
    assert_eq!((&decision["degraded"], &decision["limit"]), (&true.into(), &1.into()));
    assert_eq!(check(&here, "login", "192.0.2.1")["reason"], "blocked", "the block is cached here");
    postgres.run();
    wait_until("the database is back", || check(&there, "login", "192.0.2.3")["degraded"] == false);
    assert_eq!(
        check(&there, "login", "192.0.2.1")["reason"],
        "blocked",
        "the block is in the store"
    );
}

/// Asserts that every policy follows its own `on_failure`, for every kind of call.
fn each_policy_fails_its_own_way(server: &TestServer) {
    let decide = |gate: &str, ip: &str| {
        let decision = check(server, gate, ip);
        assert_eq!(decision["degraded"], true, "{decision}");
        decision["reason"].as_str().unwrap().to_owned()
    };
    let four = |gate: &str, ip: &str| [0; 4].map(|_| decide(gate, ip)).join(" ");
    assert_eq!(four("browse", "192.0.2.71"), "ok ok ok ok", "open");
    assert_eq!(
        four("login", "192.0.2.72"),
        "ok over_limit blocked blocked",
        "a third of the limit"
    );
    assert_eq!(four("strict", "192.0.2.73"), ["unavailable"; 4].join(" "), "closed");
    let rows = check(server, "all", "192.0.2.74")["policies"].clone();
    let rows = rows.as_array().unwrap().iter().map(|row| row["reason"].as_str().unwrap());
    assert_eq!(rows.collect::<Vec<_>>(), ["ok", "ok", "unavailable"], "every policy on its own");
    let ip = [("x-forwarded-for", "192.0.2.75")];
    let authorized = |gate| server.request(&format!("GET /v1/gates/{gate}/authorize"), &ip);
    for (gate, status) in [("browse", 200), ("login", 200), ("strict", 503)] {
        let answer = authorized(gate);
        assert_eq!((answer.status, answer.header("catraca-degraded")), (status, Some("?1")));
    }
}

fn degraded_decisions(server: &TestServer) -> u64 {
    let metrics = server.request("GET /metrics", &[]).body;
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("catraca_degraded_decisions_total "));
    line.unwrap().parse().unwrap()
}

/// covers: 002-34, 004-86, B-40
#[test]
fn without_its_store_every_policy_does_as_it_says_and_header_and_metric_tell() {
    let Some(mut redis) = RedisServer::start() else { return };
    let server = TestServer::from_file(&node(&redis.url(), "sqlite:catraca.db"));
    let ip = [("x-forwarded-for", "192.0.2.70")];
    let well = server.request("GET /v1/gates/browse/authorize", &ip);
    assert_eq!((well.status, well.header("catraca-degraded")), (200, None));
    assert_eq!(degraded_decisions(&server), 0);
    redis.kill();
    each_policy_fails_its_own_way(&server);
    assert_eq!(degraded_decisions(&server), 16, "every decision counts");
}

/// covers: B-55
#[test]
fn without_its_database_every_policy_does_as_it_says() {
    let postgres = PostgresServer::start();
    let url = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let server = TestServer::from_file(&node(&url, &url));
    assert_eq!(check(&server, "browse", "192.0.2.70")["degraded"], false);
    postgres.stop("QUIT");
    each_policy_fails_its_own_way(&server);
}

#[test]
fn a_store_that_dies_is_told_of_and_decided_without() {
    let Some(mut redis) = RedisServer::start() else { return };
    let server = TestServer::from_file(&node(&redis.url(), "sqlite:catraca.db"));
    let block = r#"{"policy":"login","subject":{"ip":"192.0.2.9"},"for":"1h"}"#;
    assert_eq!(server.post("/v1/blocks", block).status, 200);
    redis.kill();
    let decision = check(&server, "login", "192.0.2.1");
    assert_eq!((&decision["degraded"], &decision["limit"]), (&true.into(), &1.into()));
    let denied = check(&server, "login", "192.0.2.9");
    assert_eq!(denied["reason"], "blocked");
    let ip = [("x-forwarded-for", "192.0.2.1")];
    assert_eq!(server.request("GET /v1/gates/pay/authorize", &ip).status, 503);
    wait_until("readyz", || {
        let ready = server.request("GET /readyz", &[]).json();
        ready["ready"] == true && ready["problems"][0]["what"] == "store"
    });
    let another = r#"{"policy":"login","subject":{"ip":"192.0.2.10"},"for":"1h"}"#;
    expect_durable(&server, "POST /v1/blocks", another);
    assert_eq!(check(&server, "login", "192.0.2.10")["reason"], "blocked");
    let reset = r#"{"policy":"login","subject":{"ip":"192.0.2.9"}}"#;
    let refused = server.post("/v1/reset", reset);
    assert_eq!(refused.status, 503, "{}", refused.problem_code());
    redis.restart();
    wait_until("the store is back", || check(&server, "login", "192.0.2.1")["degraded"] == false);
    for ip in ["192.0.2.9", "192.0.2.10"] {
        assert_eq!(check(&server, "login", ip)["allowed"], false, "the block was written again");
    }
}

#[test]
fn a_node_with_records_or_a_secret_of_its_own_is_refused_by_name() {
    let Some(redis) = RedisServer::start() else { return };
    let first = TestServer::from_file(&node(&redis.url(), "sqlite:catraca.db"));
    assert_eq!(check(&first, "login", "192.0.2.1")["allowed"], true);
    let second = node(&redis.url(), "sqlite:catraca.db");
    assert!(refused_start(&second).contains("must share records in PostgreSQL"));
    fs::remove_file(second.with_file_name("catraca.secret")).unwrap();
    assert!(refused_start(&second).contains("openssl rand -hex 32"));
}

/// R7. The error names the URL and the remedy, and nothing is created beside the catalog.
#[test]
fn a_start_that_the_store_refuses_leaves_no_trace() {
    let Some(redis) = RedisServer::start() else { return };
    let port = redis.port();
    for (url, words) in [
        (format!("redis+cluster://127.0.0.1:{port}"), "no server of a cluster"),
        (format!("redis+sentinel://127.0.0.1:{port}/main"), "not a Sentinel"),
        (format!("redis://:pw@127.0.0.1:{port}"), "WRONGPASS"),
    ] {
        let catalog = node(&url, "sqlite:catraca.db");
        let refusal = refused_start(&catalog);
        assert!(refusal.contains(&url.replace(":pw@", "")), "{refusal}");
        assert!(refusal.contains(words) && !refusal.contains("pw@"), "{refusal}");
        let folder = catalog.parent().unwrap();
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.count(), 2, "only the catalog and the secret are in {folder:?}");
    }
    assert_eq!(redis.command(&["DBSIZE"]), RespValue::Int(0));
}

/// Regression: a version that cannot be read looked like an empty schema, which was made again.
#[test]
fn a_schema_whose_version_cannot_be_read_ends_the_start() {
    let postgres = PostgresServer::start();
    let url = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let catalog = node(&url, &url);
    drop(TestServer::from_file(&catalog));
    let change = "ALTER TABLE catraca_store.migrations ALTER version TYPE numeric";
    postgres.psql("postgres", change);
    let stderr = refused_start(&catalog);
    assert!(stderr.contains("numeric") && !stderr.contains("already exists"), "{stderr}");
}

/// covers: 004-43
#[test]
fn a_store_may_be_named_by_a_variable() {
    let Some(redis) = RedisServer::start() else { return };
    let path = catalog_file(include_str!("../../../../../presets/booking/catalog.toml"));
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    let server = TestServer::with_env(&path, &[("REDIS_URL", redis.url().as_str())]);
    assert_eq!(check(&server, "global", "198.51.100.7")["allowed"], true);
    assert_ne!(redis.command(&["DBSIZE"]), RespValue::Int(0), "nothing is in Redis");
}

#[test]
fn a_server_that_evicts_is_refused_with_the_command_that_helps() {
    let evicting = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(redis) = RedisServer::start_with(&evicting) else { return };
    let stderr = refused_start(&node(&redis.url(), "sqlite:catraca.db"));
    assert!(stderr.contains("allkeys-lru") && stderr.contains("noeviction"), "{stderr}");
}

#[test]
fn the_guide_lists_what_only_a_shared_store_has() {
    let Some(redis) = RedisServer::start() else { return };
    let server = TestServer::from_file(&node(&redis.url(), "sqlite:catraca.db"));
    check(&server, "login", "192.0.2.1");
    let text = server.request("GET /metrics", &[]).body;
    let guide = include_str!("../../../../../docs/guide/observe.md");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE catraca_shared_"));
    let names: Vec<String> = types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let end = if kind == "counter" { "_total" } else { "" };
            format!("`catraca_shared_{name}{end}`")
        })
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(guide.contains(&name), "the guide lacks {name}");
    }
}

fn refused_start(catalog: &std::path::Path) -> String {
    let mut command = binary();
    let args = ["serve", "--listen", "127.0.0.1:0", "--config", catalog.to_str().unwrap()];
    let ended = command.args(args).stdout(Stdio::null()).output().unwrap();
    assert!(!ended.status.success());
    String::from_utf8(ended.stderr).unwrap()
}

/// Regression: a change that could not be written made every node wait 15 s for the records, again
/// and again, and all that other nodes did arrived as late.
#[test]
fn records_that_hang_do_not_delay_the_kill_switch() {
    /// A read of records that hang ends after 15 s.
    const HANGING: Duration = Duration::from_secs(8);
    let Some(redis) = RedisServer::start() else { return };
    let postgres = PostgresServer::start();
    let records = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let here = TestServer::from_file(&node(&redis.url(), &records));
    let there = TestServer::from_file(&node(&redis.url(), &records));
    let allowed = |server: &TestServer| check(server, "login", "192.0.2.1")["allowed"] == true;
    assert_eq!([0; 4].map(|_| allowed(&there)), [true, true, true, false]);
    postgres.signal_all("STOP");
    for (mode, is_allowed) in [("off", true), ("enforce", false), ("off", true)] {
        let body = format!(r#"{{"mode":"{mode}"}}"#);
        let accepted = expect_ok(&here, "PUT /v1/policies/login/mode", &body);
        assert_eq!(accepted["durable"], false, "{accepted}");
        let begun = Instant::now();
        while allowed(&there) != is_allowed {
            assert!(begun.elapsed() < HANGING, "{mode} has not arrived");
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{mode} while the records hang: {:?}", begun.elapsed());
    }
    redis.command(&["FLUSHALL"]);
    let begun = Instant::now();
    while there.request("GET /metrics", &[]).body.contains("catraca_shared_breaker_opened_total 0")
    {
        assert!(begun.elapsed() < HANGING, "the loss has not been noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    while !there.request("GET /metrics", &[]).body.contains("catraca_shared_up 1") {
        assert!(begun.elapsed() < HANGING, "Redis is not used");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("Redis is used after a loss of data while the records hang: {:?}", begun.elapsed());
    postgres.signal_all("CONT");
}
