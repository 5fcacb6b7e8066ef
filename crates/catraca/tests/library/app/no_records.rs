//! Without records, acts that would be lost at a restart are refused.

use catraca::AppError;
use catraca::records::ListName;

use super::every_act::{set_up, some_block, state, try_every_act};
use super::helpers::{ANA, app_without_records};

#[tokio::test]
async fn every_act_is_refused_and_changes_nothing() {
    let app = app_without_records();
    set_up(&app);
    let before = state(&app).await;
    for (act, result) in try_every_act(&app, &ANA).await {
        assert!(matches!(result, Err(AppError::NoRecords)), "{act}: {result:?}");
    }
    assert_eq!(state(&app).await, before);
}

#[tokio::test]
async fn every_query_of_the_records_is_refused() {
    let app = app_without_records();
    let now = app.now();
    let queries = [
        app.blocks(Default::default()).await.map(drop),
        app.block_with_history(some_block(), None).await.map(drop),
        app.list_entries(ListName::Block, None, None, 9).await.map(drop),
        app.stated_facts(None, None, 9).await.map(drop),
        app.totals(None, now, now).await.map(drop),
        app.top_blocked(None, now, 9).await.map(drop),
        app.audit(Default::default()).await.map(drop),
    ];
    for (number, result) in queries.into_iter().enumerate() {
        assert!(matches!(result, Err(AppError::NoRecords)), "query {number}: {result:?}");
    }
}
