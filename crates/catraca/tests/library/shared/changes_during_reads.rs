//! Changes of lists, facts and modes on a node that reads the shared records at the same time: the
//! node that has acknowledged a change never decides by the older value.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use catraca::app::{FactMap, ListTargetText};
use catraca::core::policy::Mode;
use catraca::records::ListName;
use catraca::shared::HeartbeatReport;
use catraca::{App, Check};
use tokio::sync::Notify;

use super::records::{ANA, Nodes, nodes, nodes_with, range};

const CATALOG: &str = r#"
[policy.login]
by     = ["customer"]
window = "1 per 1m"
tier   = [ { when = { plan = "gold" }, window = "1000 per 1m" } ]

[policy.other]
by     = ["ip"]
window = "1 per 1m"
"#;

/// A heartbeat that has read the records, and has not applied them yet.
struct HeartbeatAfterRead<'a>(Pin<Box<dyn Future<Output = Option<HeartbeatReport>> + 'a>>);

/// Wakes the test when the reading thread sends what it has read.
struct WakeNotify(Notify);

impl Wake for WakeNotify {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl<'a> HeartbeatAfterRead<'a> {
    /// Starts a heartbeat, and waits until its read of the records has begun: from then on the read
    /// sees no later commit, and nothing is applied until the heartbeat is polled again. Call it in
    /// [`run_with_one_reader`], whose only reader waits until the heartbeat waits for it.
    async fn start(app: &'a App) -> Self {
        let (release, held) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || held.recv());
        let woken = Arc::new(WakeNotify(Notify::new()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut heartbeat = Box::pin(app.heartbeat());
        let polled = heartbeat.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(matches!(polled, Poll::Pending), "the heartbeat reads no records");
        drop(release);
        woken.0.notified().await;
        Self(heartbeat)
    }

    async fn finish(self) {
        let report = self.0.await.unwrap();
        assert!(report.changed && report.error.is_none(), "{report:?}");
    }
}

/// Runs a test with one thread for blocking work, which reads the records.
fn run_with_one_reader(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).enable_all().build().unwrap().block_on(test);
}

/// Makes the next heartbeat of every node read the records.
async fn change_other_policy(nodes: &Nodes) {
    let mode = nodes.there.engine().mode_override("other");
    let next = if mode.is_none() { Some(Mode::Off) } else { None };
    assert!(nodes.there.set_mode(&ANA, "other", next).await.unwrap().durable);
}

async fn reason(app: &App, ip: &str) -> &'static str {
    let check = Check::new("other", [("ip", ip)]);
    app.check(&check).await.unwrap().reason.as_str()
}

#[test]
fn a_mode_that_is_set_while_the_records_are_read_stays_set() {
    run_with_one_reader(async {
        let nodes = nodes_with(CATALOG).await;
        for mode in [Some(Mode::Off), Some(Mode::Shadow), None] {
            change_other_policy(&nodes).await;
            let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
            let changed = nodes.here.set_mode(&ANA, "login", mode).await.unwrap();
            assert_eq!(changed.after, mode.unwrap_or(Mode::Enforce));
            heartbeat.finish().await;
            assert_eq!(nodes.here.engine().mode_override("login"), mode);
            let other = nodes.there.engine().mode_override("other");
            assert_eq!(nodes.here.engine().mode_override("other"), other, "the read was applied");
            nodes.here.heartbeat().await;
            assert_eq!(nodes.here.engine().mode_override("login"), mode);
        }
    });
}

#[test]
fn an_entry_that_changes_while_the_records_are_read_stays_changed() {
    run_with_one_reader(async {
        let nodes = nodes_with(CATALOG).await;
        change_other_policy(&nodes).await;
        let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
        let entry = range("192.0.2.0/24");
        let added = nodes.here.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false).await;
        assert!(added.unwrap().durable);
        heartbeat.finish().await;
        assert_eq!(reason(&nodes.here, "192.0.2.1").await, "blocklisted");

        change_other_policy(&nodes).await;
        let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
        let target = ListTargetText::Range("192.0.2.0/24".to_owned());
        let removed = nodes.here.remove_from_list(&ANA, ListName::Block, None, &target).await;
        assert!(removed.unwrap().durable);
        heartbeat.finish().await;
        assert_ne!(reason(&nodes.here, "192.0.2.1").await, "blocklisted");
    });
}

