//! One tenant against another: what the keys of a namespace can see, change or use up of another
//! namespace. Each attempt prints its result.
//!
//! The bounds of connections and of the time that rules take are in `connections` and
//! `large_settles` too: they hold for all callers.

mod attempts;
mod exhaustion;
mod floods;
mod timing;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use catraca_server::http::table::endpoints;
use serde_json::{Value, json};

use attempts::{Attempt, ExpectedAnswer, ShopState};

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

/// What only the shop and its operators have sent.
const PLAN: &str = "gold-of-the-shop";

/// Gives the shop a block, an open check, entries, facts, a lock and a slot.
fn set_up_shop(all: &Tenants) -> ShopState {
    let subject = json!({ "customer": CUSTOMER });
    let block = json!({ "policy": "login", "subject": subject, "for": "1h", "namespace": "shop" });
    let block = all.post(&all.operator, "/v1/blocks", &block)["blocks"][0]["id"].clone();
    let check = json!({ "gate": "spend", "subject": subject, "ref": "E1" });
    let ticket = all.post(&all.shop, "/v1/check", &check)["ticket"].clone();
    all.post(&all.operator, "/v1/blocklist", &shop_entry());
    all.post(&all.operator, "/v1/blocklist", &entry_of("of-all"));
    let plan = json!({ "facts": { "plan": PLAN }, "namespace": "shop" });
    for (customer, body) in [(CUSTOMER, plan), ("of-all", json!({ "facts": { "plan": PLAN } }))] {
        let call = format!("PUT /v1/facts/customer/{customer}");
        let set = send(&all.server, &all.operator, &call, &body.to_string());
        assert_eq!(set.status, 200, "{}", set.body);
    }
    let lease = all.post(&all.shop, "/v1/locks/acquire", &attempts::lock());
    let slot = all.post(&all.shop, "/v1/slots/hold", &attempts::slot());
    ShopState { block: block.as_str().unwrap().to_owned(), ticket, lease, slot }
}

/// Sends an attempt with a key of the hostile tenant.
fn try_attempt(all: &Tenants, shop: &ShopState, key: &Key, attempt: &Attempt) {
    let Attempt { endpoint, call, body, expected } = attempt;
    let answer = send(&all.server, key, call, body);
    println!("{call}: {} {expected:?}", answer.status);
    let seen = &answer.body;
    assert!(answer.status < 500, "{call}: {answer:?}");
    if answer.status >= 400 && !endpoint.starts_with("ANY") {
        let code = answer.json()["code"].clone();
        // Such a call would be refused of the shop, too.
        let is_malformed = ["bad-field", "bad-json", "bad-query", "bad-lock", "bad-instant"];
        assert!(!is_malformed.iter().any(|malformed| code == *malformed), "{call}: {seen}");
    }
    // These answer with 200 if there is nothing to do.
    let done = [
        ("POST /v1/credit", "applied"),
        ("POST /v1/locks/release", "released"),
        ("POST /v1/slots/cancel", "released"),
    ];
    for (_, field) in done.iter().filter(|(of, _)| of == endpoint) {
        assert_eq!(answer.json()[*field], false, "{call}: {seen}");
    }
    let is_admin = std::ptr::eq(key, &all.hostile_admin);
    let secrets = [shop.block.as_str(), PLAN, "of-all"];
    // An error may repeat what the attempt itself says.
    let is_told = |secret: &&str| call.contains(*secret) || body.contains(*secret);
    let is_leaked = secrets.iter().any(|secret| seen.contains(secret) && !is_told(secret));
    assert!(!is_leaked, "{call}: {seen}");
    let names = [CUSTOMER, attempts::ORDER, attempts::CHAIR];
    let has_names = names.iter().any(|name| seen.contains(name));
    match expected {
        ExpectedAnswer::Refusal => {
            assert!(answer.status >= 400 && !has_names, "{call} {body}: {answer:?}")
        }
        ExpectedAnswer::NothingOfTheShop => {
            assert!(!has_names && (answer.status == 200 || !is_admin), "{call}: {answer:?}");
            // The documents of the API have examples.
            let is_document = call.contains("/docs") || call.contains("/openapi");
            assert!(is_document || !seen.contains("\"shop\""), "{call}: {seen}");
        }
        // The other key of the tenant may have the lock or the slot.
        ExpectedAnswer::OwnNamespace if is_admin && !endpoint.starts_with("ANY") => {
            assert!([200, 409].contains(&answer.status), "{call} {body}: {answer:?}");
        }
        ExpectedAnswer::OwnNamespace => {}
    }
}

