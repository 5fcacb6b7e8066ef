//! A block is found as soon as a decision has named it, and an id releases the block that it names
//! or none.

use catraca::app::AppError;
use catraca::records::{BlockQuery, BlockRow};
use catraca::{App, ManualClock, Span};

use super::helpers::{ANA, RecordsFile, START, app_with_clock, check};

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
