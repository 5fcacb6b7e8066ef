//! The two programs of a DICT participant, as `docs/guide/dict.md` shows them: one asks and tells,
//! the other compares.

use std::time::{SystemTime, UNIX_EPOCH};

use catraca::Time;
use serde_json::{Value, json};

use crate::served::Served;

const PARTICIPANT: &str = "12345678";

/// Looks keys up for payers, and never without asking.
struct Proxy<'s>(&'s Served);

impl Proxy<'_> {
    /// A lookup of which the bank answers this; nothing if it was not asked.
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

/// Brings the bank's own figures.
struct Worker<'s>(&'s Served);

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
    let served = Served::with(include_str!("../../../../presets/dict/catalog.toml"));
    let (proxy, worker) = (Proxy(&served), Worker(&served));
    let own = "entries_read_user_antiscan";
    proxy.lookup("E1", 404).unwrap();
    assert_eq!(worker.balance(own, &payer()), 80);
    proxy.lookup("E2", 200).unwrap();
    assert_eq!(worker.balance(own, &payer()), 79);
    assert_eq!([proxy.paid("E2"), proxy.paid("E2"), proxy.paid("E1")], [true, false, false]);
    assert_eq!(worker.balance(own, &payer()), 80);
    let participant = json!({ "participant": PARTICIPANT });
    let slow = "cids_files_write";
    let changed = worker.reconcile(slow, 150);
    assert_eq!((&changed["before"], &changed["after"]), (&200.into(), &150.into()));
    assert_eq!(worker.balance(slow, &participant), 150);
    // The bank knows nothing of a payer's, and its view changes nothing there.
    assert_eq!(worker.balance(own, &payer()), 80);
    // What the bank would deny is never asked of it.
    for number in 3..8 {
        proxy.lookup(&format!("E{number}"), 404);
    }
    assert_eq!(proxy.lookup("E9", 200), None);
}
