//! One tenant against another: what the keys of a namespace can see, change or use up of another
//! namespace. Each attempt prints its result.
//!
//! The bounds of connections and of the time that rules take are in `connections` and
//! `large_settles` too: they hold for all callers.

mod exhaustion;
mod floods;
mod timing;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::keys::{Key, keygen};
use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::{TestServer, catalog_file};

const CATALOG: &str = "[policy.login]\nby = ['customer']\nwindow = '2 per 1h'\nblock = '1h'\n\
    [policy.spend]\nby = ['customer']\nbucket = { size = 100, refill = '1 per 1h' }\n\
    cost = 'reported'\ncredit = { payment = { amount = 1, on = ['200'] } }\n\
    [policy.rules]\nby = ['customer']\nwindow = '10000 per 1s'\nban = [\
    { when = \"body.text.matches('^[a-w ]*1[xyz]+$')\", for = '10m' },\
    { when = \"body.text.matches('^[a-w ]*2[xyz]+$')\", for = '10m' },\
    { when = \"body.items.exists(x, x.code == -1)\", for = '10m' },\
    { when = \"body.text.contains('needle')\", for = '10m' }]\n\
    [store]\ncounter_mib = 4\nblock_mib = 1\nreference_mib = 1\nmark_mib = 1\n";

/// A customer of the shop, whose name no answer to another tenant may contain.
const CUSTOMER: &str = "c-4711-of-the-shop";

/// A server with an operator, a shop, and a hostile tenant that has an admin key of its own.
struct Tenants {
    server: TestServer,
    operator: Key,
    shop: Key,
    shop_support: Key,
    hostile: Key,
    hostile_admin: Key,
}

impl Tenants {
    fn start() -> Self {
        Self::with_settings("")
    }

    fn with_settings(settings: &str) -> Self {
        Self::over(&catalog_file(""), settings)
    }

    /// With the records beside a file, into which the catalog is written.
    fn over(file: &Path, settings: &str) -> Self {
        let operator = keygen(&["--role", "admin", "--name", "ana"]);
        let shop = keygen(&["--role", "check", "--namespace", "shop"]);
        let shop_support = keygen(&["--role", "support", "--namespace", "shop", "--name", "eva"]);
        let hostile = keygen(&["--role", "check", "--namespace", "hostile"]);
        let hostile_admin =
            keygen(&["--role", "admin", "--namespace", "hostile", "--name", "mallory"]);
        let keys = [&operator, &shop, &shop_support, &hostile, &hostile_admin];
        let tables: String = keys.iter().map(|key| key.table.as_str()).collect();
        fs::write(file, format!("{CATALOG}{settings}{tables}")).unwrap();
        let server = TestServer::from_file(file);
        Self { server, operator, shop, shop_support, hostile, hostile_admin }
    }

    fn post(&self, key: &Key, path: &str, body: &Value) -> Value {
        let answer = key.post(&self.server, path, &body.to_string());
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
        answer.json()
    }

    /// Asserts that these pools were full within the last minute.
    fn assert_full(&self, pools: &[&str]) {
        let metrics = self.operator.request(&self.server, "GET /metrics").body;
        for pool in pools {
            let series = format!("\ncatraca_store_full{{pool=\"{pool}\"}} 1\n");
            assert!(metrics.contains(&series), "{pool} is not full: {metrics}");
        }
    }

    /// Sends a check for each number, a hundred in one call; returns the decisions.
    fn checks(&self, key: &Key, numbers: u32, of: impl Fn(u32) -> Value) -> Vec<Value> {
        let numbers: Vec<u32> = (0..numbers).collect();
        let send = |some: &[u32]| {
            let list: Vec<Value> = some.iter().map(|number| of(*number)).collect();
            self.post(key, "/v1/check/batch", &json!(list)).as_array().unwrap().clone()
        };
        numbers.chunks(100).flat_map(send).collect()
    }
}

