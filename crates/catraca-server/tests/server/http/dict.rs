//! The two programs of a DICT participant in `docs/guide/dict.md`: a proxy that checks and settles,
//! and a worker that reconciles balances.

use std::time::{SystemTime, UNIX_EPOCH};

use catraca::Time;
use serde_json::{Value, json};

use crate::test_server::TestServer;

const PARTICIPANT: &str = "12345678";

/// Looks keys up for payers, each time after a check.
struct Proxy<'s>(&'s TestServer);

impl Proxy<'_> {
    /// A lookup that the bank answers with `status`; `None` if the check denied it.
    fn lookup(&self, reference: &str, status: u16) -> Option<Value> {
        let check = json!({ "gate": "getEntry.EMAIL", "subject": payer(), "ref": reference });
        let decision = self.0.json("/v1/check", &check.to_string()).1;
        let outcome = json!({ "status": status });
        let settle = json!({ "ref": reference, "subject": payer(), "outcome": outcome });
        (decision["allowed"] == true).then(|| self.0.json("/v1/settle", &settle.to_string()).1)
    }

    fn paid(&self, reference: &str) -> Value {
        let credit = json!({ "ref": reference, "event": "payment", "subject": payer() });
        self.0.json("/v1/credit", &credit.to_string()).1["applied"].clone()
    }
}

/// Reconciles buckets with the figures of the bank.
struct Worker<'s>(&'s TestServer);

impl Worker<'_> {
    fn balance(&self, policy: &str, subject: &Value) -> i64 {
        let states = self.0.json("/v1/buckets", &json!({ "subject": subject }).to_string()).1;
        let all = states["buckets"].as_array().unwrap();
        let found = all.iter().find(|state| state["policy"] == policy);
        found.and_then(|state| state["balance"].as_i64()).unwrap()
    }

    fn reconcile(&self, policy: &str, available: i64) -> Value {
        let view = json!({
            "subject": { "participant": PARTICIPANT },
            "observed_at": now(),
            "states": [{ "policy": policy, "available": available }],
        });
        self.0.json("/v1/buckets/reconcile", &view.to_string()).1["buckets"][0].clone()
    }
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap()).to_rfc3339()
}

fn payer() -> Value {
    json!({ "participant": PARTICIPANT, "payer": "11144477735" })
}

/// covers: 001-02
#[test]
fn a_proxy_and_a_worker_share_one_ledger() {
    let server = TestServer::with_catalog(include_str!("../../../../../presets/dict/catalog.toml"));
    let proxy = Proxy(&server);
    let worker = Worker(&server);
    let own = "entries_read_user_antiscan";
    proxy.lookup("E1", 404).unwrap();
    assert_eq!(worker.balance(own, &payer()), 79);
    proxy.lookup("E2", 200).unwrap();
    assert_eq!(worker.balance(own, &payer()), 78);
    assert_eq!([proxy.paid("E2"), proxy.paid("E2"), proxy.paid("E1")], [true, false, false]);
    assert_eq!(worker.balance(own, &payer()), 79);
    let participant = json!({ "participant": PARTICIPANT });
    let slow = "cids_files_write";
    let changed = worker.reconcile(slow, 150);
    assert_eq!((&changed["before"], &changed["after"]), (&198.into(), &150.into()));
    assert_eq!(worker.balance(slow, &participant), 150);
    // The bank reports no figures of payers, so their buckets are unchanged.
    assert_eq!(worker.balance(own, &payer()), 79);
    // Lookups that the bank would deny are denied here and not sent to it.
    for number in 3..8 {
        proxy.lookup(&format!("E{number}"), 404);
    }
    assert_eq!(proxy.lookup("E9", 200), None);
}
