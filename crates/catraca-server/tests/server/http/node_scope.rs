//! Two servers on one real Redis, without PostgreSQL: what one operator does counts everywhere, and
//! what is left after Redis or a node ends.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;

use crate::http::admin::{expect_durable, expect_ok};
use crate::test_server::{TestServer, binary, catalog_file};

const POLICIES: &str = r#"
[attribute.customer]
[policy.login]
by     = ["ip"]
window = "3 per 1h"
block  = "1h"
[policy.pay]
by     = ["customer"]
window = "1 per 1h"
tier   = [ { when = { plan = "gold" }, window = "5 per 1h" } ]
"#;

/// The documented delay after which a change at one node applies at every other node.
const SOON: Duration = Duration::from_secs(1);
/// How long a poll of `wait_until` takes on an idle machine. What it takes longer is the delay of a
/// busy machine, which delays the nodes as well, and does not count.
const POLL: Duration = Duration::from_millis(25);
/// When a test gives up, on any machine: Redis or a node was down and is found again.
const RECOVERY: Duration = Duration::from_secs(20);

fn node(redis: &RedisServer) -> PathBuf {
    let store = format!("[store]\nurl = {:?}\nnodes = 2\ndeadline = \"1s\"\n", redis.url());
    let path = catalog_file(&format!("{POLICIES}\n{store}\n[records]\nscope = \"node\"\n"));
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    path
}

