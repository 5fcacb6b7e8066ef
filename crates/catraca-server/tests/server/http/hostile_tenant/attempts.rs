//! One attempt or more for every call of the server: what a hostile tenant sends to see or change
//! what the shop has.

use serde_json::{Value, json};

use super::{CUSTOMER, entry, entry_of, shop_entry};

/// What the shop has, as its own calls have shown it. The hostile tenant knows all of it.
pub struct ShopState {
    /// The id of its block.
    pub block: String,
    /// The ticket of a check that is not settled.
    pub ticket: Value,
    /// A lock.
    pub lease: Value,
    /// A slot that is held.
    pub slot: Value,
}

/// One call of the hostile tenant.
pub struct Attempt {
    /// The endpoint, as in the table.
    pub endpoint: &'static str,
    /// The method and the target.
    pub call: String,
    pub body: String,
    pub expected: ExpectedAnswer,
}

/// What the server may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// An error of the client, without anything of the shop.
    Refusal,
    /// Any answer without anything of the shop.
    NothingOfTheShop,
    /// Any answer: the call is about the namespace of the key. The answer may repeat the names that
    /// were sent, and the shop is unchanged.
    OwnNamespace,
}

/// Calls without an attempt, with the reason.
pub const EXEMPT: [(&str, &str); 1] =
    [("GET /v1/events", "it has no end; the tests of bound operators read it")];

/// The lock of the shop.
pub const ORDER: &str = "order-of-the-shop";
/// The calendar of the shop.
pub const CHAIR: &str = "chair-of-the-shop";
/// The time of the slot.
pub const RANGE: (&str, &str) = ("2100-01-01T10:00:00Z", "2100-01-01T11:00:00Z");

/// The body of a request for the lock of the shop.
pub fn lock() -> Value {
    json!({ "kind": "payment", "key": ORDER, "tenant": "t1", "ttl_ms": 60_000 })
}

/// The body of a request for the slot of the shop.
pub fn slot() -> Value {
    json!({ "calendar": CHAIR, "start": RANGE.0, "end": RANGE.1, "ttl_ms": 60_000 })
}

fn in_shop(mut body: Value) -> Value {
    body["namespace"] = "shop".into();
    body
}

fn subject() -> Value {
    json!({ "customer": CUSTOMER })
}

fn login() -> Value {
    json!({ "policy": "login", "subject": subject() })
}

fn check() -> Value {
    json!({ "gate": "login", "subject": subject() })
}

/// The attempts, of those that are refused first: a later one makes leases of the hostile tenant
/// with the same fences.
pub fn all(shop: &ShopState) -> Vec<Attempt> {
    let mut all = Vec::new();
    all.extend(refused_decisions(shop));
    all.extend(refused_lists_and_facts());
    all.extend(refused_locks(shop));
    all.extend(refused_acts(shop));
    all.extend(reports());
    all.extend(own_acts());
    all
}

/// An attempt whose target has the path of its endpoint.
fn attempt(endpoint: &'static str, expected: ExpectedAnswer, query: &str, body: Value) -> Attempt {
    at(endpoint, expected, format!("{endpoint}{query}"), body)
}

fn at(endpoint: &'static str, expected: ExpectedAnswer, call: String, body: Value) -> Attempt {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Attempt { endpoint, call, body, expected }
}

fn refused(endpoint: &'static str, query: &str, body: Value) -> Attempt {
    attempt(endpoint, ExpectedAnswer::Refusal, query, body)
}

fn refused_at(endpoint: &'static str, call: String, body: Value) -> Attempt {
    at(endpoint, ExpectedAnswer::Refusal, call, body)
}

const IN_SHOP: &str = "?namespace=shop";

fn refused_decisions(shop: &ShopState) -> Vec<Attempt> {
    let outcome = json!({ "status": 200, "cost": 1 });
    let by_reference = json!({ "ref": "E1", "subject": subject(), "outcome": outcome });
    let buckets = json!({ "subject": subject() });
    vec![
        refused("POST /v1/peek", IN_SHOP, check()),
        refused("POST /v1/settle", "", json!({ "ticket": shop.ticket, "outcome": outcome })),
        refused("POST /v1/settle", "", by_reference),
        refused("POST /v1/buckets", IN_SHOP, buckets.clone()),
        refused_at(
            "POST /v1/buckets/{policy}",
            format!("POST /v1/buckets/spend{IN_SHOP}"),
            buckets,
        ),
    ]
}

