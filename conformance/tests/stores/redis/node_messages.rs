//! What nodes tell each other through Redis, as a single server and as a cluster, also as a user
//! with few rights.

use std::sync::Arc;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{NodeMessage, RuleStamp, RuleWriteMode, SharedStore, StampedRule, StoreError};
use catraca_testkit::redis::{RedisCluster, RedisServer, until};
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::acl;
use super::helpers::LONG_DEADLINE;
use crate::node_messages::{blocks_count_without_the_store, messages_are_carried};

fn connect(runtime: &Runtime, url: &str) -> RedisStore {
    let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
    runtime.block_on(RedisStore::connect(url, options)).unwrap()
}

#[test]
fn messages_are_carried_by_one_server_and_by_a_cluster() {
    let Some(server) = acl::server() else { return };
    let runtime = Runtime::new().unwrap();
    messages_are_carried(&runtime, &connect(&runtime, &acl::url(&server)));
    let Some(cluster) = RedisCluster::start() else { return };
    messages_are_carried(&runtime, &connect(&runtime, &cluster.url()));
}

#[test]
fn blocks_and_releases_of_another_node_count_without_redis() {
    let Some(mut server) = RedisServer::start() else { return };
    let runtime = Runtime::new().unwrap();
    let store = || Arc::new(connect(&runtime, &server.url())) as Arc<dyn SharedStore>;
    let stores = [store(), store()];
    blocks_count_without_the_store(&runtime, stores, || server.kill());
}

/// The server that has the stream of notices, its slot, and the key of the hash of nodes.
fn locate_notices(cluster: &RedisCluster) -> (usize, String, Vec<u8>) {
    for (index, server) in cluster.servers.iter().enumerate() {
        if !cluster.is_primary(index) {
            continue;
        }
        let mut client = server.connect();
        let Ok(RespValue::Array(keys)) = client.call(&[b"KEYS", b"catraca:*nodes"]) else {
            panic!("no keys")
        };
        let Some(RespValue::Bytes(key)) = keys.first() else { continue };
        let Ok(RespValue::Int(slot)) = client.call(&[b"CLUSTER", b"KEYSLOT", key]) else {
            panic!("no slot")
        };
        return (index, slot.to_string(), key.clone());
    }
    panic!("no server has the nodes")
}

/// Regression: while one of the two keys was on another server, each attempt added the notices
/// again.
#[test]
fn a_notice_is_added_once_while_its_slot_is_moved() {
    let Some(cluster) = RedisCluster::start() else { return };
    let runtime = Runtime::new().unwrap();
    let store = connect(&runtime, &cluster.url());
    let publish = |body: &str| {
        let notices = [body.as_bytes().to_vec()];
        let message =
            NodeMessage { node: "a", state: "up", gone: &[], after: "", notices: &notices };
        runtime.block_on(store.exchange(&message))
    };
    publish("before").unwrap();
    let (from, slot, nodes) = locate_notices(&cluster);
    let to = (from + 1) % 3;
    cluster.begin_move(&slot, from, to);
    let port = cluster.servers[to].port().to_string();
    let parts: [&[u8]; 6] = [b"MIGRATE", b"127.0.0.1", port.as_bytes(), &nodes, b"0", b"5000"];
    let moved = cluster.servers[from].connect().call(&parts);
    assert!(matches!(moved, Ok(RespValue::Bytes(_))), "{moved:?}");
    let refused = publish("during the move").unwrap_err();
    assert!(matches!(refused, StoreError::Moving { .. }), "{refused}");
    cluster.move_keys(&slot, from, to);
    // All keys are moved, but the servers do not know it yet: the call is redirected.
    publish("after the move").unwrap();
    cluster.end_move(&slot, to);
    let mut reply = None;
    until("the store has the new map", || {
        reply = publish("at the end").ok();
        reply.is_some()
    });
    let bodies: Vec<Vec<u8>> = reply.unwrap().notices.into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [&b"before"[..], b"after the move", b"at the end"]);
}

fn rule(name: &str, micros: u64, tie_breaker: u32, body: Option<&str>) -> StampedRule {
    let stamp = RuleStamp { micros, tie_breaker };
    let body = body.map(|body| body.as_bytes().to_vec());
    StampedRule { name: name.as_bytes().to_vec(), stamp, body }
}

fn read_rules(runtime: &Runtime, store: &RedisStore) -> Vec<StampedRule> {
    let mut all = Vec::new();
    let mut from = Some(0);
    while let Some(cursor) = from {
        let page = runtime.block_on(store.read_rules(cursor)).unwrap();
        all.extend(page.rules);
        from = page.next;
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn newest_acts_stay(runtime: &Runtime, store: &RedisStore) {
    let write = |rule: &StampedRule, mode| {
        runtime.block_on(store.write_rules(std::slice::from_ref(rule), mode)).unwrap();
    };
    let changes = || runtime.block_on(store.status()).unwrap().changes;
    // 16 digits: as a string, the first one would be the higher.
    let older = rule("a", 999_999_999_999_999, 9, Some("older"));
    let newer = rule("a", 1_800_000_000_000_000, 9, Some("newer"));
    for order in [[&older, &newer], [&newer, &older]] {
        order.iter().for_each(|rule| write(rule, RuleWriteMode::Merge));
        assert_eq!(read_rules(runtime, store), std::slice::from_ref(&newer));
    }
    assert_eq!(changes(), 4);
    let lower = rule("a", 1_800_000_000_000_000, 8, Some("a lower tie-breaker"));
    write(&lower, RuleWriteMode::Merge);
    assert_eq!(read_rules(runtime, store), std::slice::from_ref(&newer));
    let removed = rule("a", 1_800_000_000_000_000, 10, None);
    write(&removed, RuleWriteMode::Merge);
    write(&newer, RuleWriteMode::Merge);
    assert_eq!(read_rules(runtime, store), std::slice::from_ref(&removed), "it stays removed");
    // What is left of it is deleted only if nothing has happened since.
    let again = rule("a", 1_800_000_000_000_001, 1, Some("again"));
    write(&again, RuleWriteMode::Merge);
    let changes_before = changes();
    write(&removed, RuleWriteMode::Purge);
    assert_eq!(read_rules(runtime, store), std::slice::from_ref(&again));
    let removed = rule("a", 1_800_000_000_000_002, 1, None);
    write(&removed, RuleWriteMode::Merge);
    write(&removed, RuleWriteMode::Purge);
    assert!(read_rules(runtime, store).is_empty());
    assert_eq!(changes(), changes_before + 1, "only the removal");
}

#[test]
fn of_two_acts_about_a_rule_the_newer_one_stays_in_redis() {
    let Some(server) = acl::server() else { return };
    let runtime = Runtime::new().unwrap();
    let store = connect(&runtime, &acl::url(&server));
    newest_acts_stay(&runtime, &store);
    for number in 0..2_500 {
        let rule = rule(&format!("rule {number}"), 1, 1, Some("x"));
        runtime.block_on(store.write_rules(&[rule], RuleWriteMode::Merge)).unwrap();
    }
    let mut names: Vec<_> = read_rules(&runtime, &store).into_iter().map(|it| it.name).collect();
    names.dedup();
    assert_eq!(names.len(), 2_500);
    let Some(cluster) = RedisCluster::start() else { return };
    newest_acts_stay(&runtime, &connect(&runtime, &cluster.url()));
}