#[test]
fn every_call_has_an_attempt_of_a_hostile_tenant() {
    let nothing = Value::Null;
    let shop = ShopState {
        block: String::new(),
        ticket: nothing.clone(),
        lease: nothing.clone(),
        slot: nothing,
    };
    let tried = attempts::all(&shop);
    let tried: BTreeSet<&str> = tried.iter().map(|attempt| attempt.endpoint).collect();
    let exempt = BTreeSet::from(attempts::EXEMPT.map(|(endpoint, _)| endpoint));
    assert!(tried.is_disjoint(&exempt), "{exempt:?}");
    let named: BTreeSet<&str> = tried.union(&exempt).copied().collect();
    let rows: Vec<String> = endpoints().map(|row| format!("{} {}", row.method, row.path)).collect();
    let rows: BTreeSet<&str> = rows.iter().map(String::as_str).collect();
    let missing: Vec<_> = rows.difference(&named).collect();
    assert!(missing.is_empty(), "no attempt in `attempts.rs` for {missing:?}");
    let unknown: Vec<_> = named.difference(&rows).collect();
    assert!(unknown.is_empty(), "the table has no {unknown:?}");
}

#[test]
fn a_tenant_sees_and_changes_nothing_of_another() {
    let all = Tenants::start();
    let shop = set_up_shop(&all);
    let subject = json!({ "customer": CUSTOMER });
    let balance = || {
        let bucket = all.post(&all.shop, "/v1/buckets/spend", &json!({ "subject": subject }));
        bucket["available"].as_i64().unwrap_or_else(|| panic!("{bucket}"))
    };
    let before = balance();
    for attempt in &attempts::all(&shop) {
        for key in [&all.hostile, &all.hostile_admin] {
            try_attempt(&all, &shop, key, attempt);
        }
    }
    assert_eq!(balance(), before);
    // Callers may not send the name of a fact; those of the shop send this one.
    let region = json!({ "facts": { "region": "x", "plan": "none" } }).to_string();
    let call = format!("PUT /v1/facts/customer/{CUSTOMER}");
    assert_eq!(send(&all.server, &all.hostile_admin, &call, &region).status, 200);
    assert_shop_is_unchanged(&all, &shop);
}

fn assert_shop_is_unchanged(all: &Tenants, shop: &ShopState) {
    let subject = json!({ "customer": CUSTOMER });
    let outcome = json!({ "status": 200, "cost": 1 });
    let listed = send(&all.server, &all.operator, "GET /v1/blocks?namespace=shop", "");
    assert!(listed.body.contains(&shop.block), "{}", listed.body);
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
    assert_eq!(facts["facts"], json!({ "plan": PLAN }));
    let settle = json!({ "ticket": shop.ticket, "outcome": outcome });
    let settled = all.post(&all.shop, "/v1/settle", &settle);
    assert_eq!(settled["state"], "settled", "{settled}");
    let renew = json!({ "lease_id": shop.lease["lease_id"] });
    all.post(&all.shop, "/v1/locks/renew", &renew);
    let confirm = json!({ "lease_id": shop.slot["lease_id"] });
    all.post(&all.shop, "/v1/slots/confirm", &confirm);
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
