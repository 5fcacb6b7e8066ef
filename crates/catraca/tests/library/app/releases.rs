//! A release that took effect is answered as one, also if a later step fails.

use std::sync::Arc;

use catraca::core::batch::{Batch, Reply};
use catraca::core::digest::Key;
use catraca::records::{BlockQuery, BlockRow};
use catraca::store::{Store, When};
use catraca::{
    App, BlockProposal, Catalog, Check, Engine, ManualClock, Outcome, Secret, Settle, Span,
};

use super::helpers::{ANA, HeldStore, RecordsFile, START, start_node_with};

const CATALOG: &str = r#"
[policy.pay]
each = ["customer", "session"]
ban  = [ { when = "status == 403", for = "1h", reason = "refused upstream" } ]
"#;

/// A node over a store that other nodes use too, with a customer and a session that are banned.
struct Node {
    store: HeldStore,
    file: Arc<RecordsFile>,
    app: App,
    customer: BlockRow,
    session: BlockRow,
}

impl Node {
    async fn start() -> Self {
        let clock = ManualClock::at(START);
        let store = HeldStore::new(&clock);
        let file = Arc::new(RecordsFile::new());
        let engine = Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock);
        let engine = engine.secret(Secret::from_bytes([7; 32]));
        let app = start_node_with(engine, &store, &file).await;
        let check = Check::new("pay", [("customer", "c1"), ("session", "s1")]);
        let ticket = app.check(&check).await.unwrap().ticket.unwrap();
        let outcome = Outcome::status(403);
        app.settle(&Settle::ticket(&ticket, &outcome)).await.unwrap();
        let listed = app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
        let mut rows = vec![listed.row];
        rows.extend(listed.members);
        rows.sort_by(|one, other| one.subject.parts.cmp(&other.subject.parts));
        let [customer, session] = <[BlockRow; 2]>::try_from(rows).unwrap();
        Self { store, file, app, customer, session }
    }

    /// Makes every read of the records fail from the next release on.
    fn fail_reads_after_the_release(&self) {
        let file = Arc::clone(&self.file);
        self.store.before_release(move |_| file.fail_reads());
    }

    async fn is_blocked(&self, name: &str, value: &str) -> bool {
        let other = if name == "customer" { ("session", "s9") } else { ("customer", "c9") };
        let check = Check::new("pay", [(name, value), other]);
        !self.app.peek(&check).await.unwrap().allowed
    }

    async fn assert_free(&self) {
        assert!(!self.is_blocked("customer", "c1").await);
        assert!(!self.is_blocked("session", "s1").await);
    }
}

/// Regression: the error of the reset was dropped.
#[tokio::test]
async fn a_reset_that_fails_after_a_release_is_reported() {
    let node = Node::start().await;
    node.store.refuse_resets();
    let released = node.app.release_and_reset(&ANA, node.customer.id, None, false).await.unwrap();
    let error = released.reset_error.expect("the store refused the reset");
    assert!(error.contains("the test refuses resets"), "{error}");
    assert!(!released.counters_reset);
    assert_eq!((released.members.len(), released.remaining.len()), (1, 0));
}

/// Regression: a release that took effect was answered with the error of the read after it.
#[tokio::test]
async fn a_release_whose_new_end_cannot_be_read_is_done() {
    let node = Node::start().await;
    node.fail_reads_after_the_release();
    let released = node.app.release(&ANA, node.customer.id, None, false).await.unwrap();
    let error = released.read_error.expect("the records cannot be read");
    assert!(error.contains("subjects"), "{error}");
    assert!(released.after.is_none());
    assert_eq!((released.before.id, released.members.len()), (node.customer.id, 1));
    node.assert_free().await;
}

/// Regression: as above, and the reset was skipped.
#[tokio::test]
async fn counters_are_reset_although_the_new_end_cannot_be_read() {
    let node = Node::start().await;
    node.fail_reads_after_the_release();
    let released = node.app.release_and_reset(&ANA, node.customer.id, None, false).await.unwrap();
    assert!(released.counters_reset && released.read_error.is_some(), "{released:?}");
    assert_eq!(released.reset_error, None);
    node.assert_free().await;
}

/// Regression: as above, of a release that ended only another block of the act: the store has a
/// later block of the customer.
#[tokio::test]
async fn a_release_of_the_other_blocks_is_named_although_the_records_cannot_be_read() {
    let node = Node::start().await;
    let file = Arc::clone(&node.file);
    let key: Key = node.customer.subject.key;
    node.store.before_release(move |memory| {
        let proposal = BlockProposal::by_operator(Span::from_secs(90_000), None);
        let blocked = memory.apply(&Batch::Block(vec![(key, proposal)]), When::Store);
        assert!(matches!(blocked, Ok(Reply::Block(_))));
        file.fail_reads();
    });
    let error = node.app.release(&ANA, node.customer.id, None, false).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("only other blocks of its act were released"), "{text}");
    assert!(text.contains(&node.session.id.to_string()), "{text}");
    assert!(!node.is_blocked("session", "s1").await && node.is_blocked("customer", "c1").await);
}