fn send(server: &TestServer, key: &Key, call: &str, body: &str) -> HttpResponse {
    let mut connection = server.connect();
    let bearer = format!("Bearer {}", key.key);
    connection.send(call, &[JSON, ("Authorization", &bearer)], body.as_bytes());
    connection.read_response()
}

fn entry_of(customer: &str) -> Value {
    json!({ "attribute": "customer", "value": customer })
}

fn entry() -> Value {
    entry_of(CUSTOMER)
}

fn shop_entry() -> Value {
    json!({ "attribute": "customer", "value": CUSTOMER, "namespace": "shop" })
}

/// Calls that would see or change what the shop has: a block, a ticket, a reference and a lease.
fn attempts(id: &str, subject: &Value, ticket: &Value, lease: &Value) -> Vec<(String, String)> {
    let in_shop = |body: Value| {
        let mut body = body;
        body["namespace"] = "shop".into();
        body.to_string()
    };
    let outcome = json!({ "status": 200, "cost": 1 });
    let login = json!({ "policy": "login", "subject": subject });
    vec![
        ("GET /v1/blocks?namespace=shop".to_owned(), String::new()),
        (format!("GET /v1/blocks/{id}"), String::new()),
        (format!("DELETE /v1/blocks/{id}"), json!({ "why": "mine" }).to_string()),
        (
            "POST /v1/blocks".to_owned(),
            in_shop(json!({
                "policy": "login", "subject": subject, "for": "1h"
            })),
        ),
        ("POST /v1/reset".to_owned(), in_shop(login)),
        ("POST /v1/inspect".to_owned(), in_shop(json!({ "subject": subject }))),
        (
            "POST /v1/peek?namespace=shop".to_owned(),
            json!({ "gate": "login", "subject": subject }).to_string(),
        ),
        ("POST /v1/settle".to_owned(), json!({ "ticket": ticket, "outcome": outcome }).to_string()),
        (
            "POST /v1/settle".to_owned(),
            json!({ "ref": "E1", "subject": subject, "outcome": outcome }).to_string(),
        ),
        (format!("DELETE /v1/locks/{}", lease["fence"]), json!({ "reason": "mine" }).to_string()),
        ("POST /v1/locks/renew".to_owned(), json!({ "lease_id": "0".repeat(32) }).to_string()),
        ("GET /v1/blocklist?namespace=shop".to_owned(), String::new()),
        ("POST /v1/blocklist".to_owned(), in_shop(entry())),
        ("POST /v1/allowlist".to_owned(), json!([entry_of("invented"), shop_entry()]).to_string()),
        ("DELETE /v1/blocklist".to_owned(), in_shop(entry())),
        // The entry of the shop is not one of this namespace, nor is the one of all.
        ("DELETE /v1/blocklist".to_owned(), entry().to_string()),
        ("DELETE /v1/blocklist".to_owned(), entry_of("of-all").to_string()),
        ("GET /v1/facts?namespace=shop".to_owned(), String::new()),
        (format!("GET /v1/facts/customer/{CUSTOMER}?namespace=shop"), String::new()),
        (format!("GET /v1/facts/customer/{CUSTOMER}"), String::new()),
        (
            format!("PUT /v1/facts/customer/{CUSTOMER}"),
            in_shop(json!({ "facts": { "plan": "none" } })),
        ),
        (format!("DELETE /v1/facts/customer/{CUSTOMER}"), in_shop(json!({}))),
        (format!("DELETE /v1/facts/customer/{CUSTOMER}"), String::new()),
        ("DELETE /v1/facts/customer/of-all".to_owned(), String::new()),
        ("PUT /v1/policies/login/mode".to_owned(), json!({ "mode": "off" }).to_string()),
        ("POST /v1/config/reload".to_owned(), String::new()),
        ("GET /v1/audit?namespace=shop".to_owned(), String::new()),
        ("GET /v1/config".to_owned(), String::new()),
        ("POST /v1/privacy/export".to_owned(), json!({ "subject": subject }).to_string()),
    ]
}

