//! Two servers on one real Redis, without PostgreSQL: what one operator does counts everywhere, and
//! what is left after Redis or a node ends.

use std::fs;
use std::path::PathBuf;

use catraca_testkit::redis::RedisServer;

use crate::http::admin::{expect_durable, expect_ok};
use crate::test_server::{TestServer, binary, catalog_file};
use crate::time_bound::{AGREED, RECOVERED, wait_within};

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
    wait_within(AGREED, "a list", || listed() == "198.51.100.0/24");
    assert_eq!(login(&there, "198.51.100.7"), "blocklisted");
    expect_durable(&there, "PUT /v1/facts/customer/ana", r#"{"facts":{"plan":"gold"}}"#);
    let pay = || reason(&here, "pay", r#"{"customer":"ana"}"#);
    wait_within(AGREED, "a fact", || {
        get(&here, "/v1/facts")["facts"].as_array().unwrap().len() == 1
    });
    assert_eq!([pay(), pay(), pay()], ["ok", "ok", "ok"]);
    block_by_excess(&here, "192.0.2.1");
    wait_within(AGREED, "a block", || blocks(&there).len() == 1);
    assert_eq!(blocks(&there), blocks(&here));
    expect_durable(&there, &format!("DELETE /v1/blocks/{}", blocks(&there)[0]), "{}");
    wait_within(AGREED, "a release", || blocks(&here).is_empty());
    let released = login(&here, "192.0.2.1");
    assert_ne!(released, "blocked");
    expect_durable(&there, "PUT /v1/policies/login/mode", r#"{"mode":"off"}"#);
    wait_within(AGREED, "the kill switch", || login(&here, "192.0.2.1") == "ok");
    assert_eq!(get(&here, "/v1/audit")["scope"], "node");
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
    wait_within(AGREED, "both", || {
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
            wait_within(RECOVERED, "a block is in force", || login(server, ip) == "blocked");
        }
        wait_within(RECOVERED, "the list is", || login(server, "198.51.100.7") == "blocklisted");
        wait_within(RECOVERED, "Redis is used", || {
            let body = r#"{"gate":"login","subject":{"ip":"192.0.2.77"}}"#;
            expect_ok(server, "POST /v1/peek", body)["degraded"] == false
        });
    }
    let third = TestServer::from_file(&node(&redis));
    wait_within(AGREED, "a new node lists them", || blocks(&third).len() == 2);
    assert_eq!(login(&third, "198.51.100.7"), "blocklisted");
}

#[test]
fn a_redis_without_persistence_that_is_killed_gets_everything_from_running_nodes() {
    redis_is_killed(&[]);
}

#[test]
fn a_redis_with_an_append_only_file_that_is_killed_has_everything() {
    redis_is_killed(&["--appendonly", "yes", "--appendfsync", "always"]);
}

#[test]
fn flushall_and_killed_nodes_leave_what_was_acknowledged() {
    let Some(redis) = RedisServer::start() else { return };
    let file = node(&redis);
    let here = TestServer::from_file(&file);
    let there = TestServer::from_file(&node(&redis));
    block_by_excess(&here, "192.0.2.1");
    expect_durable(&here, "POST /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_within(AGREED, "the other node knows", || blocks(&there).len() == 1);
    redis.command(&["FLUSHALL"]);
    wait_within(RECOVERED, "the list is back", || {
        !format!("{:?}", redis.command(&["HLEN", "catraca:rules"])).contains("(0)")
    });
    here.signal("KILL");
    drop(here);
    assert_eq!(login(&there, "192.0.2.1"), "blocked");
    let before = notices(&redis);
    // The end of the block has moved by milliseconds when it was written again.
    expect_durable(&there, &format!("DELETE /v1/blocks/{}", blocks(&there)[0]), "{}");
    expect_durable(&there, "DELETE /v1/blocklist", r#"{"range":"198.51.100.0/24"}"#);
    wait_within(AGREED, "the release is published", || notices(&redis) != before);
    let here = TestServer::from_file(&file);
    assert_ne!(login(&here, "198.51.100.7"), "blocklisted", "it was removed meanwhile");
    wait_within(AGREED, "the block has ended in its records", || blocks(&here).is_empty());
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
    wait_within(AGREED, "a list", || blocked() == "blocklisted");
    let window_block = include_str!("../../../../../presets/window-block/catalog.toml");
    two_nodes_block_together(window_block, "api");
    let checkout = include_str!("../../../../../presets/checkout/catalog.toml");
    two_nodes_block_together(checkout, "default");
    two_nodes_share_buckets_and_facts();
}

/// Together, two nodes of a preset count to its limit, and both list the block.
fn two_nodes_block_together(catalog: &str, gate: &str) {
    let Some(redis) = RedisServer::start() else { return };
    let [here, there] = [(); 2].map(|()| preset(catalog, &redis));
    let check = |server| reason(server, gate, r#"{"ip":"192.0.2.9"}"#);
    let limit = (0..10_000).take_while(|n| check([&here, &there][n % 2]) == "ok").count();
    assert_eq!(check(&here), "blocked", "after {limit} requests to both");
    assert_eq!(check(&there), "blocked");
    wait_within(AGREED, "both list the block", || {
        blocks(&here).len() == 1 && blocks(&there).len() == 1
    });
}

/// Two nodes of the preset dict charge the same buckets, and learn each other's facts.
fn two_nodes_share_buckets_and_facts() {
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
    let size = || state("entries_statistics_read")["size"] == 49_500;
    wait_within(AGREED, "the category", size);
}
