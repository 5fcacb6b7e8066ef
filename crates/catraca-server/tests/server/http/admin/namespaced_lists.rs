//! List entries and facts of one namespace: a bound operator sees and changes only its own, and an
//! operator of all namespaces names one, or none.

use serde_json::{Value, json};

use crate::keys::{Key, keygen};
use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::TestServer;

const CATALOG: &str = "[policy.login]\nby = ['customer']\nwindow = '2 per 1h'\n\
    tier = [ { when = { plan = 'gold' }, window = '9 per 1h' } ]\n\
    [facts.customer.x]\nplan = 'free'\n";

struct Sites {
    server: TestServer,
    /// An operator of all sites.
    ana: Key,
    /// An operator of the shop.
    rui: Key,
    shop: Key,
    blog: Key,
}

impl Sites {
    fn start() -> Self {
        let ana = keygen(&["--role", "admin", "--name", "ana"]);
        let rui = keygen(&["--role", "admin", "--name", "rui", "--namespace", "shop"]);
        let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
        let blog = keygen(&["--role", "check", "--name", "blog", "--namespace", "blog"]);
        let tables = [&ana, &rui, &shop, &blog].map(|key| key.table.as_str()).concat();
        let server = TestServer::with_catalog(&format!("{CATALOG}{tables}"));
        Self { server, ana, rui, shop, blog }
    }

    fn send(&self, key: &Key, call: &str, body: &Value) -> HttpResponse {
        let mut connection = self.server.connect();
        let bearer = format!("Bearer {}", key.key);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        connection.send(call, &[JSON, ("Authorization", &bearer)], body.as_bytes());
        connection.read_response()
    }

    fn done(&self, key: &Key, call: &str, body: &Value) -> Value {
        let answer = self.send(key, call, body);
        assert_eq!(answer.status, 200, "{call} {body}: {}", answer.body);
        answer.json()
    }

    /// The reason and the limit in the shop and in the blog.
    fn peek(&self, customer: &str) -> [(Value, Value); 2] {
        let body = json!({ "gate": "login", "subject": { "customer": customer } });
        [&self.shop, &self.blog].map(|key| {
            let decision = self.done(key, "POST /v1/peek", &body);
            (decision["reason"].clone(), decision["limit"].clone())
        })
    }

    fn reasons(&self, customer: &str) -> [String; 2] {
        self.peek(customer).map(|(reason, _)| reason.as_str().unwrap().to_owned())
    }
}

fn entry(customer: &str) -> Value {
    json!({ "attribute": "customer", "value": customer })
}

fn entry_in(namespace: &str, customer: &str) -> Value {
    json!({ "attribute": "customer", "value": customer, "namespace": namespace })
}

fn assert_refused(answer: &HttpResponse, status: u16, code: &str) {
    assert_eq!((answer.status, answer.problem_code().as_str()), (status, code), "{answer:?}");
}

/// Who listed a caller in all namespaces, and why, is not for the operators of one.
#[test]
fn a_bound_operator_sees_the_reason_of_its_own_entries_alone() {
    let sites = Sites::start();
    let with_reason = |mut entry: Value| {
        entry["reason"] = "case 12".into();
        entry
    };
    sites.done(&sites.ana, "POST /v1/blocklist", &with_reason(entry("tom")));
    sites.done(&sites.rui, "POST /v1/blocklist", &with_reason(entry("bob")));
    let inspect = |key: &Key, customer: &str| {
        let body = json!({ "subject": { "customer": customer }, "namespace": "shop" });
        sites.done(key, "POST /v1/inspect", &body)["list_entry"].clone()
    };
    let seen = |entry: &Value| [entry["reason"].clone(), entry["by"].clone()];
    let shown = |by: &str| [Value::from("case 12"), Value::from(by)];
    assert_eq!(seen(&inspect(&sites.ana, "tom")), shown("ana"));
    assert_eq!(seen(&inspect(&sites.rui, "bob")), shown("rui"));
    let of_all = inspect(&sites.rui, "tom");
    assert_eq!(seen(&of_all), [Value::Null, Value::Null]);
    assert_eq!((&of_all["value"], &of_all["namespace"]), (&"tom".into(), &Value::Null));
}

