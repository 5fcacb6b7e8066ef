//! Two nodes with records of their own: the store is the authority for blocks, lists, facts and
//! modes, and the records of each node show them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use catraca::app::ListTargetText;
use catraca::core::policy::Mode;
use catraca::records::{BlockQuery, ListName, Options, Records};
use catraca::shared::RecordsScope;
use catraca::{App, BlockProposal, Check, ManualClock, SharedOptions, Span, Subject};

use super::helpers::{Remote, START, builder, secs};
use super::records::{ANA, range};

const CATALOG: &str = r#"
[attribute.customer]
[policy.login]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
[policy.pay]
by     = ["customer"]
window = "1 per 1m"
tier   = [ { when = { plan = "gold" }, window = "5 per 1m" } ]
"#;

pub struct TestNode {
    pub app: App,
    pub records: Arc<Records>,
    file: PathBuf,
}

impl Drop for TestNode {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.file.parent().unwrap());
    }
}

pub fn new_file() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("catraca-node-scope-{process}-{next}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("catraca.db")
}

pub async fn start(store: &Remote, clock: &ManualClock, file: PathBuf) -> TestNode {
    let url = format!("sqlite:{}", file.display());
    let records = Arc::new(Records::open(&url, Options::default()).unwrap());
    let options =
        SharedOptions { nodes: 2, records: RecordsScope::Node, ..SharedOptions::default() };
    let app = App::over_store(builder(CATALOG, clock), Arc::new(store.clone()), options).unwrap();
    let app = app.records(Arc::clone(&records)).build();
    app.resume(None).await.unwrap();
    TestNode { app, records, file }
}

pub async fn two_nodes() -> (TestNode, TestNode, Remote, ManualClock) {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let here = start(&store, &clock, new_file()).await;
    let there = start(&store, &clock, new_file()).await;
    beat(&clock, &here, &there).await;
    (here, there, store, clock)
}

pub async fn beat(clock: &ManualClock, here: &TestNode, there: &TestNode) {
    clock.advance(Span::from_millis(250));
    for node in [here, there, here, there] {
        node.app.heartbeat().await;
    }
}

pub async fn reason(node: &TestNode, gate: &str, attribute: &str, value: &str) -> String {
    let decision = node.app.check(&Check::new(gate, [(attribute, value)])).await.unwrap();
    decision.reason.as_str().to_owned()
}

async fn active_blocks(node: &TestNode) -> usize {
    node.app.blocks(BlockQuery::default()).await.unwrap().rows.len()
}

#[tokio::test]
async fn lists_facts_and_modes_reach_the_other_node_and_its_records() {
    let (here, there, store, clock) = two_nodes().await;
    let entry = range("192.0.2.0/24");
    let added = here.app.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false).await;
    assert!(added.unwrap().durable);
    let gold = BTreeMap::from([("plan".to_owned(), "gold".to_owned())]);
    let stated = here.app.set_facts(&ANA, None, "customer", "ana", gold).await.unwrap();
    assert!(stated.durable);
    beat(&clock, &here, &there).await;
    assert_eq!(reason(&there, "login", "ip", "192.0.2.1").await, "blocklisted");
    for _ in 0..5 {
        assert_eq!(reason(&there, "pay", "customer", "ana").await, "ok");
    }
    let listed = there.app.list_entries(ListName::Block, None, None, 10).await.unwrap();
    assert_eq!(listed.rows.len(), 1, "its records show the entry");
    let facts = there.app.stated_facts(None, None, 10).await.unwrap();
    assert_eq!(facts.rows.len(), 1);
    let target = ListTargetText::Range("192.0.2.0/24".to_owned());
    there.app.remove_from_list(&ANA, ListName::Block, None, &target).await.unwrap();
    there.app.forget_facts(&ANA, None, "customer", "ana").await.unwrap();
    there.app.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
    beat(&clock, &here, &there).await;
    assert!(here.app.list_entries(ListName::Block, None, None, 10).await.unwrap().rows.is_empty());
    assert!(here.app.stated_facts(None, None, 10).await.unwrap().rows.is_empty());
    assert_eq!(here.app.engine().mode_override("login"), Some(Mode::Off));
    let published = store.published_bytes();
    assert!(!published.windows(5).any(|five| five == b"192.0"), "the store has no value in clear");
}