/// The lists and reports that an operator of the other namespace may read.
fn assert_lists_hide_the_shop(all: &Tenants) {
    let lists = ["GET /v1/blocklist", "GET /v1/allowlist", "GET /v1/facts"];
    let rest = ["GET /v1/audit", "GET /v1/stats", "GET /v1/stats/actions"];
    let blocks = ["GET /v1/blocks", "GET /v1/blocks?state=all", "GET /v1/stats/top-blocked"];
    for call in blocks.iter().chain(&lists).chain(&rest).chain(&["GET /v1/locks"]) {
        let answer = send(&all.server, &all.hostile_admin, call, "");
        assert_eq!(answer.status, 200, "{call}: {}", answer.body);
        let hidden = [CUSTOMER, "order-7", "of-all"];
        assert!(!hidden.iter().any(|name| answer.body.contains(name)), "{call}: {}", answer.body);
    }
}

#[test]
fn a_tenant_sees_and_changes_nothing_of_another() {
    let all = Tenants::start();
    let subject = json!({ "customer": CUSTOMER });
    let block = json!({ "policy": "login", "subject": subject, "for": "1h", "namespace": "shop" });
    let id = all.post(&all.operator, "/v1/blocks", &block)["blocks"][0]["id"].clone();
    let id = id.as_str().unwrap();
    let check = json!({ "gate": "spend", "subject": subject, "ref": "E1" });
    let ticket = all.post(&all.shop, "/v1/check", &check)["ticket"].clone();
    all.post(&all.operator, "/v1/blocklist", &shop_entry());
    all.post(&all.operator, "/v1/blocklist", &entry_of("of-all"));
    let gold = json!({ "facts": { "plan": "gold" }, "namespace": "shop" });
    for (customer, body) in [(CUSTOMER, gold), ("of-all", json!({ "facts": { "plan": "gold" } }))] {
        let call = format!("PUT /v1/facts/customer/{customer}");
        let set = send(&all.server, &all.operator, &call, &body.to_string());
        assert_eq!(set.status, 200, "{}", set.body);
    }
    let lock = json!({ "kind": "payment", "key": "order-7", "ttl_ms": 60_000 });
    let lease = all.post(&all.shop, "/v1/locks/acquire", &lock);

    let attempts = attempts(id, &subject, &ticket, &lease);
    let outcome = json!({ "status": 200, "cost": 1 });
    let login = json!({ "policy": "login", "subject": subject });
    for (call, body) in &attempts {
        for key in [&all.hostile, &all.hostile_admin] {
            let answer = send(&all.server, key, call, body);
            println!("{call}: {} {}", answer.status, answer.problem_code());
            assert!((400..500).contains(&answer.status), "{call} {body}: {answer:?}");
            assert!(!answer.body.contains(CUSTOMER), "{call}: {}", answer.body);
        }
    }
    assert_lists_hide_the_shop(&all);
    let credit = json!({ "ref": "E1", "event": "payment", "subject": subject });
    assert_eq!(all.post(&all.hostile, "/v1/credit", &credit)["applied"], false);
    // The same names are free in another namespace, and change nothing in this one.
    all.post(&all.hostile, "/v1/locks/acquire", &lock);
    all.post(&all.hostile_admin, "/v1/reset", &login);
    all.post(&all.hostile_admin, "/v1/allowlist", &entry());
    all.post(&all.hostile_admin, "/v1/blocklist", &json!({ "range": "0.0.0.0/0" }));
    all.post(&all.hostile_admin, "/v1/blocklist", &entry_of("of-the-shop-too"));
    // Callers may not send the name of a fact; those of the shop send this one.
    let region = json!({ "facts": { "region": "x", "plan": "none" } }).to_string();
    let call = format!("PUT /v1/facts/customer/{CUSTOMER}");
    assert_eq!(send(&all.server, &all.hostile_admin, &call, &region).status, 200);

    let listed = send(&all.server, &all.operator, "GET /v1/blocks?namespace=shop", "");
    assert!(listed.body.contains(id), "{}", listed.body);
    let denied = all.post(&all.shop, "/v1/check", &json!({ "gate": "login", "subject": subject }));
    assert_eq!(denied["reason"], "blocklisted", "{denied}");
    let without_lists = json!({ "gate": "login", "subject": subject, "lists": false });
    let denied = all.post(&all.shop, "/v1/check", &without_lists);
    assert_eq!(denied["reason"], "blocked", "{denied}");
    let another = json!({ "customer": "of-the-shop-too", "ip": "198.51.100.7", "region": "south" });
    let passed = all.post(&all.shop, "/v1/check", &json!({ "gate": "login", "subject": another }));
    assert_eq!(passed["reason"], "ok", "{passed}");
    let call = format!("GET /v1/facts/customer/{CUSTOMER}?namespace=shop");
    let facts = send(&all.server, &all.operator, &call, "").json();
    assert_eq!(facts["facts"], json!({ "plan": "gold" }));
    let settled =
        all.post(&all.shop, "/v1/settle", &json!({ "ticket": ticket, "outcome": outcome }));
    assert_eq!(settled["state"], "settled", "{settled}");
    let renew = json!({ "lease_id": lease["lease_id"] });
    all.post(&all.shop, "/v1/locks/renew", &renew);
}

