//! A ban of several identities: shown as one, released as one, and never further than one act.

use std::sync::Arc;

use catraca::app::ListedBlock;
use catraca::records::{BlockQuery, BlockStates};
use catraca::{App, Catalog, Check, Engine, ManualClock, Outcome, Secret, Settle, Span, Subject};

use super::helpers::{ANA, RecordsFile, START};

const CATALOG: &str = r#"
[policy.pay]
each = ["customer", "session"]
[[policy.pay.ban]]
when   = "status == 403"
for    = { first = "1h", factor = 2, max = "8h", forget = "24h" }
reason = "refused upstream"

[policy.burst]
each   = ["customer", "session"]
window = "2 per 1m"
block  = "1h"

[policy.watched]
each = ["customer", "session"]
mode = "shadow"
ban  = [ { when = "status == 403", for = "1h", reason = "would be refused" } ]
"#;

fn start(file: &RecordsFile, clock: &ManualClock) -> App {
    let engine = Engine::builder(Catalog::parse(CATALOG).unwrap())
        .clock(clock.clone())
        .secret(Secret::from_bytes([7; 32]))
        .build();
    App::local(engine).records(Arc::clone(&file.records)).build()
}

async fn ticket(app: &App, gate: &str, customer: &str, session: &str) -> String {
    let check = Check::new(gate, [("customer", customer), ("session", session)]);
    app.check(&check).await.unwrap().ticket.unwrap()
}

async fn ban(app: &App, ticket: &str) {
    app.settle(&Settle::ticket(ticket, &Outcome::status(403))).await.unwrap();
}

async fn is_blocked(app: &App, customer: &str, session: &str) -> bool {
    let check = Check::new("pay", [("customer", customer), ("session", session)]);
    !app.peek(&check).await.unwrap().allowed
}

async fn list(app: &App, query: BlockQuery) -> Vec<ListedBlock> {
    app.blocks(query).await.unwrap().rows
}

/// The active blocks of a customer.
fn of_customer(app: &App, customer: &str) -> BlockQuery {
    let about = app.stored_values("customer", customer).unwrap();
    BlockQuery { about, ..BlockQuery::default() }
}

#[tokio::test]
async fn a_release_of_one_identity_releases_what_the_same_ban_blocked() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    ban(&app, &ticket(&app, "pay", "c1", "s1").await).await;
    assert!(is_blocked(&app, "c1", "s9").await && is_blocked(&app, "c9", "s1").await);
    let listed = list(&app, BlockQuery::default()).await;
    let [one] = &listed[..] else { panic!("one ban is one entry: {listed:?}") };
    assert_eq!((one.members.len(), one.row.block.level), (1, 1));
    let found = list(&app, of_customer(&app, "c1")).await;
    assert_eq!((found.len(), found[0].members.len()), (1, 1));
    assert_eq!(found[0].row.subject.parts[0].0, "customer");

    let shown = app.block_with_history(found[0].row.id, None).await.unwrap();
    assert_eq!((shown.members.len(), shown.history[0].level), (1, 1));
    let released = app.release(&ANA, found[0].row.id, None, false).await.unwrap();
    assert_eq!(released.members, found[0].members);
    assert!(!is_blocked(&app, "c1", "s1").await);
    assert!(list(&app, BlockQuery::default()).await.is_empty());
    let acts: Vec<String> = file.audit().into_iter().map(|row| row.act).collect();
    assert_eq!(acts, ["release", "release"]);
}

#[tokio::test]
async fn only_restricts_a_release_to_one_identity() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    ban(&app, &ticket(&app, "pay", "c1", "s1").await).await;
    let customer = list(&app, of_customer(&app, "c1")).await.remove(0).row;
    let released = app.release(&ANA, customer.id, None, true).await.unwrap();
    assert!(released.members.is_empty());
    assert!(!is_blocked(&app, "c1", "s9").await);
    assert!(is_blocked(&app, "c9", "s1").await);
    let left = list(&app, BlockQuery::default()).await;
    assert_eq!((left.len(), left[0].members.len()), (1, 0));
}