#[test]
fn a_bound_operator_lists_and_changes_entries_of_its_namespace_only() {
    let sites = Sites::start();
    let added = sites.done(&sites.rui, "POST /v1/blocklist", &entry("bob"));
    assert_eq!(added["entries"][0]["namespace"], "shop", "it need not be named");
    assert_eq!(sites.reasons("bob"), ["blocklisted", "ok"]);
    sites.done(&sites.ana, "POST /v1/blocklist", &entry_in("blog", "eve"));
    sites.done(&sites.ana, "POST /v1/blocklist", &entry("tom"));
    assert_eq!(sites.reasons("eve"), ["ok", "blocklisted"]);
    assert_eq!(sites.reasons("tom"), ["blocklisted", "blocklisted"]);

    let listed = |key: &Key, query: &str| {
        let page = sites.done(key, &format!("GET /v1/blocklist{query}"), &Value::Null);
        let rows = page["entries"].as_array().unwrap().clone();
        rows.iter().map(|row| (row["namespace"].clone(), row["value"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(listed(&sites.rui, ""), [("shop".into(), "bob".into())]);
    assert_eq!(listed(&sites.rui, "?namespace=shop").len(), 1);
    assert_eq!(listed(&sites.ana, "?namespace=blog"), [("blog".into(), "eve".into())]);
    let all = [(Value::Null, "tom".into()), ("blog".into(), "eve".into())];
    assert_eq!(listed(&sites.ana, "")[..2], all);
    assert_eq!(listed(&sites.ana, "").len(), 3);

    for call in ["POST /v1/blocklist", "DELETE /v1/blocklist", "POST /v1/allowlist"] {
        let other = sites.send(&sites.rui, call, &entry_in("blog", "eve"));
        assert_refused(&other, 403, "namespace-bound-key");
    }
    let other = sites.send(&sites.rui, "GET /v1/blocklist?namespace=blog", &Value::Null);
    assert_refused(&other, 403, "namespace-bound-key");
    for customer in ["eve", "tom"] {
        let foreign = sites.send(&sites.rui, "DELETE /v1/blocklist", &entry(customer));
        assert_refused(&foreign, 404, "unknown-entry");
    }
    let unknown = sites.send(&sites.ana, "POST /v1/blocklist", &entry_in("shpo", "eve"));
    assert_refused(&unknown, 400, "unknown-namespace");
    let many = json!([entry("a"), entry_in("blog", "b")]);
    let mixed = sites.send(&sites.rui, "POST /v1/blocklist", &many);
    assert_refused(&mixed, 403, "namespace-bound-key");
    assert_eq!(sites.reasons("a"), ["ok", "ok"], "all or none");

    // An entry of the namespace cannot lift one of all namespaces elsewhere.
    sites.done(&sites.rui, "POST /v1/allowlist", &entry("tom"));
    assert_eq!(sites.reasons("tom"), ["allowlisted", "blocklisted"]);
    let removed = sites.done(&sites.rui, "DELETE /v1/blocklist", &entry("bob"));
    assert_eq!(removed["before"]["namespace"], "shop");
    assert_eq!(sites.reasons("bob"), ["ok", "ok"]);
    sites.done(&sites.ana, "DELETE /v1/blocklist", &entry_in("blog", "eve"));
    assert_eq!(sites.reasons("eve"), ["ok", "ok"]);
    let audit = sites.done(&sites.ana, "GET /v1/audit", &Value::Null).to_string();
    assert!(audit.contains("blocklist/shop customer=bob"), "{audit}");
}

#[test]
fn a_bound_operator_sets_and_sees_facts_of_its_namespace_only() {
    let sites = Sites::start();
    let gold = json!({ "facts": { "plan": "gold" } });
    let call = |verb: &str| format!("{verb} /v1/facts/customer/bob");
    let set = sites.done(&sites.rui, &call("PUT"), &gold);
    assert_eq!((&set["namespace"], &set["after"]["plan"]), (&"shop".into(), &"gold".into()));
    assert_eq!(sites.peek("bob").map(|(_, limit)| limit), [9, 2]);
    let other = json!({ "facts": { "plan": "gold" }, "namespace": "blog" });
    assert_refused(&sites.send(&sites.rui, &call("PUT"), &other), 403, "namespace-bound-key");
    let other = json!({ "namespace": "blog" });
    assert_refused(&sites.send(&sites.rui, &call("DELETE"), &other), 403, "namespace-bound-key");
    for path in ["/v1/facts?namespace=blog", "/v1/facts/customer/bob?namespace=blog"] {
        let other = sites.send(&sites.rui, &format!("GET {path}"), &Value::Null);
        assert_refused(&other, 403, "namespace-bound-key");
    }

    let free = json!({ "facts": { "plan": "free" }, "namespace": "blog" });
    sites.done(&sites.ana, &call("PUT"), &free);
    sites.done(&sites.ana, "PUT /v1/facts/customer/tom", &gold);
    let listed = |key: &Key, query: &str| {
        let page = sites.done(key, &format!("GET /v1/facts{query}"), &Value::Null);
        let rows = page["facts"].as_array().unwrap().clone();
        rows.iter().map(|row| row["namespace"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&sites.rui, ""), ["shop"]);
    assert_eq!(listed(&sites.ana, ""), [Value::from("blog"), "shop".into(), Value::Null]);
    assert_eq!(listed(&sites.ana, "?namespace=blog"), ["blog"]);
    let first = sites.done(&sites.ana, "GET /v1/facts?limit=1", &Value::Null);
    let next: String =
        form_urlencoded::byte_serialize(first["next"].as_str().unwrap().as_bytes()).collect();
    assert_eq!(listed(&sites.ana, &format!("?after={next}")), [Value::from("shop"), Value::Null]);
    let unseen = sites.send(&sites.rui, "GET /v1/facts/customer/tom", &Value::Null);
    assert_refused(&unseen, 404, "unknown-value");
    let foreign = sites.send(&sites.rui, "DELETE /v1/facts/customer/tom", &Value::Null);
    assert_refused(&foreign, 404, "unknown-value");
    let shown = sites.done(&sites.rui, &call("GET"), &Value::Null);
    assert_eq!((&shown["namespace"], &shown["facts"]["plan"]), (&"shop".into(), &"gold".into()));

    sites.done(&sites.rui, &call("DELETE"), &Value::Null);
    assert_eq!(sites.peek("bob").map(|(_, limit)| limit), [2, 2]);
    assert_eq!(sites.peek("tom").map(|(_, limit)| limit), [9, 9]);
    let own = sites.done(&sites.ana, &format!("{}?namespace=blog", call("GET")), &Value::Null);
    assert_eq!(own["facts"]["plan"], "free", "the other namespace keeps its own");
}
