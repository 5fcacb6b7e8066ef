//! Operators and namespaces: an act names its namespace or is refused, and a bound key works inside
//! its own.

use serde_json::Value;

use crate::keys::{Key, keygen};
use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::{TestServer, catalog_file};

const POLICY: &str = "[policy.login]\nby = ['ip']\nwindow = '2 per 1h'\n";
const PEEK: &str = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;

struct Sites {
    server: TestServer,
    /// An operator of all sites.
    ana: Key,
    /// An operator of the shop.
    rui: Key,
    shop: Key,
}

impl Sites {
    fn start() -> Self {
        let ana = keygen(&["--role", "admin", "--name", "ana"]);
        let rui = keygen(&["--role", "admin", "--name", "rui", "--namespace", "shop"]);
        let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
        let blog = keygen(&["--role", "check", "--name", "blog", "--namespace", "blog"]);
        let tables = [&ana, &rui, &shop, &blog].map(|key| key.table.as_str()).concat();
        let server = TestServer::with_catalog(&format!("{POLICY}{tables}"));
        Self { server, ana, rui, shop }
    }

    fn block(&self, key: &Key, namespace: &str) -> HttpResponse {
        let body = format!(
            r#"{{"policy":"login","subject":{{"ip":"198.51.100.7"}},"for":"1h"{namespace}}}"#
        );
        key.post(&self.server, "/v1/blocks", &body)
    }

    fn delete(&self, key: &Key, id: &str) -> HttpResponse {
        let mut connection = self.server.connect();
        let bearer = format!("Bearer {}", key.key);
        let headers = [JSON, ("Authorization", bearer.as_str())];
        connection.send(&format!("DELETE /v1/blocks/{id}"), &headers, b"");
        connection.read_response()
    }

    fn blocks(&self, key: &Key, query: &str) -> Vec<(String, String)> {
        let page = key.request(&self.server, &format!("GET /v1/blocks{query}")).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = page["blocks"].as_array().unwrap().iter();
        rows.map(|row| (text(&row["namespace"]), text(&row["id"]))).collect()
    }

    fn shop_reason(&self) -> String {
        self.shop.post(&self.server, "/v1/peek", PEEK).json()["reason"].to_string()
    }
}

fn assert_refused(answer: &HttpResponse, status: u16, code: &str) {
    assert_eq!((answer.status, answer.problem_code().as_str()), (status, code), "{answer:?}");
}

