//! The Redis user of `deploy/redis/users.acl`: it has the rights that the store needs, and no
//! others.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use catraca::locks::LockStore;
use catraca::redis::{RedisLocks, RedisOptions};
use catraca::store::SharedStore;
use catraca_testkit::contract::run_all;
use catraca_testkit::redis::{RedisServer, until};
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::helpers::{LONG_DEADLINE, connect_with};

const PASSWORD: &str = "a-password-of-this-test";

/// A server with this user.
pub fn server() -> Option<RedisServer> {
    let server = RedisServer::start()?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/redis/users.acl");
    let rules = fs::read_to_string(file).expect("the file is there");
    let rule = rules.lines().find(|line| line.starts_with("user catraca ")).expect("our user");
    let password = format!(">{PASSWORD}");
    let mut command = vec!["ACL", "SETUSER"];
    command.extend(rule.split_whitespace().skip(1));
    command.push(&password);
    assert_eq!(server.command(&command), RespValue::Bytes(b"OK".to_vec()), "{rule}");
    Some(server)
}

/// The URL with the user and its password.
pub fn url(server: &RedisServer) -> String {
    format!("redis://catraca:{PASSWORD}@127.0.0.1:{}", server.port())
}

#[test]
fn the_store_keeps_its_contract_as_a_user_with_few_rights() {
    let Some(server) = server() else { return };
    let url = url(&server);
    let number = AtomicU32::new(0);
    let make = || {
        let prefix = format!("catraca:{}:", number.fetch_add(1, Ordering::Relaxed));
        let options = RedisOptions { deadline: LONG_DEADLINE, prefix, ..RedisOptions::default() };
        Box::new(connect_with(&url, options).expect("the user may come in")) as Box<_>
    };
    let cases = run_all(make);
    let failed: Vec<_> = cases.iter().filter(|case| case.result.is_err()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let store =
        connect_with(&url, RedisOptions { deadline: LONG_DEADLINE, ..Default::default() }).unwrap();
    let handle = store.handle();
    let store = store.store();
    handle.block_on(store.status()).unwrap();
    handle.block_on(store.publish_change()).unwrap();
    assert_eq!(handle.block_on(store.bind_records("a")).unwrap(), "a");
}

#[test]
fn the_user_can_do_nothing_else() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    let auth: [&[u8]; 3] = [b"AUTH", b"catraca", PASSWORD.as_bytes()];
    assert_eq!(client.call(&auth).unwrap(), RespValue::Bytes(b"OK".to_vec()));
    let refused: [&[&[u8]]; 11] = [
        &[b"GET", b"other:key"],
        &[b"SET", b"other:key", b"x"],
        &[b"EVAL", b"return redis.call('GET', 'other:key')", b"0"],
        &[b"PUBLISH", b"other", b"x"],
        &[b"SUBSCRIBE", b"other"],
        &[b"KEYS", b"*"],
        &[b"SCAN", b"0"],
        &[b"FLUSHALL"],
        &[b"CONFIG", b"GET", b"*"],
        &[b"SCRIPT", b"FLUSH"],
        &[b"ACL", b"LIST"],
    ];
    for command in refused {
        let reply = client.call(command).unwrap();
        let words = command.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>();
        let is_refusal = |error: &str| error.contains("NOPERM") || error.contains("can't access");
        let noperm = matches!(&reply, RespValue::Error(error) if is_refusal(error));
        assert!(noperm, "{words:?}: {reply:?}");
    }
}

/// Regression: callers that wait for a lock then polled for ever, and nothing said so.
#[test]
fn a_refused_subscription_to_freed_names_is_reported() {
    let Some(server) = server() else { return };
    let set = |rule: &str| {
        let set = server.command(&["ACL", "SETUSER", "catraca", rule]);
        assert_eq!(set, RespValue::Bytes(b"OK".to_vec()), "{rule}");
    };
    set("-subscribe");
    let threads = Runtime::new().unwrap();
    let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
    let locks = threads.block_on(RedisLocks::connect(&url(&server), options)).unwrap();
    until("it is reported", || locks.background_error().is_some());
    let reported = locks.background_error().unwrap();
    println!("{reported}");
    assert!(reported.contains("SUBSCRIBE") && reported.contains("wait for a lock"), "{reported}");
    set("+subscribe");
    until("it works again", || locks.background_error().is_none());
}