fn refused_lists_and_facts() -> Vec<Attempt> {
    let mut all = Vec::new();
    let lists = [
        ["GET /v1/blocklist", "POST /v1/blocklist", "DELETE /v1/blocklist"],
        ["GET /v1/allowlist", "POST /v1/allowlist", "DELETE /v1/allowlist"],
    ];
    for [get, post, delete] in lists {
        all.push(refused(get, IN_SHOP, Value::Null));
        all.push(refused(post, "", in_shop(entry())));
        all.push(refused(post, "", json!([entry_of("invented"), shop_entry()])));
        all.push(refused(delete, "", in_shop(entry())));
        // The entry of the shop is not one of this namespace, nor is the one of all.
        all.push(refused(delete, "", entry()));
        all.push(refused(delete, "", entry_of("of-all")));
    }
    let one = |method: &str, query: &str| format!("{method} /v1/facts/customer/{CUSTOMER}{query}");
    let (get, put) = ("GET /v1/facts/{attribute}/{value}", "PUT /v1/facts/{attribute}/{value}");
    let delete = "DELETE /v1/facts/{attribute}/{value}";
    let facts = json!({ "facts": { "plan": "none" } });
    all.extend([
        refused("GET /v1/facts", IN_SHOP, Value::Null),
        refused_at(get, one("GET", IN_SHOP), Value::Null),
        refused_at(get, one("GET", ""), Value::Null),
        refused_at(put, one("PUT", ""), in_shop(facts)),
        refused_at(delete, one("DELETE", ""), in_shop(json!({}))),
        refused_at(delete, one("DELETE", ""), Value::Null),
        refused_at(delete, "DELETE /v1/facts/customer/of-all".to_owned(), Value::Null),
    ]);
    all
}

fn refused_locks(shop: &ShopState) -> Vec<Attempt> {
    let lease = json!({ "lease_id": shop.lease["lease_id"] });
    let slot = json!({ "lease_id": shop.slot["lease_id"] });
    let mut moved = slot.clone();
    moved["start"] = "2100-01-02T10:00:00Z".into();
    moved["end"] = "2100-01-02T11:00:00Z".into();
    let mut reacquired = slot.clone();
    reacquired["reacquire_if_free"] = true.into();
    let why = json!({ "reason": "mine" });
    let (from, to) = RANGE;
    let calendar = format!("?calendar={CHAIR}&from={from}&to={to}");
    let one = "DELETE /v1/locks/{fence}";
    let mut all = vec![
        refused("POST /v1/locks/renew", "", lease.clone()),
        attempt("POST /v1/locks/release", ExpectedAnswer::NothingOfTheShop, "", lease),
        refused("POST /v1/slots/confirm", "", slot.clone()),
        refused("POST /v1/slots/confirm", "", reacquired),
        attempt("POST /v1/slots/cancel", ExpectedAnswer::NothingOfTheShop, "", slot),
        refused("POST /v1/slots/move", "", moved),
        refused("GET /v1/slots", &format!("{calendar}&namespace=shop"), Value::Null),
        attempt("GET /v1/slots", ExpectedAnswer::NothingOfTheShop, &calendar, Value::Null),
        refused("GET /v1/locks", IN_SHOP, Value::Null),
        refused("GET /v1/stats/locks", IN_SHOP, Value::Null),
        refused("DELETE /v1/locks", "?tenant=t1&namespace=shop", why.clone()),
    ];
    for fence in [&shop.lease["fence"], &shop.slot["fence"]] {
        all.push(refused_at(one, format!("DELETE /v1/locks/{fence}{IN_SHOP}"), why.clone()));
        all.push(refused_at(one, format!("DELETE /v1/locks/{fence}"), why.clone()));
    }
    all
}

