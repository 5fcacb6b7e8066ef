//! Nodes that share a store and records: lists, facts and modes reach every node by a heartbeat.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use catraca::app::{ListTargetText, PolicyResetResult};
use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::core::policy::Mode;
use catraca::records::{Ack, ListName, Operator, Options, Record, RecordKind, Records};
use catraca::{App, ManualClock, Subject};

use super::helpers::{Remote, START, builder, secs};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
"#;

pub const ANA: Operator<'static> = Operator { name: "ana", why: None };

/// Two nodes over one store and one file of records.
pub struct Nodes {
    pub here: App,
    pub there: App,
    pub store: Remote,
    pub records: Arc<Records>,
    pub clock: ManualClock,
    folder: RecordsFolder,
}

/// The folder of the records, removed when the test ends.
struct RecordsFolder(PathBuf);

impl Drop for RecordsFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Nodes {
    async fn record(&self, kind: RecordKind) {
        let receipt = self.records.record(vec![Record::automatic(START, kind)]);
        assert_eq!(receipt.await, Ack::Durable);
    }

    /// One more node over the same records, and a connection to the store.
    pub async fn one_more(&self, store: &Remote) -> App {
        node(CATALOG, store, &self.records, &self.clock).await
    }

    /// Moves the file of the records, which stay open.
    pub fn move_records_away(&self) {
        let folder = &self.folder.0;
        std::fs::rename(folder.join("catraca.db"), folder.join("elsewhere.db")).unwrap();
    }

    /// Waits until everything recorded until now is on disk: records are written in order.
    async fn flush(&self) {
        self.record(RecordKind::Mode("login".to_owned(), None)).await;
    }
}

pub async fn nodes() -> Nodes {
    nodes_with(CATALOG).await
}

pub async fn nodes_with(text: &str) -> Nodes {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let (records, folder) = records();
    let here = node(text, &store, &records, &clock).await;
    let there = node(text, &store, &records, &clock).await;
    Nodes { here, there, store, records, clock, folder }
}

fn records() -> (Arc<Records>, RecordsFolder) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("catraca-shared-{process}-{next}"));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("catraca.db").display());
    (Arc::new(Records::open(&url, Options::default()).unwrap()), RecordsFolder(folder))
}

async fn node(text: &str, store: &Remote, records: &Arc<Records>, clock: &ManualClock) -> App {
    let app = app(text, store, records, clock);
    app.resume(None).await.unwrap();
    app
}

fn app(text: &str, store: &Remote, records: &Arc<Records>, clock: &ManualClock) -> App {
    let store = Arc::new(store.clone());
    let app = App::over_store(builder(text, clock), store, Default::default()).unwrap();
    app.records(Arc::clone(records)).build()
}

pub fn range(text: &str) -> AccessListEntry {
    AccessListEntry {
        namespace: None,
        target: ListTarget::Range(AddressRange::parse(text).unwrap()),
        reason: None,
        until: None,
    }
}

#[tokio::test]
async fn an_entry_of_a_list_made_on_one_node_decides_on_the_other_after_a_beat() {
    let nodes = nodes().await;
    let entry = range("192.0.2.0/24");
    let added = nodes.here.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false).await;
    assert!(added.unwrap().durable);
    assert!(check_on(&nodes.there, "192.0.2.1").await.allowed);
    assert!(nodes.there.heartbeat().await.unwrap().changed);
    assert_eq!(check_on(&nodes.there, "192.0.2.1").await.reason.as_str(), "blocklisted");
    let target = ListTargetText::Range("192.0.2.0/24".to_owned());
    let removed = nodes.here.remove_from_list(&ANA, ListName::Block, None, &target).await;
    assert!(removed.unwrap().durable);
    nodes.there.heartbeat().await;
    assert_ne!(check_on(&nodes.there, "192.0.2.1").await.reason.as_str(), "blocklisted");
}

