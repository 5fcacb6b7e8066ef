//! A records database that hangs: notices of the store arrive nevertheless, and a store that has
//! lost data is used again.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use catraca::core::policy::Mode;
use catraca::records::Records;
use catraca::shared::HeartbeatReport;
use catraca::{App, BlockProposal, Check, Span, Subject, Time};

use super::helpers::START;
use super::records::{ANA, nodes};

/// What takes longer never ends: the records hang until the test lets them go on.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps the connection of queries busy until the sender is dropped.
fn hang(records: &Arc<Records>) -> mpsc::Sender<()> {
    let (go_on, wait) = mpsc::channel::<()>();
    let (begun, is_begun) = mpsc::channel();
    let records = Arc::clone(records);
    thread::spawn(move || {
        let hung = records.restore(START, Time::ZERO, |_| {
            let _ = begun.send(());
            let _ = wait.recv();
        });
        hung.unwrap();
    });
    is_begun.recv_timeout(PATIENCE).expect("the records have an item");
    go_on
}

async fn beat(app: &App) -> HeartbeatReport {
    let beat = tokio::time::timeout(PATIENCE, app.heartbeat()).await;
    beat.expect("the heartbeat ends while the records hang").unwrap()
}

/// Regression: every node waited some 15 s for the records, again and again, and notices, a second
/// kill switch and a store that was back waited with it.
#[tokio::test]
async fn records_that_hang_hold_up_neither_notices_nor_the_store() {
    let nodes = nodes().await;
    assert!(nodes.here.set_mode(&ANA, "login", Some(Mode::Shadow)).await.unwrap().durable);
    for node in [&nodes.here, &nodes.there, &nodes.here, &nodes.there] {
        beat(node).await;
    }
    let hanging = hang(&nodes.records);
    nodes.move_records_away();
    let begun = Instant::now();
    for mode in [Mode::Off, Mode::Enforce] {
        nodes.clock.advance(Span::from_secs(1));
        // Not durable, and the change counter moves nevertheless.
        let changed = nodes.here.set_mode(&ANA, "login", Some(mode)).await.unwrap();
        assert!(!changed.durable);
        beat(&nodes.here).await;
        beat(&nodes.there).await;
        assert_eq!(nodes.there.engine().mode_override("login"), Some(mode));
    }
    let subject = Subject::from([("ip", "192.0.2.1")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), None);
    nodes.here.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    beat(&nodes.here).await;
    beat(&nodes.there).await;
    nodes.store.lose_everything();
    let mut report = beat(&nodes.there).await;
    while !report.up {
        report = beat(&nodes.there).await;
        assert!(begun.elapsed() < PATIENCE, "{report:?}");
    }
    println!("kill switch, block and store in use while the records hang: {:?}", begun.elapsed());
    let decision = nodes.there.check(&Check::new("login", [("ip", "192.0.2.1")])).await.unwrap();
    assert!(!decision.allowed && !decision.degraded, "{decision:?}");
    while report.error.as_ref().is_none_or(|error| !error.contains("the records cannot be read")) {
        report = beat(&nodes.there).await;
        assert!(begun.elapsed() < 2 * PATIENCE, "{report:?}");
    }
    drop(hanging);
    while report.error.is_some() {
        tokio::task::yield_now().await;
        report = beat(&nodes.there).await;
        assert!(begun.elapsed() < 3 * PATIENCE, "{report:?}");
    }
}
