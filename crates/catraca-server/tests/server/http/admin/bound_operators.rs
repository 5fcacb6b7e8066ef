//! What operators whose key is bound to a namespace see of the audit, the live feed, the reports
//! and the records: everything of their namespace, and nothing of another.

use serde_json::{Value, json};

use crate::keys::{Key, keygen};
use crate::raw_connection::{HttpResponse, JSON, RawConnection};
use crate::test_server::TestServer;

const POLICY: &str = "[policy.login]\nby = ['customer']\nwindow = '2 per 1h'\nblock = '1h'\n\
    [attribute.customer]\n";

struct Sites {
    server: TestServer,
    ana: Key,
    /// The admin and the support of the shop, and the support of all sites.
    rui: Key,
    eva: Key,
    ivo: Key,
    shop: Key,
    blog: Key,
}

impl Sites {
    fn start() -> Self {
        let ana = keygen(&["--role", "admin", "--name", "ana"]);
        let rui = keygen(&["--role", "admin", "--name", "rui", "--namespace", "shop"]);
        let eva = keygen(&["--role", "support", "--name", "eva", "--namespace", "shop"]);
        let ivo = keygen(&["--role", "support", "--name", "ivo"]);
        let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
        let blog = keygen(&["--role", "check", "--name", "blog", "--namespace", "blog"]);
        let keys = [&ana, &rui, &eva, &ivo, &shop, &blog];
        let tables = keys.map(|key| key.table.as_str()).concat();
        let server = TestServer::with_catalog(&format!("{POLICY}{tables}"));
        Self { server, ana, rui, eva, ivo, shop, blog }
    }

    fn send(&self, key: &Key, call: &str, body: &Value) -> HttpResponse {
        let mut connection = self.server.connect();
        let bearer = format!("Bearer {}", key.key);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        connection.send(call, &[JSON, ("Authorization", &bearer)], text.as_bytes());
        connection.read_response()
    }

    fn ok(&self, key: &Key, call: &str, body: &Value) -> Value {
        let answer = self.send(key, call, body);
        assert_eq!(answer.status, 200, "{call} {body}: {}", answer.body);
        answer.json()
    }

    /// Makes the same customer exceed the limit in both namespaces, and an operator act in both.
    fn act(&self) {
        let check = json!({ "gate": "login", "subject": { "customer": "c-7" } });
        for key in [&self.shop, &self.blog] {
            for _ in 0..3 {
                self.ok(key, "POST /v1/check", &check);
            }
        }
        for namespace in ["shop", "blog"] {
            let subject = json!({ "customer": format!("of-{namespace}") });
            let block = json!({ "policy": "login", "subject": subject, "for": "1h",
                "namespace": namespace });
            self.ok(&self.ana, "POST /v1/blocks", &block);
            let entry = json!({ "attribute": "customer", "value": format!("listed-{namespace}"),
                "namespace": namespace });
            self.ok(&self.ana, "POST /v1/blocklist", &entry);
        }
        let all = json!({ "attribute": "customer", "value": "listed-all" });
        self.ok(&self.ana, "POST /v1/blocklist", &all);
        let fact = json!({ "facts": { "plan": "gold" }, "namespace": "blog" });
        self.ok(&self.ana, "PUT /v1/facts/customer/of-blog", &fact);
    }

    fn listen(&self, key: &Key) -> RawConnection {
        let mut connection = self.server.connect();
        let bearer = format!("Bearer {}", key.key);
        connection.send("GET /v1/events", &[("Authorization", &bearer)], b"");
        connection.read_until(": listening");
        connection
    }
}

/// The names of another namespace, none of which may be shown.
fn assert_of_shop(text: &str, what: &str) {
    for name in ["of-blog", "listed-blog", "listed-all", "blog"] {
        assert!(!text.contains(name), "{what} shows {name}: {text}");
    }
}