#[tokio::test]
async fn a_mode_changed_on_one_node_is_changed_and_given_back_on_the_other() {
    let nodes = nodes().await;
    for mode in [Some(Mode::Off), None] {
        assert!(nodes.here.set_mode(&ANA, "login", mode).await.unwrap().durable);
        nodes.there.heartbeat().await;
        assert_eq!(nodes.there.engine().mode_override("login"), mode);
    }
}

#[tokio::test]
async fn a_release_on_one_node_counts_on_the_other_when_it_is_alone() {
    let nodes = nodes().await;
    for _ in 0..3 {
        check_on(&nodes.there, "192.0.2.1").await;
    }
    nodes.clock.advance(secs(61));
    let subject = Subject::from_iter([("ip", "192.0.2.1")]);
    assert!(nodes.here.unblock_unaudited("default", "login", &subject).await.unwrap());
    nodes.flush().await;
    nodes.there.heartbeat().await;
    nodes.store.fail(true);
    assert!(check_on(&nodes.there, "192.0.2.1").await.allowed);
}

#[tokio::test]
async fn a_reset_for_everybody_on_one_node_counts_on_the_other_after_a_beat() {
    let nodes = nodes().await;
    for ip in ["192.0.2.1", "192.0.2.2"] {
        let denied = [check_on(&nodes.there, ip).await, check_on(&nodes.there, ip).await];
        assert_eq!(denied.map(|decision| decision.allowed), [true, false]);
    }
    nodes.clock.advance(secs(1));
    let reset = nodes.here.reset_policy(&ANA, "login").await.unwrap();
    assert_eq!(reset, PolicyResetResult { blocks: Some(2), durable: true });
    assert!(check_on(&nodes.here, "192.0.2.1").await.allowed);
    assert!(nodes.there.heartbeat().await.unwrap().changed);
    assert!(!check_on(&nodes.there, "192.0.2.1").await.allowed, "counted by the other node");
    assert!(check_on(&nodes.there, "192.0.2.2").await.allowed);
    // Without the store, blocks from before the reset do not come back.
    nodes.store.fail(true);
    let alone = check_on(&nodes.there, "192.0.2.3").await;
    assert!(alone.allowed && alone.degraded);
}

#[tokio::test]
async fn a_store_that_lost_everything_is_told_what_the_records_say() {
    let nodes = nodes().await;
    for _ in 0..3 {
        check_on(&nodes.here, "192.0.2.1").await;
    }
    nodes.flush().await;
    nodes.there.heartbeat().await;
    nodes.store.lose_everything();
    assert!(nodes.there.heartbeat().await.unwrap().restarted);
    let denied = check_on(&nodes.there, "192.0.2.1").await;
    assert_eq!((denied.reason.as_str(), denied.retry_after), ("blocked", Some(secs(300))));
}

#[tokio::test]
async fn a_node_with_other_records_is_refused_by_name() {
    let nodes = nodes().await;
    let (others, _folder) = records();
    let other = app(CATALOG, &nodes.store, &others, &nodes.clock);
    let refused = other.resume(None).await.unwrap_err().to_string();
    assert!(refused.contains("must share records in PostgreSQL"), "{refused}");
}

async fn check_on(app: &App, ip: &str) -> catraca::Decision {
    app.check(&catraca::Check::new("login", [("ip", ip)])).await.unwrap()
}

/// With another sharding the keys differ: the blocks of the records would apply to no subject.
#[tokio::test]
async fn records_of_a_store_that_spread_in_another_way_are_refused() {
    let clock = ManualClock::at(START);
    let (records, _folder) = records();
    let store = Remote::new(&clock);
    let resumed = async |text: &str| {
        let app = app(text, &store, &records, &clock);
        app.resume(None).await.map_err(|error| error.to_string())
    };
    store.become_sharded();
    let by_ip = format!("{CATALOG}[store]\nshard_by = 'ip'");
    resumed(&by_ip).await.unwrap();
    resumed(&by_ip).await.unwrap();
    let error = resumed(CATALOG).await.unwrap_err();
    assert!(error.contains("spread by ip") && error.contains("spread by namespace"), "{error}");
    assert!(error.contains("shard_by"), "{error}");
}