/// Two customers share a session, and each is banned with it: a release of the first customer ends
/// the session's block, which both bans made, and not that of the second customer.
#[tokio::test]
async fn a_release_goes_one_hop_and_not_further() {
    let file = RecordsFile::new();
    let clock = ManualClock::at(START);
    let app = start(&file, &clock);
    // Both are admitted before either is banned.
    let first = ticket(&app, "pay", "c1", "shared").await;
    let second = ticket(&app, "pay", "c2", "shared").await;
    ban(&app, &first).await;
    clock.advance(Span::from_secs(1));
    ban(&app, &second).await;
    let customer = list(&app, of_customer(&app, "c1")).await.remove(0).row;
    app.release(&ANA, customer.id, None, false).await.unwrap();
    assert!(!is_blocked(&app, "c1", "shared").await, "the first ban blocked the session too");
    assert!(is_blocked(&app, "c2", "s9").await, "only the second ban blocked this customer");
}

/// A shadow ban is in the history as such, and lists and releases ignore it.
#[tokio::test]
async fn a_shadow_ban_is_recorded_as_one() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    let ticket = ticket(&app, "watched", "c1", "s1").await;
    let outcome = Outcome::status(403);
    let answer = app.settle(&Settle::ticket(&ticket, &outcome)).await.unwrap();
    assert!(answer.settlement.rows.iter().all(|row| row.blocked_by.is_none()));
    assert!(list(&app, BlockQuery::default()).await.is_empty());
    let all = BlockQuery { states: BlockStates::All, ..BlockQuery::default() };
    assert!(list(&app, all).await.is_empty());
    let about = app.stored_values("customer", "c1").unwrap();
    let recorded = file.records.export(&about, None).unwrap().blocks;
    let [(row, history)] = &recorded[..] else { panic!("{recorded:?}") };
    assert!(row.block.shadow && history.len() == 1, "{row:?}");
}

async fn passes(app: &App, gate: &str) -> bool {
    let check = Check::new(gate, [("customer", "c1"), ("session", "s1")]);
    app.check(&check).await.unwrap().allowed
}

async fn exceed(app: &App) {
    while passes(app, "burst").await {}
}

/// Regression: an excess of a customer and a session made two blocks that nothing connected; a
/// release of one left the other.
#[tokio::test]
async fn the_blocks_of_one_excess_are_released_together() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    exceed(&app).await;
    let listed = list(&app, BlockQuery::default()).await;
    let [one] = &listed[..] else { panic!("one excess is one entry: {listed:?}") };
    assert_eq!(one.members.len(), 1);
    app.release(&ANA, one.row.id, None, false).await.unwrap();
    assert!(list(&app, BlockQuery::default()).await.is_empty());
}

/// Regression: while the window was full, the check after a release started a new block.
#[tokio::test]
async fn a_release_that_resets_the_counters_lets_the_caller_pass() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    exceed(&app).await;
    let id = list(&app, BlockQuery::default()).await[0].row.id;
    app.release(&ANA, id, None, false).await.unwrap();
    assert!(!passes(&app, "burst").await, "the window is still full");
    let id = list(&app, BlockQuery::default()).await[0].row.id;
    let released = app.release_and_reset(&ANA, id, None, false).await.unwrap();
    assert!(released.durable);
    assert!(passes(&app, "burst").await);
    let acts: Vec<String> = file.audit().into_iter().map(|row| row.act).collect();
    assert_eq!(acts.iter().filter(|act| *act == "reset").count(), 2, "{acts:?}");
}

/// Regression: a reset of the customer left the session, which the same ban had blocked.
#[tokio::test]
async fn a_reset_of_one_identity_releases_what_the_same_ban_blocked() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    ban(&app, &ticket(&app, "pay", "c1", "s1").await).await;
    let subject = Subject::from([("customer", "c1")]);
    let reset = app.reset(&ANA, "default", "pay", &subject).await.unwrap();
    let members = reset.members.unwrap();
    assert_eq!(members.len(), 1, "{members:?}");
    assert_eq!(members[0].subject.parts[0].0, "session");
    assert!(!is_blocked(&app, "c1", "s1").await && !is_blocked(&app, "c9", "s1").await);
    assert!(list(&app, BlockQuery::default()).await.is_empty());
}