#[test]
fn the_audit_of_a_bound_operator_is_that_of_its_namespace() {
    let sites = Sites::start();
    sites.act();
    for key in [&sites.rui, &sites.eva] {
        let audit = sites.ok(key, "GET /v1/audit", &Value::Null);
        let targets = audit["acts"].as_array().unwrap().iter().map(|act| act["target"].to_string());
        let targets: Vec<String> = targets.collect();
        // Values that are not private are in clear.
        let expected = [r#""blocklist/shop customer=listed-shop""#, r#""login customer=of-shop""#];
        assert_eq!(targets, expected);
        assert_of_shop(&audit.to_string(), "the audit");
        let other = sites.send(key, "GET /v1/audit?namespace=blog", &Value::Null);
        assert_eq!((other.status, other.problem_code().as_str()), (403, "namespace-bound-key"));
    }
    for key in [&sites.ana, &sites.ivo] {
        let all = sites.ok(key, "GET /v1/audit", &Value::Null).to_string();
        assert!(all.contains("login customer=of-blog") && all.contains("listed-all"), "{all}");
        let blog = sites.ok(key, "GET /v1/audit?namespace=blog", &Value::Null).to_string();
        assert!(blog.contains("of-blog") && !blog.contains("of-shop"), "{blog}");
    }
}

#[test]
fn the_feed_of_a_bound_operator_has_the_events_of_its_namespace() {
    let sites = Sites::start();
    let mut own = [sites.listen(&sites.rui), sites.listen(&sites.eva)];
    let mut all = [sites.listen(&sites.ana), sites.listen(&sites.ivo)];
    sites.act();
    // The last event of the shop, after which those of the blog would have arrived.
    let last = json!({ "policy": "login", "subject": { "customer": "the-last" }, "for": "1h" });
    sites.ok(&sites.rui, "POST /v1/blocks", &last);
    for feed in &mut own {
        let events = feed.read_until("the-last");
        assert_of_shop(&events, "the feed");
        assert!(events.contains(r#""subject":{"customer":"c-7"}"#), "{events}");
        assert!(events.contains("event: denied") && events.contains("of-shop"), "{events}");
    }
    for feed in &mut all {
        let events = feed.read_until("the-last");
        assert!(events.contains("of-blog") && events.contains("of-shop"), "{events}");
    }
    // One namespace cannot take the places of all others.
    let more: Vec<RawConnection> = (2..16).map(|_| sites.listen(&sites.rui)).collect();
    let refused = sites.send(&sites.eva, "GET /v1/events", &Value::Null);
    assert_eq!((refused.status, refused.problem_code().as_str()), (503, "too-many-listeners"));
    drop(sites.listen(&sites.ana));
    drop((more, own));
}

#[test]
fn reports_exports_and_erasures_of_a_bound_operator_are_those_of_its_namespace() {
    let sites = Sites::start();
    sites.act();
    let stats = sites.ok(&sites.rui, "GET /v1/stats", &Value::Null);
    assert_eq!(
        (&stats["total"], &stats["policies"][0]["total"]),
        (&json!(3), &json!(3)),
        "{stats}"
    );
    let stats = sites.ok(&sites.rui, "GET /v1/stats/actions", &Value::Null);
    assert_eq!(stats["actions"][0]["total"], 3, "{stats}");
    assert_eq!(sites.ok(&sites.ana, "GET /v1/stats", &Value::Null)["total"], 6);
    let top = sites.ok(&sites.rui, "GET /v1/stats/top-blocked", &Value::Null).to_string();
    assert!(top.contains("c-7") && top.contains("of-shop"), "{top}");
    assert_of_shop(&top, "the most blocked");

    let about = |customer: &str| json!({ "attribute": "customer", "value": customer });
    let exported = sites.ok(&sites.rui, "POST /v1/privacy/export", &about("c-7"));
    assert_eq!(exported["blocks"].as_array().unwrap().len(), 1, "{exported}");
    assert_of_shop(&exported.to_string(), "the export");
    let other = sites.ok(&sites.rui, "POST /v1/privacy/export", &about("of-blog"));
    assert_eq!((&other["blocks"], &other["namespace_facts"]), (&json!([]), &json!({})), "{other}");
    let erased = sites.ok(&sites.rui, "POST /v1/privacy/erase", &about("of-blog"));
    let none = json!({ "blocks": 0, "facts": 0, "acts": 0 });
    let retained = json!({ "blocks": 0, "lists": 0, "debts": 0 });
    assert_eq!((&erased["erased"], &erased["retained"]), (&none, &retained), "{erased}");
    let facts = sites.ok(&sites.ana, "GET /v1/facts/customer/of-blog?namespace=blog", &Value::Null);
    assert_eq!(facts["facts"]["plan"], "gold");
    let audit = sites.ok(&sites.rui, "GET /v1/audit?act=erase", &Value::Null);
    assert_eq!(audit["acts"][0]["target"], "records/shop one value of customer", "{audit}");
    // Only what covers all namespaces is refused.
    let calls = ["PUT /v1/policies/login/mode", "POST /v1/config/reload", "GET /v1/config"];
    for call in calls {
        let refused = sites.send(&sites.rui, call, &Value::Null);
        let found = (refused.status, refused.problem_code());
        assert_eq!(found, (403, "namespace-bound-key".to_owned()), "{call}");
    }
}
