//! A ban of several identities: shown as one, released as one, and never further than one act.

use std::sync::Arc;

use catraca::app::ListedBlock;
use catraca::core::batch::{Batch, Reply};
use catraca::event::{BlockEvent, SubjectKey};
use catraca::records::{BlockQuery, BlockStates};
use catraca::store::{Store, When};
use catraca::{
    App, BlockProposal, Builder, Catalog, Check, Engine, Event, ManualClock, Outcome, Secret,
    Settle, Span, Subject, Time,
};

use super::helpers::{ANA, HeldStore, RecordsFile, START, start_node_with};

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

# Reported costs: the settle starts the blocks.
[policy.spend]
each   = ["customer", "session"]
window = "10 per 1h"
cost   = "reported"
block  = "1h"

[policy.drained]
each   = ["customer", "session"]
window = "10 per 1h"
cost   = { "429" = "drain", default = 1 }

[gate.order]
policies = ["pay", "spend"]

[policy.watched]
each = ["customer", "session"]
mode = "shadow"
ban  = [ { when = "status == 403", for = "1h", reason = "would be refused" } ]
"#;

fn engine(clock: &ManualClock) -> Builder {
    let engine = Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock.clone());
    engine.secret(Secret::from_bytes([7; 32]))
}

fn start(file: &RecordsFile, clock: &ManualClock) -> App {
    App::local(engine(clock).build()).records(Arc::clone(&file.records)).build()
}

async fn ticket(app: &App, gate: &str, customer: &str, session: &str) -> String {
    let check = Check::new(gate, [("customer", customer), ("session", session)]);
    app.check(&check).await.unwrap().ticket.unwrap()
}

async fn ban(app: &App, ticket: &str) {
    settle(app, ticket, &Outcome::status(403)).await;
}

async fn settle(app: &App, ticket: &str, outcome: &Outcome) {
    app.settle(&Settle::ticket(ticket, outcome)).await.unwrap();
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

/// Asserts that a gate has these blocks of one act, and that a release of one ends all of them.
async fn assert_released_together(app: &App, gate: &str, policies: &[&str]) {
    let listed = list(app, BlockQuery::default()).await;
    let [one] = &listed[..] else { panic!("one settle is one entry: {listed:?}") };
    let rows = std::iter::once(&one.row).chain(&one.members);
    let mut blocked: Vec<&str> = rows.map(|row| row.subject.policy.as_str()).collect();
    blocked.sort_unstable();
    assert_eq!(blocked, policies);
    let released = app.release_and_reset(&ANA, one.row.id, None, false).await.unwrap();
    assert!(released.counters_reset && released.remaining.is_empty(), "{released:?}");
    assert!(list(app, BlockQuery::default()).await.is_empty());
    assert!(passes(app, gate).await);
}

/// Regression: only bans were grouped, so a release of the customer left the session.
#[tokio::test]
async fn the_blocks_that_the_excess_of_a_settle_starts_are_released_together() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    let ticket = ticket(&app, "spend", "c1", "s1").await;
    settle(&app, &ticket, &Outcome { cost: Some(50), ..Outcome::default() }).await;
    assert_released_together(&app, "spend", &["spend", "spend"]).await;
}

/// Regression: as above, for an upstream that drains the quota and says when it will be back.
#[tokio::test]
async fn the_blocks_that_an_upstream_asks_for_are_released_together() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    let ticket = ticket(&app, "drained", "c1", "s1").await;
    let headers = vec![("retry-after".to_owned(), "600".to_owned())];
    settle(&app, &ticket, &Outcome { headers, ..Outcome::status(429) }).await;
    assert_released_together(&app, "drained", &["drained", "drained"]).await;
}

/// Regression: the bans of two policies by one settle were two acts.
#[tokio::test]
async fn the_blocks_of_several_policies_by_one_settle_are_released_together() {
    let file = RecordsFile::new();
    let app = start(&file, &ManualClock::at(START));
    let ticket = ticket(&app, "order", "c1", "s1").await;
    settle(&app, &ticket, &Outcome { cost: Some(50), ..Outcome::status(403) }).await;
    assert_released_together(&app, "order", &["pay", "pay", "spend", "spend"]).await;
}

