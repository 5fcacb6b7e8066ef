//! What nodes tell each other through the store, and which life of it they see.

use catraca::store::{SharedStore, StoreStatus};
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::redis::{RedisServer, until};

use super::desk::connect;

fn pulse(store: &BlockingStore<impl SharedStore>) -> StoreStatus {
    store.handle().block_on(store.store().status()).expect("the store lives")
}

#[test]
fn every_node_hears_of_a_change_and_sees_the_same_life() {
    let Some(server) = RedisServer::start() else { return };
    let (one, other) = (connect(&server.url()), connect(&server.url()));
    let before = pulse(&one);
    assert_eq!((before.changes, before.incarnation), (0, pulse(&other).incarnation));
    other.handle().block_on(other.store().publish_change()).unwrap();
    let after = pulse(&one);
    assert_eq!((after.changes, after.incarnation), (1, before.incarnation));
    assert!(after.now >= before.now, "{before:?} {after:?}");
}

#[test]
fn the_first_records_are_the_records_of_all() {
    let Some(server) = RedisServer::start() else { return };
    let (one, other) = (connect(&server.url()), connect(&server.url()));
    let claim = |node: &BlockingStore<_>, records| {
        let store: &catraca::redis::RedisStore = node.store();
        node.handle().block_on(store.bind_records(records)).unwrap()
    };
    assert_eq!(claim(&one, "a"), "a");
    assert_eq!(claim(&other, "b"), "a");
    assert_eq!(claim(&one, "a"), "a");
}

#[test]
fn an_emptied_store_and_a_restarted_one_are_other_lives() {
    let Some(mut server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    let first = pulse(&store).incarnation;
    server.command(&["FLUSHALL"]);
    let second = pulse(&store).incarnation;
    assert_ne!(first, second);
    server.kill();
    server.restart();
    until("the store is back", || store.handle().block_on(store.store().status()).is_ok());
    let third = pulse(&store).incarnation;
    assert!(third != first && third != second);
}
