//! What nodes tell each other through PostgreSQL.

use std::sync::Arc;

use catraca::store::SharedStore;
use catraca_testkit::postgres::PostgresServer;

use super::helpers::{Database, long_deadline, runtime};
use crate::node_messages::{blocks_count_without_the_store, messages_are_carried};

#[test]
fn messages_are_carried_by_postgresql() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    messages_are_carried(&runtime, &store);
}

#[test]
fn blocks_and_releases_of_another_node_count_without_postgresql() {
    let server = Arc::new(PostgresServer::start());
    let database = Database::on(Arc::clone(&server));
    let runtime = runtime();
    let store = || {
        let store = runtime.block_on(database.open(long_deadline()));
        Arc::new(store) as Arc<dyn SharedStore>
    };
    let stores = [store(), store()];
    blocks_count_without_the_store(&runtime, stores, || server.stop("QUIT"));
}
