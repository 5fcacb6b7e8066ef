//! An application over a cluster that is sharded by an attribute: one namespace is on all
//! primaries, and every decision is one script call on one of them.

use std::sync::Arc;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::settlement::SettleState;
use catraca::{
    App, BlockProposal, Catalog, Check, CheckRef, Credit, Engine, Outcome, Secret, Settle,
};
use catraca_core::sharding::Sharding;
use catraca_core::subject::Subject;
use catraca_core::time::Span;
use catraca_testkit::redis::RedisCluster;
use catraca_testkit::resp::RespValue;
use tokio::task::JoinSet;

use super::helpers::{LONG_DEADLINE, setting};

const CATALOG: &str = r#"
    [store]
    url      = "redis+cluster://127.0.0.1"
    shard_by = "bank"

    [policy.payer]
    by     = ["bank", "payer"]
    bucket = { size = 10, refill = "1 per 1h" }
    cost   = { "404" = 4, default = 1 }
    credit = { payment = { amount = 1, on = ["404"] } }

    [policy.bank]
    by     = ["bank"]
    window = "50 per 1h"
    block  = "2h"

    [gate.lookup]
    policies = ["payer", "bank"]
"#;
const PRIMARIES: usize = 3;
const LIMIT: usize = 10;

async fn start(cluster: &RedisCluster) -> App {
    let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
    let store = RedisStore::connect(&cluster.url(), options).await.unwrap();
    let builder = Engine::builder(Catalog::parse(CATALOG).unwrap());
    let builder = builder.secret(Secret::from_bytes([7; 32]));
    let app = App::over_store(builder, Arc::new(store), Default::default()).unwrap().build();
    assert_eq!(*app.engine().sharding(), Sharding::Attribute("bank".into()));
    app
}

/// covers: 004-53
#[test]
fn one_namespace_spreads_by_an_attribute_and_every_verb_finds_its_keys() {
    let Some(cluster) = RedisCluster::start() else { return };
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let app = start(&cluster).await;
        for number in 0..40 {
            every_verb(&app, &format!("bank {{{number}}}")).await;
        }
        let without_bank = Subject::from_iter([("payer", "p")]);
        let refused = app.credit(&credit(&without_bank)).await.unwrap_err();
        assert!(refused.to_string().contains("`bank`"), "{refused}");
    });
    let size = |server: usize| match cluster.servers[server].command(&["DBSIZE"]) {
        RespValue::Int(size) => size,
        other => panic!("not a number: {other:?}"),
    };
    let sizes: Vec<i64> = (0..PRIMARIES).map(size).collect();
    println!("keys of one namespace by primary: {sizes:?}");
    assert!(sizes.iter().all(|size| *size > 5), "{sizes:?}");
}

/// Uses the same reference for every bank: references of different shards are independent.
async fn every_verb(app: &App, bank: &str) {
    let subject = || Subject::from_iter([("bank", bank), ("payer", "p")]);
    let mut check = Check::new("lookup", [("bank", bank), ("payer", "p")]);
    check.reference = Some("E1");
    let decision = app.check(&check).await.unwrap();
    assert!(decision.allowed && !decision.degraded, "{bank}: {decision:?}");
    let ticket = decision.ticket.unwrap();
    let outcome = Outcome::status(404);
    let by_reference = CheckRef::Reference("E1", subject());
    let settle = Settle { namespace: "default", check: by_reference, outcome: &outcome };
    assert_eq!(app.settle(&settle).await.unwrap().settlement.state, SettleState::Applied);
    let settle =
        Settle { namespace: "default", check: CheckRef::Ticket(&ticket), outcome: &outcome };
    assert_eq!(app.settle(&settle).await.unwrap().settlement.state, SettleState::Again);
    let credited = app.credit(&credit(&subject())).await.unwrap();
    assert_eq!(credited, Ok(vec![("payer".into(), 1)]), "{bank}");
    let states = app.buckets("default", &subject()).await.unwrap();
    assert_eq!(states[0].balance, 10 - 4 + 1, "{bank}");
    let proposal = BlockProposal::by_operator(Span::from_secs(600), Some("seen"));
    let blocked = app.block_unaudited("default", "bank", &subject(), proposal).await.unwrap();
    assert_eq!(blocked.len(), 1);
    let denied = app.check(&check).await.unwrap();
    assert!(!denied.allowed && !denied.degraded, "{bank}: {denied:?}");
    app.reset_unaudited("default", "bank", &subject()).await.unwrap();
    let again = app.check(&check).await.unwrap();
    assert!(again.allowed && !again.degraded, "{bank}: {again:?}");
}

fn credit<'a, 's>(subject: &'a Subject<'s>) -> Credit<'a, 's> {
    Credit { namespace: "default", reference: "E1", event: "payment", subject }
}

/// covers: 002-35, B-33
#[test]
fn callers_at_once_get_exactly_the_limit_of_a_spread_gate() {
    let Some(cluster) = RedisCluster::start() else { return };
    let rounds = setting("CATRACA_REDIS_ROUNDS", 20);
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let app = start(&cluster).await;
        for round in 0..rounds {
            let bank = format!("bank {round}");
            let mut callers = JoinSet::new();
            for _ in 0..64 {
                let app = app.clone();
                let bank = bank.clone();
                callers.spawn(async move {
                    let check = Check::new("lookup", [("bank", bank.as_str()), ("payer", "p")]);
                    let decision = app.check(&check).await.unwrap();
                    assert!(!decision.degraded, "{decision:?}");
                    decision.allowed
                });
            }
            let passed = callers.join_all().await.into_iter().filter(|passed| *passed).count();
            assert_eq!(passed, LIMIT, "round {round}");
            // Checks that one policy denied were not counted by the other.
            let other = Check::new("bank", [("bank", bank.as_str())]);
            let left = app.check(&other).await.unwrap().remaining;
            assert_eq!(left, Some(50 - LIMIT as i64 - 1), "round {round}");
        }
    });
    println!("{rounds} rounds of 64 callers: {LIMIT} each");
}
