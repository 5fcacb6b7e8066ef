//! A store of two primaries: one that is lost, emptied or new concerns its own keys alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catraca::core::batch::{Batch, Reply};
use catraca::core::digest::Key;
use catraca::store::{
    PrimaryId, PrimaryReport, PrimaryReports, SharedStore, StoreFuture, StoreStatus, When,
};
use catraca::{App, BlockProposal, Check, Decision, ManualClock, SharedOptions, Span, Subject};

use super::helpers::{Remote, START, builder, heartbeat, poll_ready, stats};

const CATALOG: &str = r#"
[policy.login]
by         = ["ip"]
window     = "5 per 1m"
block      = "10m"
on_failure = "closed"
"#;

/// Two primaries: keys of groups with an even number are on the first, and all others on the
/// second. A third one may join, which has the keys of the second.
#[derive(Clone)]
struct TwoPrimaries {
    servers: Arc<[Remote; 2]>,
    has_moved: Arc<AtomicBool>,
}

impl TwoPrimaries {
    fn new(clock: &ManualClock) -> Self {
        let servers = Arc::new([Remote::new(clock), Remote::new(clock)]);
        Self { servers, has_moved: Arc::default() }
    }

    /// The index of the server of a key.
    fn index(key: Key) -> usize {
        usize::from(key.group() % 2)
    }

    fn id(&self, index: usize) -> PrimaryId {
        let joined = index == 1 && self.has_moved.load(Ordering::SeqCst);
        PrimaryId(if joined { 7 } else { index as u64 })
    }
}

impl SharedStore for TwoPrimaries {
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        let mut index = None;
        batch.each_key(|key| {
            let found = Self::index(key);
            assert_eq!(*index.get_or_insert(found), found, "a batch has keys of one primary");
        });
        self.servers[index.unwrap_or(0)].apply(batch, when)
    }

    fn is_sharded(&self) -> bool {
        true
    }

    fn primary_of(&self, key: Key) -> Option<PrimaryId> {
        Some(self.id(Self::index(key)))
    }

    fn primary_name(&self, primary: PrimaryId) -> Option<String> {
        Some(format!("server-{}", primary.0))
    }

    fn status(&self) -> StoreFuture<'_, StoreStatus> {
        self.servers[0].status()
    }

    fn primary_statuses(&self) -> PrimaryReports<'_> {
        Box::pin(async {
            let mut reports = Vec::new();
            for index in 0..2 {
                let status = self.servers[index].status().await;
                reports.push(PrimaryReport { primary: self.id(index), status });
            }
            reports
        })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        self.servers[0].publish_change()
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        self.servers[0].bind_records(records)
    }
}

fn node() -> (App, TwoPrimaries, ManualClock) {
    let clock = ManualClock::at(START);
    let store = TwoPrimaries::new(&clock);
    (app_over(&store, &clock), store, clock)
}

fn app_over(store: &TwoPrimaries, clock: &ManualClock) -> App {
    let options = SharedOptions { deny_cache: false, ..SharedOptions::default() };
    let engine = builder(CATALOG, clock);
    App::over_store(engine, Arc::new(store.clone()), options).unwrap().build()
}

fn check(app: &App, namespace: &str, ip: &str) -> Decision {
    let mut check = Check::new("login", [("ip", ip)]);
    check.namespace = namespace;
    poll_ready(app.check(&check)).unwrap()
}

/// A namespace whose keys are on each of the two servers.
fn namespaces(app: &App, store: &TwoPrimaries) -> [String; 2] {
    [0, 1].map(|index| {
        let is_on = |name: &String| {
            let before = store.servers[index].trips();
            check(app, name, "192.0.2.250");
            store.servers[index].trips() > before
        };
        (0..100).map(|number| format!("n{number}")).find(is_on).expect("a namespace of each")
    })
}

