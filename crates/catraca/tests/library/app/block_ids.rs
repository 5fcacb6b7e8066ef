//! A block is found as soon as a decision has named it, and an id releases the block that it names
//! or none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use catraca::app::AppError;
use catraca::core::batch::{Batch, Reply};
use catraca::core::cell::block::Block;
use catraca::event::{BlockEvent, Event};
use catraca::records::{BlockQuery, BlockRow, Incomplete};
use catraca::store::{Store, When};
use catraca::{App, BlockProposal, ManualClock, Memory, Span, Subject, Time};

use super::helpers::{ANA, Nodes, RecordsFile, START, app_with_clock, builder, check};

async fn exceed(app: &App) {
    for _ in 0..4 {
        check(app, "login").await;
    }
}

async fn active_blocks(app: &App) -> Vec<BlockRow> {
    let listed = app.blocks(BlockQuery::default()).await.unwrap().rows;
    listed.into_iter().map(|block| block.row).collect()
}

/// The records are written after the answer to a check. A query or a release that comes right
/// after the answer waits for them.
#[tokio::test]
async fn a_block_is_listed_and_released_right_after_its_check() {
    let file = RecordsFile::new();
    let clock = ManualClock::at(START);
    let app = app_with_clock(&file, &clock);
    for round in 0..100 {
        exceed(&app).await;
        let found = active_blocks(&app).await;
        let [block] = &found[..] else { panic!("round {round}: {found:?}") };
        let history = app.block_with_history(block.id, None).await.unwrap().history;
        assert_eq!(history.len(), 1, "round {round}: {history:?}");
        app.release(&ANA, block.id, None, false).await.unwrap();
        assert!(active_blocks(&app).await.is_empty(), "round {round}");
        clock.advance(Span::from_secs(61));
    }
}

/// Time is virtual: the wait ends as soon as nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_query_that_does_not_wait_any_longer_for_the_records_is_reported() {
    let file = RecordsFile::new();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&reported);
    let listener = move |event: &Event<'_>| {
        if let Event::RecordsBehind { waited, .. } = event {
            events.lock().unwrap().push(*waited);
        }
    };
    let engine = builder(&ManualClock::at(START)).listener(listener).build();
    let app = App::local(engine).records(Arc::clone(&file.records)).build();
    assert!(active_blocks(&app).await.is_empty());
    reported.lock().unwrap().clear();

    let other_writer = file.hold_writes();
    exceed(&app).await;
    let listed = app.blocks(BlockQuery::default()).await.unwrap();
    assert!(listed.rows.is_empty(), "the block is queued");
    assert_eq!(listed.incomplete, Some(Incomplete::Queued));
    assert_eq!(std::mem::take(&mut *reported.lock().unwrap()), [Duration::from_secs(1)]);
    drop(other_writer);
    file.records.flush().unwrap();
    assert_eq!(active_blocks(&app).await.len(), 1);
}

/// Regression: while a database hung, an act was answered when its connection timed out.
#[tokio::test(start_paused = true)]
async fn an_act_does_not_wait_longer_than_two_seconds_for_the_records() {
    let file = RecordsFile::new();
    let app = app_with_clock(&file, &ManualClock::at(START));
    assert!(active_blocks(&app).await.is_empty());
    let other_writer = file.hold_writes();
    let subject = Subject::from([("ip", "192.0.2.9")]);
    let proposal = BlockProposal::by_operator(Span::from_secs(600), None);
    let begun = tokio::time::Instant::now();
    let blocked = app.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    assert!(!blocked.durable);
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!(file.records.health().refused, 1);
    drop(other_writer);
    file.records.flush().unwrap();
    assert_eq!(active_blocks(&app).await.len(), 1, "it was queued");
}