#[test]
fn an_act_without_its_namespace_is_refused_with_the_list_of_them() {
    let sites = Sites::start();
    for answer in [
        sites.block(&sites.ana, ""),
        sites.ana.post(&sites.server, "/v1/peek", PEEK),
        sites.ana.post(
            &sites.server,
            "/v1/reset",
            r#"{"policy":"login","subject":{"ip":"198.51.100.7"}}"#,
        ),
    ] {
        assert_refused(&answer, 400, "namespace-required");
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains("`blog`, `default`, `shop`"), "{detail}");
    }
    let misspelt = sites.block(&sites.ana, r#","namespace":"shpo""#);
    assert_refused(&misspelt, 400, "unknown-namespace");
    assert_eq!(sites.shop_reason(), r#""ok""#);

    let made = sites.block(&sites.ana, r#","namespace":"shop""#);
    assert_eq!(made.json()["blocks"][0]["namespace"], "shop");
    assert_eq!(sites.shop_reason(), r#""blocked""#);
    let peek = |namespace: &str| {
        let path = format!("/v1/peek?namespace={namespace}");
        sites.ana.post(&sites.server, &path, PEEK).json()["reason"].to_string()
    };
    assert_eq!((peek("shop"), peek("blog")), (r#""blocked""#.into(), r#""ok""#.into()));
    let reset = r#"{"policy":"login","namespace":"shop","subject":{"ip":"198.51.100.7"}}"#;
    assert_eq!(sites.ana.post(&sites.server, "/v1/reset", reset).status, 200);
    assert_eq!(sites.shop_reason(), r#""ok""#);
    let names = sites.ana.request(&sites.server, "GET /v1/namespaces").json();
    assert_eq!(names["namespaces"].to_string(), r#"["blog","default","shop"]"#);
}

#[test]
fn lists_show_every_namespace_and_a_release_by_id_needs_none() {
    let sites = Sites::start();
    for namespace in ["shop", "blog", "default"] {
        let made = sites.block(&sites.ana, &format!(r#","namespace":"{namespace}""#));
        assert_eq!(made.status, 200, "{made:?}");
    }
    let all = sites.blocks(&sites.ana, "");
    let names: Vec<&str> = all.iter().map(|(namespace, _)| namespace.as_str()).collect();
    assert_eq!(names, ["default", "blog", "shop"]);
    let [(_, id)] = &sites.blocks(&sites.ana, "?namespace=shop")[..] else { panic!("{all:?}") };
    assert_eq!(sites.delete(&sites.ana, id).status, 200);
    let audit = sites.ana.request(&sites.server, "GET /v1/audit").json();
    let acts = audit["acts"].as_array().unwrap().iter();
    // The act of the catalog at the start is of no namespace.
    let namespaces: Vec<&str> = acts.filter_map(|act| act["namespace"].as_str()).collect();
    assert_eq!(namespaces, ["shop", "default", "blog", "shop"], "{audit}");
    assert_eq!(sites.shop_reason(), r#""ok""#);
}

/// Regression: the namespace was ignored, and the policy was reset in all of them.
#[test]
fn a_whole_policy_is_not_reset_in_one_namespace() {
    let sites = Sites::start();
    for namespace in ["shop", "blog"] {
        let made = sites.block(&sites.ana, &format!(r#","namespace":"{namespace}""#));
        assert_eq!(made.status, 200, "{made:?}");
    }
    for key in [&sites.ana, &sites.rui] {
        let reset = r#"{"policy":"login","confirm":"login","why":"a test","namespace":"shop"}"#;
        let answer = key.post(&sites.server, "/v1/reset", reset);
        assert_refused(&answer, 400, "confirm-required");
    }
    assert_eq!(sites.blocks(&sites.ana, "").len(), 2, "no block has ended");
    let reset = r#"{"policy":"login","confirm":"login","why":"a test"}"#;
    assert_eq!(sites.ana.post(&sites.server, "/v1/reset", reset).json()["blocks"], 2);
}

#[test]
fn a_bound_operator_works_inside_its_namespace() {
    let sites = Sites::start();
    assert_eq!(sites.block(&sites.ana, r#","namespace":"blog""#).status, 200);
    let blog = sites.blocks(&sites.ana, "")[0].1.clone();
    assert_eq!(sites.block(&sites.rui, "").json()["blocks"][0]["namespace"], "shop");
    assert_eq!(sites.shop_reason(), r#""blocked""#);
    let own = sites.blocks(&sites.rui, "");
    assert_eq!((own.len(), own[0].0.as_str()), (1, "shop"));
    assert_refused(&sites.block(&sites.rui, r#","namespace":"blog""#), 403, "namespace-bound-key");
    let others = sites.rui.request(&sites.server, "GET /v1/blocks?namespace=blog");
    assert_refused(&others, 403, "namespace-bound-key");
    let shown = sites.rui.request(&sites.server, &format!("GET /v1/blocks/{blog}"));
    assert_refused(&shown, 404, "unknown-block");
    assert_refused(&sites.delete(&sites.rui, &blog), 404, "unknown-block");
    assert_eq!(sites.delete(&sites.rui, &own[0].1).status, 200);
    assert_eq!(sites.shop_reason(), r#""ok""#);
    let whole = r#"{"policy":"login","confirm":"login","why":"a test"}"#;
    let whole = sites.rui.post(&sites.server, "/v1/reset", whole);
    assert_refused(&whole, 403, "namespace-bound-key");
    let names = sites.rui.request(&sites.server, "GET /v1/namespaces").json();
    assert_eq!(names["namespaces"].to_string(), r#"["shop"]"#);
    let elsewhere = sites.shop.post(&sites.server, "/v1/peek?namespace=blog", PEEK);
    assert_refused(&elsewhere, 403, "namespace-bound-key");
}

/// Regression: an unbound key saw, ended and counted only the locks of `default`.
#[test]
fn locks_are_listed_counted_and_ended_in_their_namespaces() {
    let sites = Sites::start();
    let acquire = r#"{"tenant":"t1","key":"order-7","ttl_ms":60000}"#;
    for key in [&sites.shop, &sites.ana] {
        assert_eq!(key.post(&sites.server, "/v1/locks/acquire", acquire).status, 200);
    }
    let locks = |key: &Key, query: &str| {
        let page = key.request(&sites.server, &format!("GET /v1/locks{query}")).json();
        let next = page["next"].as_str().map(str::to_owned);
        let rows = page["locks"].as_array().unwrap().iter();
        let name = |row: &Value| row["namespace"].as_str().unwrap().to_owned();
        let fence = |row: &Value| row["fence"].as_i64().unwrap();
        (rows.map(|row| (name(row), fence(row))).collect::<Vec<_>>(), next)
    };
    let (all, next) = locks(&sites.ana, "");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, next), (vec!["default", "shop"], None));
    let (first, next) = locks(&sites.ana, "?limit=1");
    let (second, _) = locks(&sites.ana, &format!("?after={}", next.unwrap()));
    assert_eq!([first, second].concat(), all);
    assert_eq!(locks(&sites.rui, "").0, all[1..]);
    assert_eq!(locks(&sites.ana, "?namespace=shop").0, all[1..]);
    let stats = |query: &str| {
        let stats = sites.ana.request(&sites.server, &format!("GET /v1/stats/locks{query}")).json();
        (stats["total"].as_u64().unwrap(), stats["rows"].as_array().unwrap().len())
    };
    assert_eq!(
        (stats(""), stats("?namespace=shop"), stats("?namespace=blog")),
        ((2, 2), (1, 1), (0, 0))
    );

    let delete = |path: &str| {
        let mut connection = sites.server.connect();
        let bearer = format!("Bearer {}", sites.ana.key);
        let headers = [JSON, ("Authorization", bearer.as_str())];
        connection.send(&format!("DELETE /v1/locks{path}"), &headers, br#"{"reason":"a test"}"#);
        connection.read_response()
    };
    let fence = all[1].1;
    for act in [format!("/{fence}"), "?tenant=t1".to_owned()] {
        assert_refused(&delete(&act), 400, "namespace-required");
    }
    assert_refused(&delete(&format!("/{fence}?namespace=zz")), 400, "unknown-namespace");
    assert_eq!(delete(&format!("/{fence}?namespace=shop")).json()["namespace"], "shop");
    assert_eq!(delete("?tenant=t1&namespace=default").json()["cleared"], 1);
    assert!(locks(&sites.ana, "").0.is_empty());
}

/// Regression: without its key, a namespace was in no list of locks, and its leases could not be
/// ended.
#[test]
fn locks_of_a_namespace_without_keys_are_listed_and_ended() {
    let ana = keygen(&["--role", "admin", "--name", "ana"]);
    let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
    let file = catalog_file(&format!("{POLICY}{}{}", ana.table, shop.table));
    let server = TestServer::from_file(&file);
    let acquire = r#"{"tenant":"t1","key":"order-7","ttl_ms":60000}"#;
    assert_eq!(shop.post(&server, "/v1/locks/acquire", acquire).status, 200);
    let locks = r#"{"action":"test_lock"}"#;
    assert_eq!(ana.post(&server, "/v1/selftest", locks).status, 200);
    std::fs::write(&file, format!("{POLICY}{}", ana.table)).unwrap();
    assert_eq!(ana.post(&server, "/v1/config/reload", "").status, 200);
    assert_eq!(shop.post(&server, "/v1/locks/acquire", acquire).status, 401);
    for query in ["", "?namespace=shop"] {
        let page = ana.request(&server, &format!("GET /v1/locks{query}")).json();
        let [lease] = &page["locks"].as_array().unwrap()[..] else { panic!("{page}") };
        assert_eq!(lease["namespace"], "shop", "{page}");
        let stats = ana.request(&server, &format!("GET /v1/stats/locks{query}")).json();
        assert_eq!(stats["total"], 1, "{stats}");
    }
    let clear = "DELETE /v1/locks?tenant=t1";
    assert_refused(&ana.request(&server, clear), 400, "namespace-required");
    let cleared = ana.request(&server, &format!("{clear}&namespace=shop")).json();
    assert_eq!(cleared["cleared"], 1, "{cleared}");
}

/// Without keys for namespaces, nothing changes: there is only `default`.
#[test]
fn with_one_namespace_nobody_names_it() {
    let ana = keygen(&["--role", "admin", "--name", "ana"]);
    let server = TestServer::with_catalog(&format!("{POLICY}{}", ana.table));
    let order = r#"{"policy":"login","subject":{"ip":"198.51.100.7"},"for":"1h"}"#;
    assert_eq!(ana.post(&server, "/v1/blocks", order).status, 200);
    assert_eq!(ana.post(&server, "/v1/peek", PEEK).json()["reason"], "blocked");
}

/// Regression: an unbound key was shown the full buckets and the free calendar of `default`, which
/// said nothing about a caller of another namespace.
#[test]
fn states_of_an_unstated_namespace_are_refused() {
    let mut keys = vec![keygen(&["--role", "check", "--namespace", "shop"])];
    keys.push(keygen(&["--role", "check"]));
    let readers = ["read", "support", "admin"];
    keys.extend(readers.map(|role| keygen(&["--role", role, "--name", role])));
    let tables: String = keys.iter().map(|key| key.table.as_str()).collect();
    let bucket = "[policy.spend]\nby = ['ip']\nbucket = { size = 10, refill = '1 per 1h' }\n";
    let server = TestServer::with_catalog(&format!("{bucket}{tables}"));
    let subject = r#"{"subject":{"ip":"198.51.100.7"}}"#;
    let check = r#"{"gate":"spend","subject":{"ip":"198.51.100.7"}}"#;
    assert_eq!(keys[0].post(&server, "/v1/check", check).status, 200);
    let level = |key: &Key, path: &str| {
        let answer = key.post(&server, path, subject);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()["available"].clone()
    };
    for reader in &keys[2..] {
        for path in ["/v1/buckets", "/v1/buckets/spend"] {
            assert_refused(&reader.post(&server, path, subject), 400, "namespace-required");
        }
        assert_eq!(level(reader, "/v1/buckets/spend?namespace=shop"), 9);
        assert_eq!(level(reader, "/v1/buckets/spend?namespace=default"), 10);
        let all = reader.post(&server, "/v1/buckets?namespace=shop", subject).json();
        assert_eq!(all["buckets"][0]["available"], 9, "{all}");
    }
    // A service sees what it is checked by.
    assert_eq!(level(&keys[0], "/v1/buckets/spend"), 9);
    assert_eq!(level(&keys[1], "/v1/buckets/spend"), 10);
    let other = keys[1].post(&server, "/v1/buckets/spend?namespace=shop", subject);
    assert_refused(&other, 403, "namespace-bound-key");

    let range = "calendar=room&from=2026-01-31T12:00:00Z&to=2026-01-31T18:00:00Z";
    let hold =
        r#"{"calendars":["room"],"start":"2026-01-31T12:00:00Z","end":"2026-01-31T13:00:00Z"}"#;
    assert_eq!(keys[0].post(&server, "/v1/slots/hold", hold).status, 200);
    let admin = &keys[4];
    let unstated = admin.request(&server, &format!("GET /v1/slots?{range}"));
    assert_refused(&unstated, 400, "namespace-required");
    let available = |key: &Key, namespace: &str| {
        key.request(&server, &format!("GET /v1/slots?{range}{namespace}")).json()["available"]
            .clone()
    };
    assert_eq!(available(admin, "&namespace=shop"), false);
    assert_eq!(available(admin, "&namespace=default"), true);
    assert_eq!((available(&keys[0], ""), available(&keys[1], "")), (false.into(), true.into()));
}
