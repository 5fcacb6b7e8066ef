//! An application over a cluster: the keys of every call are on one server.

use std::sync::Arc;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::settlement::SettleState;
use catraca::{App, Catalog, Check, CheckRef, Credit, Engine, Outcome, Secret, Settle};
use catraca_testkit::redis::RedisCluster;

use super::helpers::LONG_DEADLINE;

const CATALOG: &str = r#"
    [policy.lookup]
    by     = ["payer"]
    bucket = { size = 5, refill = "1 per 1h" }
    cost   = { "404" = 4, default = 1 }
    credit = { payment = { amount = 1, on = ["404"] } }
    ban    = [ { when = "status == 404", after = "2 per 1h", for = "10m", reason = "scan" } ]

    [policy.address]
    by     = ["ip"]
    window = "50 per 1m"
    block  = "10m"

    [gate.all]
    policies = ["lookup", "address"]
"#;

/// covers: 004-53
#[test]
fn every_verb_works_in_every_namespace_of_a_cluster() {
    let Some(cluster) = RedisCluster::start() else { return };
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
        let store = RedisStore::connect(&cluster.url(), options).await.unwrap();
        let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
        let builder = builder.secret(Secret::from_bytes([7; 32]));
        let app = App::over_store(builder, Arc::new(store), Default::default()).unwrap().build();
        for number in 0..30 {
            let namespace = format!("tenant {{{number}}}");
            let subject = [("payer", "p"), ("ip", "198.51.100.7")];
            let mut check = Check::new("all", subject);
            check.namespace = &namespace;
            check.reference = Some("E1");
            let decision = app.check(&check).await.unwrap();
            assert!(decision.allowed && !decision.degraded, "{namespace}: {decision:?}");
            let ticket = decision.ticket.unwrap();
            let outcome = Outcome::status(404);
            let by_ticket = CheckRef::Ticket(&ticket);
            let settle = Settle { namespace: &namespace, check: by_ticket, outcome: &outcome };
            let settled = app.settle(&settle).await.unwrap().settlement;
            assert_eq!(settled.state, SettleState::Applied);
            let subject = &check.subject;
            let namespace = &*namespace;
            let credit = Credit { namespace, reference: "E1", event: "payment", subject };
            let credited = app.credit(&credit).await.unwrap();
            assert_eq!(credited, Ok(vec![("lookup".into(), 1)]), "{namespace}");
            app.reset_unaudited(namespace, "lookup", subject).await.unwrap();
            let again = app.check(&check).await.unwrap();
            assert!(again.allowed && !again.degraded, "{namespace}: {again:?}");
        }
    });
}