#[tokio::test]
async fn a_stale_id_releases_nothing_and_names_the_later_block() {
    let file = RecordsFile::new();
    let clock = ManualClock::at(START);
    let app = app_with_clock(&file, &clock);
    exceed(&app).await;
    let first = active_blocks(&app).await[0].id;
    clock.advance(Span::from_secs(300));
    exceed(&app).await;
    let later = active_blocks(&app).await[0].id;
    assert_ne!(first, later);
    let Err(AppError::NotFound { code, detail }) = app.release(&ANA, first, None, false).await
    else {
        panic!("a stale id released something")
    };
    assert_eq!(code, "not-blocked");
    assert!(detail.contains(&later.to_string()), "{detail}");
    assert_eq!(active_blocks(&app).await.len(), 1);
    assert!(file.audit().is_empty(), "nothing was done");
    app.release(&ANA, later, None, false).await.unwrap();
}

/// Blocks the key of a row for so long, as another node does that has not written its records yet.
fn block_again(memory: &Memory, row: &BlockRow, seconds: i64) -> Block {
    let proposal = BlockProposal::by_operator(Span::from_secs(seconds), None);
    let batch = Batch::Block(vec![(row.subject.key, proposal)]);
    let Ok(Reply::Block(blocks)) = memory.apply(&batch, When::Store) else { panic!("no block") };
    blocks[0].clone().expect("there is room").block
}

fn not_blocked(result: Result<impl Sized, AppError>) -> String {
    let Err(AppError::NotFound { code, detail }) = result else { panic!("something was released") };
    assert_eq!(code, "not-blocked");
    detail
}

/// Regression: the records are read, the block ends, and another one starts before the store
/// releases.
#[tokio::test]
async fn a_block_that_starts_while_its_predecessor_is_released_stays() {
    let nodes = Nodes::start().await;
    exceed(&nodes.here).await;
    let row = active_blocks(&nodes.here).await.remove(0);
    let id = row.id;
    let clock = nodes.clock.clone();
    nodes.store.before_release(move |memory| {
        clock.advance(Span::from_secs(300));
        block_again(memory, &row, 600);
    });
    let detail = not_blocked(nodes.here.release(&ANA, id, None, false).await);
    assert!(detail.contains("has ended already"), "{detail}");
    assert_eq!(check(&nodes.here, "login").await.reason.as_str(), "blocked");
    assert!(nodes.file.audit().is_empty(), "nothing was done");
}

#[tokio::test]
async fn a_block_that_is_extended_while_it_is_released_is_released() {
    let nodes = Nodes::start().await;
    exceed(&nodes.here).await;
    let row = active_blocks(&nodes.here).await.remove(0);
    let id = row.id;
    let records = Arc::clone(&nodes.file.records);
    nodes.store.before_release(move |memory| {
        let block = block_again(memory, &row, 900);
        let event = BlockEvent {
            subject: row.subject.clone(),
            epoch: Time::ZERO,
            first_of_act: None,
            block,
        };
        records.on_event(&Event::Blocked { at: START, block: Box::new(event) });
    });
    let released = nodes.here.release(&ANA, id, None, false).await.unwrap();
    assert_eq!(released.before.block.until, START.after(Span::from_secs(900)));
    assert_eq!(released.after.map(|row| row.id), Some(id), "an extension keeps the id");
    assert!(check(&nodes.here, "login").await.reason.as_str() != "blocked");
}

/// The records of the extension are missing. The store knows no starts, so this looks like a later
/// block.
#[tokio::test]
async fn a_block_with_another_end_than_in_the_records_stays_until_they_agree() {
    let nodes = Nodes::start().await;
    exceed(&nodes.here).await;
    let row = active_blocks(&nodes.here).await.remove(0);
    let id = row.id;
    nodes.store.before_release(move |memory| drop(block_again(memory, &row, 900)));
    let detail = not_blocked(nodes.here.release(&ANA, id, None, false).await);
    assert!(detail.contains("try again, or reset the key"), "{detail}");
    assert_eq!(check(&nodes.here, "login").await.reason.as_str(), "blocked");
    let proposal = BlockProposal::by_operator(Span::from_secs(900), None);
    let subject = super::helpers::subject();
    nodes.here.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    nodes.here.release(&ANA, id, None, false).await.unwrap();
    assert!(check(&nodes.here, "login").await.reason.as_str() != "blocked");
}
