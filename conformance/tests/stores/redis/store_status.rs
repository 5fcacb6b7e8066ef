//! The status of the store that nodes share: published changes, bound records and incarnation.

use catraca::store::{SharedStore, StoreStatus};
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::redis::{RedisServer, until};

use super::helpers::connect;

fn status(store: &BlockingStore<impl SharedStore>) -> StoreStatus {
    store.handle().block_on(store.store().status()).expect("the store is available")
}

#[test]
fn every_node_hears_of_a_change_and_sees_the_same_life() {
    let Some(server) = RedisServer::start() else { return };
    let one = connect(&server.url());
    let other = connect(&server.url());
    let before = status(&one);
    assert_eq!((before.changes, before.incarnation), (0, status(&other).incarnation));
    other.handle().block_on(other.store().publish_change()).unwrap();
    let after = status(&one);
    assert_eq!((after.changes, after.incarnation), (1, before.incarnation));
    assert!(after.now >= before.now, "{before:?} {after:?}");
}

#[test]
fn the_first_records_are_the_records_of_all() {
    let Some(server) = RedisServer::start() else { return };
    let one = connect(&server.url());
    let other = connect(&server.url());
    let bind = |node: &BlockingStore<_>, records| {
        let store: &catraca::redis::RedisStore = node.store();
        node.handle().block_on(store.bind_records(records)).unwrap()
    };
    assert_eq!(bind(&one, "a"), "a");
    assert_eq!(bind(&other, "b"), "a");
    assert_eq!(bind(&one, "a"), "a");
}

#[test]
fn an_emptied_store_and_a_restarted_one_are_other_lives() {
    let Some(mut server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    let first = status(&store).incarnation;
    server.command(&["FLUSHALL"]);
    let second = status(&store).incarnation;
    assert_ne!(first, second);
    server.kill();
    server.restart();
    until("the store is back", || store.handle().block_on(store.store().status()).is_ok());
    let third = status(&store).incarnation;
    assert!(third != first && third != second);
}
