//! What a settle says about the disk: blocks and debts are there before the answer.

use catraca::app::SettleAnswer;
use catraca::records::BlockQuery;
use catraca::settlement::SettleState;
use catraca::{App, Outcome, Settle};

use super::helpers::{RecordsFile, app_with, app_without_records, check};

const COUNTED: u16 = 200;
const INDEBTED: u16 = 404;
const BANNED: u16 = 403;

async fn settle(app: &App, ticket: &str, status: u16) -> SettleAnswer {
    app.settle(&Settle::ticket(ticket, &Outcome::status(status))).await.unwrap()
}

async fn check_and_settle(app: &App, status: u16) -> (String, SettleAnswer) {
    let ticket = check(app, "pay").await.ticket.unwrap();
    let answer = settle(app, &ticket, status).await;
    (ticket, answer)
}

#[tokio::test]
async fn a_ban_is_on_disk_before_the_answer() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let (ticket, answer) = check_and_settle(&app, BANNED).await;
    assert_eq!(answer.durable, Some(true));
    let rows = file.records.blocks(&BlockQuery::default(), app.now()).unwrap().rows;
    assert_eq!((rows.len(), rows[0].block.note.reason.as_deref()), (1, Some("refused upstream")));
    let again = settle(&app, &ticket, BANNED).await;
    assert_eq!((again.settlement.state, again.durable), (SettleState::Again, None));
}

#[tokio::test]
async fn a_debt_is_on_disk_before_the_answer() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let (_, answer) = check_and_settle(&app, INDEBTED).await;
    assert_eq!((answer.settlement.rows[0].balance, answer.durable), (Some(-1), Some(true)));
    assert_eq!(file.records.health().written, 1);
}

#[tokio::test]
async fn nothing_is_promised_about_counters() {
    let file = RecordsFile::new();
    let app = app_with(&file);
    let (_, answer) = check_and_settle(&app, COUNTED).await;
    assert_eq!((answer.settlement.rows[0].charged, answer.durable), (1, None));
    assert_eq!(file.records.health().written, 0);
}

#[tokio::test]
async fn without_records_a_ban_applies_and_is_not_on_disk() {
    for (status, durable) in [(BANNED, Some(false)), (INDEBTED, Some(false)), (COUNTED, None)] {
        let app = app_without_records();
        let (_, answer) = check_and_settle(&app, status).await;
        assert_eq!(answer.durable, durable, "status {status}");
        assert_eq!(check(&app, "pay").await.allowed, status == COUNTED, "status {status}");
    }
}
