//! A store under Sentinels: the primary is killed, or replaced while it is up.

use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::SharedStore;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::{RedisSentinels, until};
use catraca_testkit::resp::RespValue;

use super::helpers::{connect_with, passes};

const SLACK: Duration = Duration::from_millis(250);
/// The maximum time from the Sentinels' election until the store uses the new primary.
const FOLLOWED: Duration = Duration::from_secs(2);

fn default_store(url: &str) -> BlockingStore<RedisStore> {
    connect_with(url, RedisOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn incarnation(store: &BlockingStore<RedisStore>) -> Option<u64> {
    store.handle().block_on(store.store().status()).ok().map(|status| status.incarnation)
}

/// Makes calls until the Sentinels name another primary; returns its port.
fn until_named(group: &RedisSentinels, store: &BlockingStore<RedisStore>, old: u16) -> u16 {
    let machine = PauseWatch::start();
    until("another primary is named", || {
        let call = Instant::now();
        let _ = passes(store, 1);
        let took = call.elapsed();
        assert!(took < SLACK + machine.added_to_a_call(), "a call took {took:?}");
        group.primary().is_some_and(|port| port != old)
    });
    group.primary().expect("one is named")
}

/// The number of keys of a server.
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
    let store = default_store(&group.url());
    assert!(passes(&store, 1).unwrap());
    let old = group.servers[0].port();
    let before = incarnation(&store);
    group.servers[0].kill();
    let new = until_named(&group, &store, old);
    let took = until("calls pass", || passes(&store, 1).is_ok());
    println!("followed {took:?} after the Sentinels named {new}");
    assert!(took < FOLLOWED, "{took:?}");
    assert!(keys(&group, new) > 0);
    assert_ne!(incarnation(&store), before, "another primary is another incarnation of the store");
    group.servers[0].restart();
}

#[test]
fn a_primary_that_was_replaced_while_it_lived_is_left() {
    let Some(group) = RedisSentinels::start() else { return };
    let store = default_store(&group.url());
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
    let url = group.url().replace("/catraca", "/other");
    let refusal = connect_with(&url, RedisOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("watches no primary named \"other\""), "{refusal}");
}

/// Servers and Sentinels have different passwords; errors and debug output show neither.
#[test]
fn sentinels_and_servers_with_passwords_are_reached_and_followed_with_both() {
    let server = "server-w0rd";
    let own = "sentinel-w0rd";
    let Some(group) = RedisSentinels::start_with(Some((server, own))) else { return };
    let with = |server: &str, query: &str| {
        format!("{}{query}", group.url().replace("://", &format!("://:{server}@")))
    };
    let refusal = |url: &str| {
        let refused = connect_with(url, RedisOptions::default()).expect_err("it is refused");
        let refusal = format!("{refused} {refused:?}");
        assert!(!refusal.contains("w0rd"), "a password is shown: {refusal}");
        refusal
    };
    let unknown = refusal(&with(server, ""));
    assert!(unknown.contains("NOAUTH") && unknown.contains("sentinel_password"), "{unknown}");
    let wrong = refusal(&with(server, "?sentinel_password=w0rd"));
    assert!(wrong.contains("WRONGPASS") && wrong.contains("sentinel_password"), "{wrong}");
    let other = refusal(&with("w0rd", &format!("?sentinel_password={own}")));
    assert!(other.contains("WRONGPASS") && !other.contains("Sentinel requires"), "{other}");
    let store = default_store(&with(server, &format!("?sentinel_password={own}")));
    assert!(passes(&store, 1).unwrap());
    assert!(!store.store().redacted_url().contains("w0rd"), "{}", store.store().redacted_url());
    let old = group.servers[0].port();
    assert_eq!(group.fail_over(), RespValue::Bytes(b"OK".to_vec()));
    let new = until_named(&group, &store, old);
    let took =
        until("calls reach the new primary", || passes(&store, 2).is_ok() && keys(&group, new) > 0);
    assert!(took < FOLLOWED, "{took:?}");
}
