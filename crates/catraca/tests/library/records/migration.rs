//! A database of an older version keeps its rows.

use catraca::Time;
use catraca::records::RestoredItem;
use rusqlite::Connection;

use super::helpers::TestDatabase;

const VERSION_9: [&str; 9] = [
    include_str!("../../../src/records/sqlite/schema/0001.sql"),
    include_str!("../../../src/records/sqlite/schema/0002.sql"),
    include_str!("../../../src/records/sqlite/schema/0003.sql"),
    include_str!("../../../src/records/sqlite/schema/0004.sql"),
    include_str!("../../../src/records/sqlite/schema/0005.sql"),
    include_str!("../../../src/records/sqlite/schema/0006.sql"),
    include_str!("../../../src/records/sqlite/schema/0007.sql"),
    include_str!("../../../src/records/sqlite/schema/0008.sql"),
    include_str!("../../../src/records/sqlite/schema/0009.sql"),
];

/// Before version 10, entries and facts had no namespace. The highest id that was ever used must
/// stay, because a start compares it with that of the snapshot.
#[test]
fn entries_and_facts_from_before_namespaces_apply_in_all_of_them() {
    let database = TestDatabase::new();
    let connection = Connection::open(database.path()).unwrap();
    VERSION_9.iter().for_each(|step| connection.execute_batch(step).unwrap());
    let rows = "PRAGMA application_id = 0x43415452; PRAGMA user_version = 9;
        INSERT INTO lists (id, list, attribute, value, at) VALUES
            (7, 'blocklist', '', '203.0.113.0/24', 1), (9, 'allowlist', 'customer', 'ana', 1),
            (40, 'allowlist', 'customer', 'gone', 1);
        DELETE FROM lists WHERE id = 40;
        INSERT INTO facts VALUES ('customer', 'ana', 'plan', 'gold', 1, 'ana');";
    connection.execute_batch(rows).unwrap();
    let sequence = |connection: &Connection| -> i64 {
        let sql = "SELECT sum(seq) FROM sqlite_sequence";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = sequence(&connection);
    connection.close().unwrap();

    let records = database.open();
    let mut lists = Vec::new();
    let mut facts = Vec::new();
    let visit = |item| match item {
        RestoredItem::List(_, entry) => lists.push(entry),
        RestoredItem::Fact(fact) => facts.push(fact),
        _ => {}
    };
    records.restore(Time::from_micros(2), Time::ZERO, visit).unwrap();
    assert_eq!((lists.len(), facts.len()), (2, 1));
    assert!(lists.iter().all(|entry| entry.namespace.is_none()), "{lists:?}");
    assert_eq!((facts[0].namespace.as_deref(), facts[0].fact.as_str()), (None, "gold"));
    records.close();
    assert!(sequence(&Connection::open(database.path()).unwrap()) >= before);
    let view = database.rows("SELECT ip_address, namespace FROM ip_blocklist");
    assert_eq!(view.len(), 1, "{view:?}");
    assert_eq!(view[0][0], "203.0.113.0/24");
}
