//! A store that follows its primary: killed, or replaced while it still answers.

use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::SharedStore;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::redis::{RedisSentinels, until};
use catraca_testkit::resp::RespValue;

use super::desk::{connect_with, passes};

const SLACK: Duration = Duration::from_millis(250);
/// How soon the store must be at the new primary after the Sentinels are.
const FOLLOWED: Duration = Duration::from_secs(2);

fn usual(url: &str) -> BlockingStore<RedisStore> {
    connect_with(url, RedisOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn life(store: &BlockingStore<RedisStore>) -> Option<u64> {
    store.handle().block_on(store.store().status()).ok().map(|pulse| pulse.incarnation)
}

/// Calls go on until the Sentinels name another primary; returns its port.
fn until_named(group: &RedisSentinels, store: &BlockingStore<RedisStore>, old: u16) -> u16 {
    until("another primary is named", || {
        let call = Instant::now();
        let _ = passes(store, 1);
        assert!(call.elapsed() < SLACK, "a call took {:?}", call.elapsed());
        group.primary().is_some_and(|port| port != old)
    });
    group.primary().expect("one is named")
}

/// How many keys a server has.
fn keys(group: &RedisSentinels, port: u16) -> i64 {
    let server = group.servers.iter().find(|one| one.port() == port).expect("one of ours");
    match server.command(&["DBSIZE"]) {
        RespValue::Int(keys) => keys,
        other => panic!("not a number: {other:?}"),
    }
}

#[test]
fn a_killed_primary_is_followed_by_another_and_nobody_waits() {
    let Some(mut group) = RedisSentinels::start() else { return };
    let store = usual(&group.url());
    assert!(passes(&store, 1).unwrap());
    let (old, before) = (group.servers[0].port(), life(&store));
    group.servers[0].kill();
    let new = until_named(&group, &store, old);
    let took = until("calls pass", || passes(&store, 1).is_ok());
    println!("followed {took:?} after the Sentinels named {new}");
    assert!(took < FOLLOWED, "{took:?}");
    assert!(keys(&group, new) > 0);
    assert_ne!(life(&store), before, "what was lost may be told again");
    group.servers[0].restart();
}

#[test]
fn a_primary_that_was_replaced_while_it_lived_is_left() {
    let Some(group) = RedisSentinels::start() else { return };
    let store = usual(&group.url());
    assert!(passes(&store, 1).unwrap());
    assert_eq!(group.fail_over(), RespValue::Bytes(b"OK".to_vec()));
    let new = until_named(&group, &store, group.servers[0].port());
    let before = keys(&group, new);
    assert!(before > 0, "what was counted is still counted");
    let took = until("calls reach the new primary", || {
        passes(&store, 2).is_ok() && keys(&group, new) > before
    });
    println!("followed {took:?} after the Sentinels named {new}");
    assert!(took < FOLLOWED, "{took:?}");
}

#[test]
fn a_name_that_no_sentinel_knows_is_told() {
    let Some(group) = RedisSentinels::start() else { return };
    let url = group.url().replace("/catraca-test", "/other");
    let told = connect_with(&url, RedisOptions::default()).unwrap_err().to_string();
    assert!(told.contains("watches no primary named \"other\""), "{told}");
}

/// Servers and Sentinels have passwords of their own; none of them is ever shown.
#[test]
fn sentinels_and_servers_with_passwords_are_reached_and_followed_with_both() {
    let (server, own) = ("server-w0rd", "sentinel-w0rd");
    let Some(group) = RedisSentinels::start_with(Some((server, own))) else { return };
    let with = |server: &str, query: &str| {
        format!("{}{query}", group.url().replace("://", &format!("://:{server}@")))
    };
    let told = |url: &str| {
        let refused = connect_with(url, RedisOptions::default()).expect_err("it is refused");
        let told = format!("{refused} {refused:?}");
        assert!(!told.contains("w0rd"), "a password is shown: {told}");
        told
    };
    let unknown = told(&with(server, ""));
    assert!(unknown.contains("NOAUTH") && unknown.contains("sentinel_password"), "{unknown}");
    let wrong = told(&with(server, "?sentinel_password=w0rd"));
    assert!(wrong.contains("WRONGPASS") && wrong.contains("sentinel_password"), "{wrong}");
    let other = told(&with("w0rd", &format!("?sentinel_password={own}")));
    assert!(other.contains("WRONGPASS") && !other.contains("Sentinel requires"), "{other}");
    let store = usual(&with(server, &format!("?sentinel_password={own}")));
    assert!(passes(&store, 1).unwrap());
    assert!(!store.store().redacted_url().contains("w0rd"), "{}", store.store().redacted_url());
    let old = group.servers[0].port();
    assert_eq!(group.fail_over(), RespValue::Bytes(b"OK".to_vec()));
    let new = until_named(&group, &store, old);
    let took =
        until("calls reach the new primary", || passes(&store, 2).is_ok() && keys(&group, new) > 0);
    assert!(took < FOLLOWED, "{took:?}");
}
