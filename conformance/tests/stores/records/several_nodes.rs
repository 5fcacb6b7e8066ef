//! Several nodes on one database: every act is written once, in one order, with correct sums.

use std::sync::Arc;

use catraca::Time;
use catraca::records::{
    AuditNote, AuditQuery, BlockQuery, MinuteCount, Record, RecordKind, Records,
};

use super::helpers::{TestDatabase, at, excess_block, write};

const ACTS: i64 = 200;

fn act(records: &Records, node: i64, number: i64) {
    let address = format!("198.51.{node}.{number}");
    let noted = AuditNote { act: "note".to_owned(), target: format!("{node}.{number}") };
    let count = MinuteCount {
        minute: 1,
        namespace: "default".to_owned(),
        action: "login".to_owned(),
        policy: String::new(),
        allowed: 1,
        denied: 0,
        blocked: 0,
    };
    write(
        records,
        vec![
            // Every node blocks the first address, and one of its own.
            excess_block("login", "198.51.100.1", at(number), at(1_000 + number)),
            excess_block("login", &address, at(0), at(1_000)),
            Record::operator(at(0), "ana", None, RecordKind::Note(noted)),
            Record::automatic(Time::ZERO, RecordKind::Count(vec![count])),
        ],
    );
}

///
#[test]
fn two_nodes_write_to_one_database_without_a_loss() {
    let database = TestDatabase::new();
    // Both nodes find no schema, and one of them creates it.
    let open = || database.open();
    std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..2)
            .map(|node| {
                scope.spawn(move || {
                    let records = open();
                    (0..ACTS).for_each(|number| act(&records, node, number));
                    assert_eq!((records.health().failures, records.health().refused), (0, 0));
                })
            })
            .collect();
        nodes.into_iter().for_each(|node| node.join().unwrap());
    });
    let records = Arc::new(database.open());
    let all = BlockQuery { limit: 1_000, ..BlockQuery::default() };
    assert_eq!(records.blocks(&all, at(500)).unwrap().rows.len() as i64, 2 * ACTS + 1);
    let audited = AuditQuery { limit: 1_000, ..AuditQuery::default() };
    assert_eq!(records.audit(&audited).unwrap().rows.len() as i64, 2 * ACTS);
    let total = records.actions(None, Time::ZERO, at(0)).unwrap()[0].total;
    assert_eq!(total as i64, 2 * ACTS);
    let steps = "SELECT act, count(*) FROM catraca.history AS h JOIN catraca.subjects AS s
                 ON s.id = h.subject WHERE identifier = '198.51.100.1' GROUP BY act ORDER BY act";
    let extended = (2 * ACTS - 1).to_string();
    assert_eq!(database.rows(steps), [["extended", &extended], ["started", "1"]]);
}