/// Fills every pool of memory from one namespace.
#[test]
fn a_flood_of_one_tenant_uses_up_nothing_of_another() {
    let all = Tenants::start();
    let subject = |n: u32| json!({ "customer": format!("invented-{n}") });
    let logins =
        all.checks(&all.hostile, 24_000, |n| json!({ "gate": "login", "subject": subject(n) }));
    let degraded = logins.iter().filter(|decision| decision["degraded"] == true).count();
    let again = all.checks(
        &all.hostile,
        42_000,
        |n| json!({ "gate": "login", "subject": subject(n % 14_000) }),
    );
    let blocked = again.iter().filter(|decision| !decision["blocked_until"].is_null()).count();
    all.assert_full(&["counters", "blocks"]);
    let spent = all.checks(&all.hostile, 8_000, |n| {
        json!({ "gate": "spend", "subject": subject(n % 100), "ref": format!("R{n}"), "cost": 0 })
    });
    all.assert_full(&["references"]);
    let mut refused = 0;
    for decision in &spent {
        let body = json!({ "ticket": decision["ticket"], "outcome": { "cost": 0 } });
        let answer = all.hostile.post(&all.server, "/v1/settle", &body.to_string());
        refused += u32::from(answer.status != 200);
    }
    println!(
        "the flood: 24000 keys, {degraded} degraded; {blocked} denied by blocks; 8000 references; \
         {refused} of 8000 settles refused"
    );
    assert!(degraded > 0 && refused > 0, "the pools were not full");
    all.assert_full(&["settled-markers"]);

    let mut counts = [0; 4];
    for n in 0..100 {
        let subject = json!({ "customer": format!("of-the-shop-{n}") });
        let login = json!({ "gate": "login", "subject": subject });
        let first = all.post(&all.shop, "/v1/check", &login);
        counts[0] += u32::from(first["allowed"] == true && first["degraded"] == false);
        all.post(&all.shop, "/v1/check", &login);
        let third = all.post(&all.shop, "/v1/check", &login);
        counts[1] += u32::from(!third["blocked_until"].is_null());
        let reference = format!("S{n}");
        let spend = json!({ "gate": "spend", "subject": subject, "ref": reference });
        all.post(&all.shop, "/v1/check", &spend);
        let outcome = json!({ "status": 200, "cost": 3 });
        let settle = json!({ "ref": reference, "subject": subject, "outcome": outcome });
        counts[2] += u32::from(all.post(&all.shop, "/v1/settle", &settle)["state"] == "settled");
        let credit = json!({ "ref": reference, "event": "payment", "subject": subject });
        counts[3] += u32::from(all.post(&all.shop, "/v1/credit", &credit)["applied"] == true);
    }
    let [counted, blocked, settled, credited] = counts;
    println!(
        "100 new customers of the shop: {counted} counted exactly, {blocked} blocked after their \
         excess, {settled} settled, {credited} credited"
    );
    assert_eq!(counts, [100; 4]);
}