#[tokio::test]
async fn a_block_of_one_node_is_shown_and_released_on_the_other() {
    let (here, there, store, clock) = two_nodes().await;
    assert_eq!(reason(&here, "login", "ip", "192.0.2.1").await, "ok");
    assert_eq!(reason(&here, "login", "ip", "192.0.2.1").await, "over_limit");
    beat(&clock, &here, &there).await;
    let block = there.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
    let own = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
    assert_eq!(block.row.id, own.row.id);
    clock.advance(secs(1));
    assert!(there.app.release(&ANA, block.row.id, None, false).await.unwrap().durable);
    beat(&clock, &here, &there).await;
    assert_eq!((active_blocks(&here).await, active_blocks(&there).await), (0, 0));
    store.fail(true);
    assert_eq!(reason(&here, "login", "ip", "192.0.2.1").await, "over_limit", "a share of it");
}

#[tokio::test]
async fn a_node_that_was_stopped_takes_over_what_the_store_has() {
    let (here, there, store, clock) = two_nodes().await;
    reason(&there, "login", "ip", "192.0.2.1").await;
    reason(&there, "login", "ip", "192.0.2.1").await;
    there.app.set_mode(&ANA, "pay", Some(Mode::Off)).await.unwrap();
    beat(&clock, &here, &there).await;
    there.records.flush().unwrap();
    let file = there.file.clone();
    let copy = new_file();
    there.records.backup(&copy).unwrap();
    drop(there);
    assert!(!file.exists());
    // While it is stopped, the other node releases the block and sets the mode back.
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
    clock.advance(secs(1));
    here.app.release(&ANA, block.row.id, None, false).await.unwrap();
    here.app.set_mode(&ANA, "pay", None).await.unwrap();
    reason(&here, "login", "ip", "192.0.2.2").await;
    reason(&here, "login", "ip", "192.0.2.2").await;
    here.app.heartbeat().await;
    let again = start(&store, &clock, copy).await;
    assert_eq!(again.app.engine().mode_override("pay"), None);
    assert_eq!(active_blocks(&again).await, 1, "that of the other address");
    store.fail(true);
    assert_eq!(reason(&again, "login", "ip", "192.0.2.2").await, "blocked");
}

#[tokio::test]
async fn an_emptied_store_is_filled_by_running_nodes_and_never_by_records_alone() {
    let (here, there, store, clock) = two_nodes().await;
    let entry = range("198.51.100.0/24");
    here.app.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false).await.unwrap();
    reason(&here, "login", "ip", "192.0.2.1").await;
    reason(&here, "login", "ip", "192.0.2.1").await;
    beat(&clock, &here, &there).await;
    // A block that is not in the records yet would not be published again.
    for node in [&here, &there] {
        node.records.flush().unwrap();
    }
    store.lose_everything();
    beat(&clock, &here, &there).await;
    beat(&clock, &here, &there).await;
    let third = start(&store, &clock, new_file()).await;
    assert_eq!(reason(&third, "login", "ip", "198.51.100.1").await, "blocklisted");
    assert_eq!(active_blocks(&third).await, 1, "the running nodes published the block again");
    here.records.flush().unwrap();
    let copy = new_file();
    here.records.backup(&copy).unwrap();
    drop((here, there, third));
    store.lose_everything();
    let alone = start(&store, &clock, copy).await;
    assert_eq!(reason(&alone, "login", "ip", "198.51.100.1").await, "ok");
    assert_eq!(active_blocks(&alone).await, 0);
    let listed = alone.app.list_entries(ListName::Block, None, None, 10).await.unwrap();
    assert!(listed.rows.is_empty(), "its records do not show what does not deny");
}

#[tokio::test]
async fn without_the_store_an_act_names_the_nodes_that_do_not_know_of_it() {
    let (here, there, store, clock) = two_nodes().await;
    there.app.set_node_name("shop-2");
    beat(&clock, &here, &there).await;
    store.fail(true);
    for _ in 0..3 {
        here.app.heartbeat().await;
    }
    let changed = here.app.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
    assert!(!changed.durable);
    assert_eq!(here.app.nodes_behind(changed.durable), ["shop-2"]);
    let subject = Subject::from([("ip", "192.0.2.5")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), None);
    let blocked = here.app.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    assert!(!blocked.durable);
    store.fail(false);
    beat(&clock, &here, &there).await;
    assert_eq!(there.app.engine().mode_override("login"), Some(Mode::Off));
    assert_eq!(active_blocks(&there).await, 1);
}

