//! Answers from records that are not up to date say so.

use catraca::app::Inspection;
use catraca::records::{AuditQuery, BlockId, BlockQuery, Incomplete, ListName};
use catraca::{App, ManualClock};

use super::helpers::{ANA, RecordsFile, START, app_with_clock, check, proposal, subject};

/// What every query of the records says about its answer.
async fn all_answers(app: &App, block: BlockId) -> Vec<Option<Incomplete>> {
    let Inspection { incomplete: inspected, .. } =
        app.inspect("default", &subject()).await.unwrap();
    vec![
        app.blocks(BlockQuery::default()).await.unwrap().incomplete,
        app.block_with_history(block, None).await.unwrap().incomplete,
        inspected,
        app.list_entries(ListName::Block, None, None, 10).await.unwrap().incomplete,
        app.stated_facts(None, None, 10).await.unwrap().incomplete,
        app.audit(AuditQuery::default()).await.unwrap().incomplete,
    ]
}

async fn blocked_app(file: &RecordsFile) -> (App, BlockId) {
    let app = app_with_clock(file, &ManualClock::at(START));
    let created = app.block(&ANA, "default", "pay", &subject(), proposal(None)).await.unwrap();
    (app, created.blocks[0].2.unwrap())
}

/// Time is virtual: the wait ends as soon as nothing else happens.
#[tokio::test]
async fn an_answer_without_queued_records_says_so() {
    let file = RecordsFile::new();
    let (app, block) = blocked_app(&file).await;
    tokio::time::pause();
    let other_writer = file.hold_writes();
    for _ in 0..4 {
        check(&app, "login").await;
    }
    assert_eq!(all_answers(&app, block).await, [Some(Incomplete::Queued); 6]);
    drop(other_writer);
    file.records.flush().unwrap();
    // A wait in virtual time may end before the writer has answered.
    tokio::time::resume();
    assert_eq!(all_answers(&app, block).await, [None; 6]);
    assert_eq!(app.blocks(BlockQuery::default()).await.unwrap().rows.len(), 2);
}

#[tokio::test]
async fn an_answer_while_nothing_can_be_written_says_so() {
    let file = RecordsFile::new();
    let (app, block) = blocked_app(&file).await;
    assert_eq!(all_answers(&app, block).await, [None; 6]);
    file.records.stop();
    assert_eq!(all_answers(&app, block).await, [Some(Incomplete::Unwritable); 6]);
    let unknown = app.block_with_history(block, Some("other")).await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("newest entries may be missing"), "{unknown}");
}