fn block(app: &App, namespace: &str, ip: &str) {
    let subject = Subject::from_iter([("ip", ip)]);
    let proposal = BlockProposal::by_operator(Span::from_secs(3_600), None);
    poll_ready(app.block_unaudited(namespace, "login", &subject, proposal)).unwrap();
}

#[test]
fn a_lost_primary_degrades_its_own_keys_alone_and_is_named() {
    let (app, store, _) = node();
    heartbeat(&app);
    let [kept, lost] = namespaces(&app, &store);
    store.servers[1].fail(true);
    for number in 0..10 {
        let ip = format!("192.0.2.{number}");
        assert!(check(&app, &lost, &ip).degraded);
        let decision = check(&app, &kept, &ip);
        assert!(decision.allowed && !decision.degraded, "{decision:?}");
        heartbeat(&app);
    }
    assert!(store.servers[1].trips() <= 5, "its breaker is open");
    let report = heartbeat(&app);
    let stats = stats(&app);
    assert!(!report.up && !stats.up);
    assert_eq!(report.unavailable, stats.unavailable);
    assert_eq!(stats.unavailable[0].name.as_deref(), Some("server-1"));
    assert_eq!(stats.primaries, [("server-0".to_owned(), true), ("server-1".to_owned(), false)]);
    assert_eq!(
        stats.error.as_deref(),
        Some(
            "the primary server-1 is unavailable, and its keys follow `on_failure`: no route to \
             the store"
        )
    );
    store.servers[1].fail(false);
    let report = heartbeat(&app);
    assert!(report.up && report.recovered && !report.restarted);
    assert!(!check(&app, &lost, "192.0.2.77").degraded);
}

#[test]
fn an_emptied_primary_alone_gets_its_blocks_again() {
    let (app, store, clock) = node();
    heartbeat(&app);
    let [kept, lost] = namespaces(&app, &store);
    block(&app, &kept, "192.0.2.1");
    block(&app, &lost, "192.0.2.1");
    store.servers[1].lose_everything();
    let before = store.servers[0].trips();
    let report = heartbeat(&app);
    assert!(report.restarted && report.up);
    assert_eq!(store.servers[0].trips(), before, "nothing is written to the other primary");
    let other = app_over(&store, &clock);
    for namespace in [&kept, &lost] {
        assert_eq!(check(&other, namespace, "192.0.2.1").reason.as_str(), "blocked");
    }
}

/// While a primary gets its blocks, it is held and the other one is not.
#[test]
fn only_the_keys_of_the_primary_that_lost_data_are_held() {
    let (app, store, _) = node();
    heartbeat(&app);
    let [kept, lost] = namespaces(&app, &store);
    block(&app, &lost, "192.0.2.1");
    store.servers[1].lose_everything();
    // It answers to the heartbeat, and the writes of the blocks fail.
    store.servers[1].lose_answers(true);
    assert!(!heartbeat(&app).up);
    assert_eq!(check(&app, &lost, "192.0.2.2").reason.as_str(), "unavailable");
    assert!(check(&app, &kept, "192.0.2.2").allowed);
    store.servers[1].lose_answers(false);
    assert!(heartbeat(&app).recovered);
    assert!(check(&app, &lost, "192.0.2.2").allowed);
}

#[test]
fn a_primary_that_joins_or_leaves_holds_no_key() {
    let (app, store, _) = node();
    heartbeat(&app);
    let [kept, moved] = namespaces(&app, &store);
    for has_moved in [true, false] {
        store.has_moved.store(has_moved, Ordering::SeqCst);
        for _ in 0..2 {
            for namespace in [&kept, &moved] {
                let decision = check(&app, namespace, "192.0.2.9");
                assert!(decision.allowed && !decision.degraded, "{decision:?}");
            }
            let report = heartbeat(&app);
            assert!(report.up && !report.restarted && !report.recovered, "{report:?}");
        }
    }
    assert_eq!(stats(&app).breaker_opened, 0);
}