#[tokio::test]
async fn an_erasure_reaches_the_records_of_the_other_node() {
    let (here, there, _, clock) = two_nodes().await;
    reason(&here, "login", "ip", "192.0.2.1").await;
    reason(&here, "login", "ip", "192.0.2.1").await;
    beat(&clock, &here, &there).await;
    clock.advance(secs(301));
    assert_eq!(there.app.blocks(all_blocks()).await.unwrap().rows.len(), 1);
    here.app.erase(&ANA, None, "ip", "192.0.2.1").await.unwrap();
    beat(&clock, &here, &there).await;
    assert!(is_soon_erased(&there).await, "the other node still has the block");
}

/// Regression: the erasure was queued before the release, retained the active block, and the block
/// stayed in the records of the other node.
#[tokio::test]
async fn a_release_and_an_erasure_in_one_heartbeat_leave_nothing_on_the_other_node() {
    for round in 0..5 {
        let (here, there, _, clock) = two_nodes().await;
        reason(&here, "login", "ip", "192.0.2.1").await;
        reason(&here, "login", "ip", "192.0.2.1").await;
        beat(&clock, &here, &there).await;
        let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
        clock.advance(secs(1));
        here.app.release(&ANA, block.row.id, None, false).await.unwrap();
        here.app.erase(&ANA, None, "ip", "192.0.2.1").await.unwrap();
        beat(&clock, &here, &there).await;
        assert!(is_soon_erased(&there).await, "round {round}: the other node still has the block");
    }
}

/// Regression: the order to erase did not wait for the next heartbeat, the release did. The other
/// node retained the active block, and its end was recorded after the erasure.
#[tokio::test]
async fn an_erasure_reaches_other_nodes_after_the_releases_before_it() {
    let (here, there, _, clock) = two_nodes().await;
    reason(&here, "login", "ip", "192.0.2.1").await;
    reason(&here, "login", "ip", "192.0.2.1").await;
    beat(&clock, &here, &there).await;
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0);
    clock.advance(secs(1));
    here.app.release(&ANA, block.row.id, None, false).await.unwrap();
    here.app.erase(&ANA, None, "ip", "192.0.2.1").await.unwrap();
    there.app.heartbeat().await;
    assert!(is_soon_erased(&there).await, "before a heartbeat of the node that ordered it");
    beat(&clock, &here, &there).await;
    assert!(is_soon_erased(&there).await, "after it");
}

fn all_blocks() -> BlockQuery {
    BlockQuery { states: catraca::records::BlockStates::All, ..Default::default() }
}

/// Whether a node has no block, ended ones included. An erasure runs in the background; `flush`
/// waits for the writer.
async fn is_soon_erased(node: &TestNode) -> bool {
    for _ in 0..100 {
        node.records.flush().unwrap();
        if node.app.blocks(all_blocks()).await.unwrap().rows.is_empty() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Regression: it answered that the erasure was durable, and only this process knew of it.
#[tokio::test]
async fn an_erasure_without_the_store_is_not_durable_and_reaches_the_other_node_later() {
    let (here, there, store, clock) = two_nodes().await;
    let gold = || BTreeMap::from([("plan".to_owned(), "gold".to_owned())]);
    here.app.set_facts(&ANA, None, "customer", "ana", gold()).await.unwrap();
    beat(&clock, &here, &there).await;
    assert!(here.app.erase(&ANA, None, "customer", "eva").await.unwrap().durable);
    let published = store.published_notices();
    store.fail(true);
    // Before the circuit breaker has opened, and after.
    assert!(!here.app.erase(&ANA, None, "customer", "ana").await.unwrap().durable);
    for _ in 0..3 {
        here.app.heartbeat().await;
    }
    assert!(!here.app.erase(&ANA, None, "customer", "ana").await.unwrap().durable);
    store.fail(false);
    beat(&clock, &here, &there).await;
    assert!(store.published_notices() >= published + 2);
    assert!(there.app.stated_facts(None, None, 10).await.unwrap().rows.is_empty());
    assert!(here.app.erase(&ANA, None, "customer", "ana").await.unwrap().durable);
}