/// A node with a preset, which names its Redis by a variable.
fn preset(catalog: &str, redis: &RedisServer) -> TestServer {
    let path = catalog_file(catalog);
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    // A long window, so that a slow machine reaches its limit.
    let variables = [("REDIS_URL", redis.url()), ("RATE_LIMIT_WINDOW_SECONDS", "3600".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    TestServer::with_env(&path, &variables)
}

fn reason(server: &TestServer, gate: &str, subject: &str) -> String {
    let body = format!(r#"{{"gate":"{gate}","subject":{subject}}}"#);
    let decision = expect_ok(server, "POST /v1/check", &body);
    decision["reason"].as_str().unwrap().to_owned()
}

fn login(server: &TestServer, ip: &str) -> String {
    reason(server, "login", &format!(r#"{{"ip":"{ip}"}}"#))
}

fn get(server: &TestServer, path: &str) -> serde_json::Value {
    let answer = server.request(&format!("GET {path}"), &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

/// The ids of the active blocks that a node lists.
fn blocks(server: &TestServer) -> Vec<String> {
    let page = get(server, "/v1/blocks");
    assert_eq!(page["scope"], "node", "{page}");
    let rows = page["blocks"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Waits for what reaches a node within [`SOON`].
fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    let (waited, delay) = wait_at_most(RECOVERY, what, holds);
    println!("{what}: {waited:?}, of which the machine {delay:?}");
    assert!(waited - delay < SOON, "not in time: {what}");
}

/// Waits for what needs Redis or a node that was down.
fn wait_for_recovery(what: &str, holds: impl FnMut() -> bool) {
    let (waited, _) = wait_at_most(RECOVERY, what, holds);
    println!("{what}: {waited:?}");
}

/// Returns the time that passed, and how much of it the machine was slower than [`POLL`].
fn wait_at_most(
    limit: Duration,
    what: &str,
    mut holds: impl FnMut() -> bool,
) -> (Duration, Duration) {
    let begun = Instant::now();
    let mut delay = Duration::ZERO;
    let mut last = begun;
    while !holds() {
        assert!(begun.elapsed() < limit, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
        delay += last.elapsed().saturating_sub(POLL);
        last = Instant::now();
    }
    (begun.elapsed(), delay + last.elapsed().saturating_sub(POLL))
}

/// How many notices Redis has, as text.
fn notices(redis: &RedisServer) -> String {
    format!("{:?}", redis.command(&["XLEN", "catraca:notices"]))
}

fn block_by_excess(server: &TestServer, ip: &str) {
    let seen = [0; 4].map(|_| login(server, ip));
    assert_eq!(seen, ["ok", "ok", "ok", "over_limit"]);
}

#[test]
fn two_nodes_agree_on_redis_alone() {
    let Some(redis) = RedisServer::start() else { return };
    let here = TestServer::from_file(&node(&redis));
    let there = TestServer::from_file(&node(&redis));
    let entry = r#"{"range":"198.51.100.0/24","reason":"scanners"}"#;
    expect_durable(&here, "POST /v1/blocklist", entry);
    let listed = || get(&there, "/v1/blocklist")["entries"][0]["range"].clone();
    wait_until("a list", || listed() == "198.51.100.0/24");
    assert_eq!(login(&there, "198.51.100.7"), "blocklisted");
    expect_durable(&there, "PUT /v1/facts/customer/ana", r#"{"facts":{"plan":"gold"}}"#);
    let pay = || reason(&here, "pay", r#"{"customer":"ana"}"#);
    wait_until("a fact", || get(&here, "/v1/facts")["facts"].as_array().unwrap().len() == 1);
    assert_eq!([pay(), pay(), pay()], ["ok", "ok", "ok"]);
    block_by_excess(&here, "192.0.2.1");
    wait_until("a block", || blocks(&there).len() == 1);
    assert_eq!(blocks(&there), blocks(&here));
    expect_durable(&there, &format!("DELETE /v1/blocks/{}", blocks(&there)[0]), "{}");
    wait_until("a release", || blocks(&here).is_empty());
    let released = login(&here, "192.0.2.1");
    assert_ne!(released, "blocked");
    expect_durable(&there, "PUT /v1/policies/login/mode", r#"{"mode":"off"}"#);
    wait_until("the kill switch", || login(&here, "192.0.2.1") == "ok");
    for path in ["audit", "stats", "stats/actions", "stats/top-blocked"] {
        assert_eq!(get(&here, &format!("/v1/{path}"))["scope"], "node", "{path}");
    }
    let subject = r#"{"subject":{"customer":"ana"}}"#;
    assert_eq!(expect_ok(&here, "POST /v1/inspect", subject)["scope"], "node");
    let value = r#"{"attribute":"customer","value":"ana"}"#;
    assert_eq!(expect_ok(&here, "POST /v1/privacy/export", value)["scope"], "node");
    let keys = redis.command(&["HGETALL", "catraca:rules"]);
    assert!(!format!("{keys:?}").contains("198.51"), "no value in clear");
}

/// Whether Redis keeps its data or not, a running node knows what was in force.
fn redis_is_killed(persistence: &[&str]) {
    let Some(mut redis) = RedisServer::start_with(persistence) else { return };
    let here = TestServer::from_file(&node(&redis));
    let there = TestServer::from_file(&node(&redis));
    block_by_excess(&here, "192.0.2.1");
    expect_durable(&here, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_until("both", || {
        blocks(&there).len() == 1 && login(&there, "198.51.100.7") == "blocklisted"
    });
    redis.kill();
    assert_eq!(login(&there, "192.0.2.1"), "blocked", "the block of the other node");
    let order = r#"{"policy":"login","subject":{"ip":"192.0.2.5"},"for":"1h"}"#;
    let accepted = expect_ok(&here, "POST /v1/blocks", order);
    assert_eq!(accepted["durable"], false, "{accepted}");
    assert_eq!(accepted["nodes_behind"].as_array().unwrap().len(), 1, "{accepted}");
    assert_eq!(login(&here, "192.0.2.5"), "blocked");
    redis.restart();
    for server in [&here, &there] {
        for ip in ["192.0.2.1", "192.0.2.5"] {
            wait_for_recovery("a block is in force", || login(server, ip) == "blocked");
        }
        wait_for_recovery("the list is", || login(server, "198.51.100.7") == "blocklisted");
        wait_for_recovery("Redis is used", || {
            let body = r#"{"gate":"login","subject":{"ip":"192.0.2.77"}}"#;
            expect_ok(server, "POST /v1/peek", body)["degraded"] == false
        });
    }
    let third = TestServer::from_file(&node(&redis));
    wait_until("a new node lists them", || blocks(&third).len() == 2);
    assert_eq!(login(&third, "198.51.100.7"), "blocklisted");
}

#[test]
fn a_redis_without_persistence_that_is_killed_gets_everything_from_running_nodes() {
    redis_is_killed(&[]);
}

/// A node knows what Redis has not written to its file yet.
#[test]
fn a_redis_that_is_killed_within_a_second_of_its_last_sync_gets_the_rest_from_running_nodes() {
    redis_is_killed(&["--appendonly", "yes", "--appendfsync", "everysec"]);
}

const APPEND_ONLY: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn a_redis_with_an_append_only_file_that_is_killed_has_everything() {
    redis_is_killed(APPEND_ONLY);
}

/// What a new node knows after Redis and all running nodes were killed: only Redis can tell it.
fn everything_is_killed(persistence: &[&str]) -> Option<(usize, String, String)> {
    let mut redis = RedisServer::start_with(persistence)?;
    let here = TestServer::from_file(&node(&redis));
    let there = TestServer::from_file(&node(&redis));
    block_by_excess(&here, "192.0.2.1");
    expect_durable(&here, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_until("both", || {
        blocks(&there).len() == 1 && login(&there, "198.51.100.7") == "blocklisted"
    });
    for server in [&here, &there] {
        server.signal("KILL");
    }
    drop((here, there));
    redis.kill();
    redis.restart();
    let third = TestServer::from_file(&node(&redis));
    let listed = blocks(&third).len();
    Some((listed, login(&third, "192.0.2.1"), login(&third, "198.51.100.7")))
}

#[test]
fn an_append_only_file_keeps_what_no_running_node_can_repeat() {
    let Some(kept) = everything_is_killed(APPEND_ONLY) else { return };
    assert_eq!(kept, (1, "blocked".to_owned(), "blocklisted".to_owned()));
    let Some(lost) = everything_is_killed(&[]) else { return };
    assert_eq!(lost, (0, "ok".to_owned(), "ok".to_owned()), "without it, nothing is left");
}

/// The other node goes on alone, and the killed one learns what was done meanwhile.
#[test]
fn either_node_that_is_killed_alone_learns_what_it_has_missed() {
    let Some(redis) = RedisServer::start() else { return };
    let files = [node(&redis), node(&redis)];
    let [here, there] = files.each_ref().map(|file| TestServer::from_file(file));
    block_by_excess(&here, "192.0.2.1");
    block_by_excess(&there, "192.0.2.2");
    expect_durable(&there, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_until("both", || {
        blocks(&here).len() == 2
            && blocks(&there).len() == 2
            && login(&here, "198.51.100.7") == "blocklisted"
    });
    there.signal("KILL");
    drop(there);
    for ip in ["192.0.2.1", "192.0.2.2"] {
        assert_eq!(login(&here, ip), "blocked", "{ip}");
    }
    let page = get(&here, "/v1/blocks");
    let mut rows = page["blocks"].as_array().unwrap().iter();
    let row = rows.find(|row| row.to_string().contains("192.0.2.2")).unwrap();
    expect_durable(&here, &format!("DELETE /v1/blocks/{}", row["id"].as_str().unwrap()), "{}");
    block_by_excess(&here, "192.0.2.3");
    expect_durable(&here, "DELETE /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    let there = TestServer::from_file(&files[1]);
    assert_ne!(login(&there, "198.51.100.7"), "blocklisted", "it was removed meanwhile");
    wait_for_recovery("the killed node agrees", || {
        let mut listed = [blocks(&here), blocks(&there)];
        listed.iter_mut().for_each(|ids| ids.sort());
        listed[0].len() == 2 && listed[0] == listed[1]
    });
    assert_eq!(login(&there, "192.0.2.3"), "blocked");
    assert_ne!(login(&there, "192.0.2.2"), "blocked");
}

#[test]
fn flushall_and_killed_nodes_leave_what_was_acknowledged() {
    let Some(redis) = RedisServer::start() else { return };
    let file = node(&redis);
    let here = TestServer::from_file(&file);
    let there = TestServer::from_file(&node(&redis));
    block_by_excess(&here, "192.0.2.1");
    expect_durable(&here, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_until("the other node knows", || blocks(&there).len() == 1);
    redis.command(&["FLUSHALL"]);
    wait_for_recovery("the list is back", || {
        !format!("{:?}", redis.command(&["HLEN", "catraca:rules"])).contains("(0)")
    });
    here.signal("KILL");
    drop(here);
    assert_eq!(login(&there, "192.0.2.1"), "blocked");
    let before = notices(&redis);
    // The end of the block has moved by milliseconds when it was written again.
    expect_durable(&there, &format!("DELETE /v1/blocks/{}", blocks(&there)[0]), "{}");
    expect_durable(&there, "DELETE /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_until("the release is published", || notices(&redis) != before);
    let here = TestServer::from_file(&file);
    assert_ne!(login(&here, "198.51.100.7"), "blocklisted", "it was removed meanwhile");
    wait_for_recovery("the block has ended in its records", || blocks(&here).is_empty());
    here.signal("KILL");
    there.signal("KILL");
    drop((here, there));
    redis.command(&["FLUSHALL"]);
    let alone = TestServer::from_file(&file);
    assert_eq!(login(&alone, "198.51.100.7"), "ok", "records do not fill an empty Redis");
    assert!(blocks(&alone).is_empty());
    assert!(!get(&alone, "/v1/audit")["acts"].as_array().unwrap().is_empty());
}

#[test]
fn a_node_with_other_records_is_refused_and_told_the_setting() {
    let Some(redis) = RedisServer::start() else { return };
    let _here = TestServer::from_file(&node(&redis));
    let store = format!("[store]\nurl = {:?}\nnodes = 2\n", redis.url());
    let file = catalog_file(&format!("{POLICIES}\n{store}"));
    fs::write(file.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]);
    let ended = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && stderr.contains("scope = \"node\""), "{stderr}");
}

/// `REDIS_URL` and the same secret are enough.
///
/// covers: 004-43
#[test]
fn presets_with_a_redis_run_on_two_nodes_of_it() {
    let Some(redis) = RedisServer::start() else { return };
    let booking = include_str!("../../../../../presets/booking/catalog.toml");
    let [here, there] = [(); 2].map(|()| preset(booking, &redis));
    let lock = r#"{"kind":"payment","key":"order-7"}"#;
    let granted = here.post("/v1/locks/acquire", lock);
    assert!((200..300).contains(&granted.status), "{}", granted.body);
    assert_eq!(there.post("/v1/locks/acquire", lock).status, 409, "the other node has the lock");
    expect_durable(&here, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    let blocked = || reason(&there, "global", r#"{"ip":"198.51.100.7"}"#);
    wait_until("a list", || blocked() == "blocklisted");
    let window_block = include_str!("../../../../../presets/window-block/catalog.toml");
    let Some(redis) = RedisServer::start() else { return };
    let [here, there] = [(); 2].map(|()| preset(window_block, &redis));
    let check = |server| reason(server, "api", r#"{"ip":"192.0.2.9"}"#);
    let limit = (0..10_000).take_while(|n| check([&here, &there][n % 2]) == "ok").count();
    assert_eq!(check(&here), "blocked", "after {limit} requests to both");
    assert_eq!(check(&there), "blocked");
    wait_until("both list the block", || blocks(&here).len() == 1 && blocks(&there).len() == 1);
    let checkout = include_str!("../../../../../presets/checkout/catalog.toml");
    let Some(redis) = RedisServer::start() else { return };
    let [here, there] = [(); 2].map(|()| preset(checkout, &redis));
    let order = |server| reason(server, "create_order", r#"{"ip":"192.0.2.9"}"#);
    let limit = (0..1_000).take_while(|n| order([&here, &there][n % 2]) == "ok").count();
    assert_eq!(limit, 60, "both count together");
    wait_until("both list the block", || blocks(&here).len() == 1 && blocks(&there).len() == 1);
    assert_eq!([order(&here), order(&there)], ["blocked", "blocked"]);
    let dict = include_str!("../../../../../presets/dict/catalog.toml");
    let Some(redis) = RedisServer::start() else { return };
    let [here, there] = [(); 2].map(|()| preset(dict, &redis));
    let category = r#"{"facts":{"category":"A"}}"#;
    expect_durable(&here, "PUT /v1/facts/participant/12345678", category);
    let write = r#"{"gate":"createCidSetFile","subject":{"participant":"12345678"}}"#;
    assert_eq!(here.json("/v1/check", write).1["allowed"], true);
    let subject = r#"{"subject":{"participant":"12345678"}}"#;
    let state = |policy: &str| there.json(&format!("/v1/buckets/{policy}"), subject).1;
    assert_eq!(state("cids_files_write")["balance"], 197, "the charge of the other node");
    wait_until("the category", || state("entries_statistics_read")["size"] == 49_500);
}