fn refused_acts(shop: &ShopState) -> Vec<Attempt> {
    let block = &shop.block;
    let mut new_block = in_shop(login());
    new_block["for"] = "1h".into();
    let why = json!({ "why": "mine" });
    vec![
        refused("GET /v1/blocks", IN_SHOP, Value::Null),
        refused("POST /v1/blocks", "", new_block),
        refused_at("GET /v1/blocks/{id}", format!("GET /v1/blocks/{block}"), Value::Null),
        refused_at("DELETE /v1/blocks/{id}", format!("DELETE /v1/blocks/{block}"), why),
        refused("POST /v1/reset", "", in_shop(login())),
        refused("POST /v1/inspect", "", in_shop(json!({ "subject": subject() }))),
        refused_at(
            "PUT /v1/policies/{name}/mode",
            "PUT /v1/policies/login/mode".to_owned(),
            json!({ "mode": "off" }),
        ),
        refused("POST /v1/config/reload", "", Value::Null),
        refused("GET /v1/config", "", Value::Null),
        refused("GET /v1/policies", "", Value::Null),
        refused_at("GET /v1/policies/{name}", "GET /v1/policies/login".to_owned(), Value::Null),
        refused("GET /v1/selftest", "", Value::Null),
        refused("POST /v1/selftest", "", json!({ "action": "clear_locks" })),
        refused("POST /v1/selftest", "", json!({ "action": "clear_rate_limits" })),
        refused("GET /metrics", "", Value::Null),
        refused("GET /v1/audit", IN_SHOP, Value::Null),
    ]
}

/// Lists and reports of the own namespace, and what is the same for all.
fn reports() -> Vec<Attempt> {
    let shown = |endpoint| attempt(endpoint, ExpectedAnswer::NothingOfTheShop, "", Value::Null);
    let shown_at = |endpoint, call: &str| {
        at(endpoint, ExpectedAnswer::NothingOfTheShop, call.to_owned(), Value::Null)
    };
    let lists = ["GET /v1/blocks", "GET /v1/blocklist", "GET /v1/allowlist", "GET /v1/facts"];
    let reports = [
        "GET /v1/locks",
        "GET /v1/stats/locks",
        "GET /v1/namespaces",
        "GET /v1/stats",
        "GET /v1/stats/callers",
        "GET /v1/stats/top-blocked",
        "GET /v1/stats/actions",
        "GET /v1/audit",
        "GET /v1/whoami",
        "GET /healthz",
        "GET /readyz",
        "GET /openapi.json",
        "GET /",
        "GET /docs",
        "GET /docs/style.css",
        "GET /docs/errors",
    ];
    let mut all: Vec<Attempt> = lists.into_iter().chain(reports).map(shown).collect();
    all.extend([
        shown_at("GET /v1/blocks", "GET /v1/blocks?state=all"),
        shown_at("GET /docs/errors/{code}", "GET /docs/errors/no-key"),
    ]);
    all
}

/// Calls that succeed in the namespace of the key, with the names that the shop uses.
fn own_acts() -> Vec<Attempt> {
    let own = |endpoint, body| attempt(endpoint, ExpectedAnswer::OwnNamespace, "", body);
    let own_at = |endpoint, call: &str| {
        at(endpoint, ExpectedAnswer::OwnNamespace, call.to_owned(), Value::Null)
    };
    let states = json!([{ "policy": "spend", "available": 0 }]);
    let observed_at = "2020-01-01T00:00:00Z";
    let credit = json!({ "ref": "E1", "event": "payment", "subject": subject() });
    vec![
        own("POST /v1/check", check()),
        own("POST /v1/check/batch", json!([check(), check()])),
        own("POST /v1/credit", credit),
        own(
            "POST /v1/buckets/reconcile",
            json!({ "subject": subject(), "observed_at": observed_at, "states": states }),
        ),
        own_at("ANY /v1/authorize", "GET /v1/authorize"),
        own_at("ANY /v1/authorize/{*rest}", "GET /v1/authorize/x"),
        own_at("ANY /v1/gates/{gate}/authorize", "GET /v1/gates/login/authorize"),
        own_at("ANY /v1/gates/{gate}/authorize/{*rest}", "GET /v1/gates/login/authorize/x"),
        own("POST /v1/locks/acquire", lock()),
        own("POST /v1/slots/hold", slot()),
        attempt("DELETE /v1/locks", ExpectedAnswer::OwnNamespace, "?tenant=t1", Value::Null),
        own("POST /v1/reset", login()),
        own("POST /v1/privacy/export", entry()),
        own("POST /v1/privacy/erase", entry()),
        own("POST /v1/allowlist", entry()),
        own("POST /v1/blocklist", json!({ "range": "0.0.0.0/0" })),
        own("POST /v1/blocklist", entry_of("of-the-shop-too")),
    ]
}
