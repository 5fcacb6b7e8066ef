//! What nodes tell each other through a real store: the same for Redis, a cluster and PostgreSQL.

use std::sync::Arc;

use catraca::store::{NOTICES_PER_REPLY, NodeMessage, NodeReply, SharedStore};
use catraca::{App, Catalog, Check, Engine, Secret, Subject};
use tokio::runtime::Runtime;

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1h"
block  = "1h"
on_failure = "open"
"#;

fn message<'a>(node: &'a str, after: &'a str, notices: &'a [Vec<u8>]) -> NodeMessage<'a> {
    NodeMessage { node, state: "state of a node", gone: &[], after, notices }
}

/// Notices have versions, are read once and are bounded; nodes that are gone are removed.
pub fn messages_are_carried(runtime: &Runtime, store: &dyn SharedStore) {
    let exchange = |message: &NodeMessage<'_>| -> NodeReply {
        runtime.block_on(store.exchange(message)).expect("the store is available")
    };
    let notices: Vec<Vec<u8>> = (0..5_u8).map(|number| vec![number, 0, b'\n', 255]).collect();
    let first = exchange(&message("a", "", &notices));
    let bodies: Vec<&Vec<u8>> = first.notices.iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, notices.iter().collect::<Vec<_>>());
    assert_eq!((first.stored, first.nodes.len()), (5, 1));
    let (version, _) = first.notices.last().unwrap();
    assert_eq!(exchange(&message("a", version, &[])).notices, []);
    let second = exchange(&message("b", version, &[b"six".to_vec()]));
    assert_eq!(second.notices.len(), 1);
    assert_eq!(second.notices[0].1, b"six");
    let mut nodes: Vec<String> = second.nodes.into_iter().map(|(id, _)| id).collect();
    nodes.sort();
    assert_eq!(nodes, ["a", "b"]);
    let gone = ["a".to_owned()];
    let third = exchange(&NodeMessage { gone: &gone, ..message("b", version, &[]) });
    assert_eq!(third.nodes, [("b".to_owned(), "state of a node".to_owned())]);
    let trimmed = runtime.block_on(store.trim_notices(2)).unwrap();
    assert_eq!(trimmed.len(), 4);
    assert_eq!(exchange(&message("b", "", &[])).notices.len(), 2);
    let many: Vec<Vec<u8>> = vec![b"x".to_vec(); NOTICES_PER_REPLY + 1];
    let page = exchange(&message("b", "", &many));
    assert_eq!(page.notices.len(), NOTICES_PER_REPLY);
    let (version, _) = page.notices.last().unwrap();
    assert_eq!(exchange(&message("b", version, &[])).notices.len(), 3);
}

fn app(store: Arc<dyn SharedStore>) -> App {
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let builder = builder.secret(Secret::from_bytes([7; 32]));
    App::over_store(builder, store, Default::default()).unwrap().build()
}

/// A block and a release of one node count on the other after a heartbeat of each, also when the
/// store has ended.
pub fn blocks_count_without_the_store(
    runtime: &Runtime,
    stores: [Arc<dyn SharedStore>; 2],
    stop: impl FnOnce(),
) {
    let [here, there] = stores.map(app);
    let beat = || {
        for node in [&here, &there, &here, &there] {
            let report = runtime.block_on(node.heartbeat()).unwrap();
            assert!(report.up && report.error.is_none(), "{report:?}");
        }
    };
    let reason = |node: &App, ip: &str| {
        let check = Check::new("login", [("ip", ip)]);
        runtime.block_on(node.check(&check)).unwrap().reason.as_str().to_owned()
    };
    beat();
    for ip in ["192.0.2.1", "192.0.2.2"] {
        assert_eq!(reason(&here, ip), "ok");
        assert_eq!(reason(&here, ip), "over_limit");
    }
    beat();
    let subject = Subject::from([("ip", "192.0.2.2")]);
    assert!(runtime.block_on(there.unblock_unaudited("default", "login", &subject)).unwrap());
    beat();
    assert_eq!(here.shared_stats().unwrap().nodes, 2);
    stop();
    assert_eq!(reason(&there, "192.0.2.1"), "blocked", "the block of the other node");
    assert_eq!(reason(&here, "192.0.2.2"), "ok", "the release of the other node");
}