#[test]
fn facts_that_change_while_the_records_are_read_stay_changed() {
    run_with_one_reader(async {
        let nodes = nodes_with(CATALOG).await;
        let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
        let is_gold = || {
            let facts = nodes.here.facts_about(None, "customer", "c-1").unwrap();
            facts.get("plan").is_some_and(|plan| plan == "gold")
        };
        change_other_policy(&nodes).await;
        let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
        nodes.here.set_facts(&ANA, None, "customer", "c-1", gold).await.unwrap();
        heartbeat.finish().await;
        assert!(is_gold());

        change_other_policy(&nodes).await;
        let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
        nodes.here.forget_facts(&ANA, None, "customer", "c-1").await.unwrap();
        heartbeat.finish().await;
        assert!(!is_gold());

        let gold = FactMap::from([("plan".to_owned(), "gold".to_owned())]);
        nodes.here.set_facts(&ANA, None, "customer", "c-1", gold).await.unwrap();
        let heartbeat = HeartbeatAfterRead::start(&nodes.here).await;
        nodes.here.erase(&ANA, None, "customer", "c-1").await.unwrap();
        heartbeat.finish().await;
        assert!(!is_gold());
    });
}

/// A change that was acknowledged with `durable: false` is in force, and in no records.
#[tokio::test]
async fn a_change_that_is_not_written_stays_after_the_records_are_read() {
    let nodes = nodes().await;
    nodes.records.stop();
    let changed = nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
    assert!(!changed.durable);
    for _ in 0..3 {
        nodes.here.heartbeat().await;
        assert_eq!(nodes.here.engine().mode_override("login"), Some(Mode::Off));
    }
}

/// Other nodes cannot read a change that is not written; they are notified once more when it is.
#[tokio::test]
async fn a_change_that_is_written_later_is_published_then() {
    let nodes = nodes().await;
    // Until the file is back, acts are written and answered with `durable: false`.
    nodes.move_records_away();
    assert!(!nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap().durable);
    assert!(nodes.there.heartbeat().await.unwrap().changed);
    assert!(!nodes.there.heartbeat().await.unwrap().changed);
    // This heartbeat asks the writer, and the next one knows the answer.
    nodes.here.heartbeat().await;
    let records = Arc::clone(&nodes.records);
    tokio::task::spawn_blocking(move || records.flush()).await.unwrap().unwrap();
    nodes.here.heartbeat().await;
    assert!(nodes.there.heartbeat().await.unwrap().changed);
    for app in [&nodes.here, &nodes.there] {
        assert_eq!(app.engine().mode_override("login"), Some(Mode::Off));
    }
    nodes.here.heartbeat().await;
    assert!(!nodes.there.heartbeat().await.unwrap().changed, "it is published once");
}

/// Heartbeats run all the time while two nodes change the same list. Each node checks what it has
/// just acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_acknowledged_entry_decides_on_its_node_at_once() {
    let nodes = Arc::new(nodes_with(CATALOG).await);
    let end = Arc::new(AtomicBool::new(false));
    let mut heartbeats = Vec::new();
    for app in [&nodes.here, &nodes.there] {
        let app = app.clone();
        let end = Arc::clone(&end);
        heartbeats.push(tokio::spawn(async move {
            while !end.load(Ordering::SeqCst) {
                assert_eq!(app.heartbeat().await.unwrap().error, None);
            }
        }));
    }
    let mut writers = Vec::new();
    for (number, app) in [&nodes.here, &nodes.there].into_iter().enumerate() {
        let app = app.clone();
        writers.push(tokio::spawn(async move {
            for round in 0..200 {
                let ip = format!("10.{number}.{}.{}", round / 250, round % 250);
                let entry = vec![(range(&ip), None)];
                app.add_to_list(&ANA, ListName::Block, entry, false).await.unwrap();
                assert_eq!(reason(&app, &ip).await, "blocklisted", "{ip}");
                let target = ListTargetText::Range(ip.clone());
                app.remove_from_list(&ANA, ListName::Block, None, &target).await.unwrap();
                assert_ne!(reason(&app, &ip).await, "blocklisted", "{ip}");
            }
        }));
    }
    let mut results = Vec::new();
    for writer in writers {
        results.push(writer.await);
    }
    // Also if a writer failed: the heartbeats would never end.
    end.store(true, Ordering::SeqCst);
    for heartbeat in heartbeats {
        results.push(heartbeat.await);
    }
    results.into_iter().for_each(|result| result.unwrap());
    for app in [&nodes.here, &nodes.there] {
        app.heartbeat().await;
        app.heartbeat().await;
        assert_ne!(reason(app, "10.0.0.1").await, "blocklisted");
        assert_ne!(reason(app, "10.1.0.1").await, "blocklisted");
    }
}