/// A member of a ban that another node extends before the release reaches the store.
fn extend_member(nodes: &Nodes, is_recorded: bool) {
    let session = nodes.keys()[1].clone();
    let records = Arc::clone(&nodes.file.records);
    nodes.store.before_release(move |memory| {
        let proposal = BlockProposal::by_operator(Span::from_secs(90_000), None);
        let batch = Batch::Block(vec![(session.key, proposal)]);
        let Ok(Reply::Block(blocks)) = memory.apply(&batch, When::Store) else {
            panic!("no block")
        };
        let block = blocks[0].clone().expect("there is room").block;
        let event = BlockEvent { subject: session, epoch: Time::ZERO, first_of_act: None, block };
        if is_recorded {
            records.on_event(&Event::Blocked { at: START, block: Box::new(event) });
        }
    });
}

/// A node over a store that other nodes use too.
struct Nodes {
    file: RecordsFile,
    store: HeldStore,
    app: App,
}

impl Nodes {
    async fn start() -> Self {
        let clock = ManualClock::at(START);
        let store = HeldStore::new(&clock);
        let file = RecordsFile::new();
        let app = start_node_with(engine(&clock), &store, &file).await;
        ban(&app, &ticket(&app, "pay", "c1", "s1").await).await;
        Self { file, store, app }
    }

    /// The keys of the customer and the session.
    fn keys(&self) -> Vec<SubjectKey> {
        let mut found = self.file.records.blocks(&BlockQuery::default(), START).unwrap().rows;
        let members = self.file.records.members(&found[0], START).unwrap();
        found.extend(members);
        found.sort_by(|one, other| one.subject.parts.cmp(&other.subject.parts));
        found.into_iter().map(|row| row.subject).collect()
    }
}

/// Regression: a member with another end in the store was left out of the answer, which said
/// "released".
#[tokio::test]
async fn a_member_that_is_extended_during_the_release_is_released_too() {
    let nodes = Nodes::start().await;
    let customer = list(&nodes.app, of_customer(&nodes.app, "c1")).await.remove(0).row;
    extend_member(&nodes, true);
    let released = nodes.app.release(&ANA, customer.id, None, false).await.unwrap();
    assert_eq!((released.members.len(), released.remaining.len()), (1, 0), "{released:?}");
    assert!(!is_blocked(&nodes.app, "c1", "s1").await);
}

/// Regression: as above. The records do not know of the extension, so that the store's block may be
/// a later one: it stays, and the answer says so.
#[tokio::test]
async fn a_member_that_stays_is_reported() {
    let nodes = Nodes::start().await;
    let customer = list(&nodes.app, of_customer(&nodes.app, "c1")).await.remove(0).row;
    extend_member(&nodes, false);
    let released = nodes.app.release(&ANA, customer.id, None, false).await.unwrap();
    let [left] = &released.remaining[..] else { panic!("{released:?}") };
    assert_eq!((&*left.subject.parts[0].0, released.members.len()), ("session", 0));
    assert!(is_blocked(&nodes.app, "c9", "s1").await && !is_blocked(&nodes.app, "c1", "s9").await);
    let again = nodes.app.release(&ANA, customer.id, None, false).await.unwrap_err().to_string();
    assert!(again.contains("has ended already"), "{again}");
    assert!(again.contains(&left.id.to_string()), "a repeated call names what is left: {again}");
    let subject = Subject::from([("session", "s1")]);
    nodes.app.reset(&ANA, "default", "pay", &subject).await.unwrap();
    assert!(!is_blocked(&nodes.app, "c1", "s1").await);
}

/// Regression: block and members were released by two calls of the store.
#[tokio::test]
async fn a_release_is_one_call_of_the_store() {
    let nodes = Nodes::start().await;
    let customer = list(&nodes.app, of_customer(&nodes.app, "c1")).await.remove(0).row;
    let calls = nodes.store.releases();
    nodes.app.release(&ANA, customer.id, None, false).await.unwrap();
    assert_eq!(nodes.store.releases() - calls, 1);
}
