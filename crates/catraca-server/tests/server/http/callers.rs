//! The header `Catraca-Caller`: which program uses which gate.

use std::time::Duration;

use catraca::{Check, Client};
use serde_json::{Value, json};

use crate::keys::{Key, keygen};
use crate::raw_connection::JSON;
use crate::test_server::TestServer;

const CATALOG: &str = "[policy.login]\nby = ['ip']\nwindow = '2 per 1h'\n\
    [policy.search]\nby = ['ip']\nwindow = '100 per 1h'\n";
const LOGIN: &str = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;

fn send(server: &TestServer, call: &str, headers: &[(&str, &str)], body: &str) -> Value {
    let mut connection = server.connect();
    let mut headers = headers.to_vec();
    if !body.is_empty() {
        headers.push(JSON);
    }
    connection.send(call, &headers, body.as_bytes());
    let answer = connection.read_response();
    assert_eq!(answer.status, 200, "{call} {body}: {}", answer.body);
    answer.json()
}

fn row(caller: &str, gate: &str, namespace: &str, checks: u64, denied: u64) -> Value {
    json!({
        "caller": caller, "gate": gate, "namespace": namespace, "checks": checks, "denied": denied,
    })
}

#[test]
fn checks_are_counted_by_program_and_gate() {
    let server = TestServer::with_catalog(CATALOG);
    let shop = [("Catraca-Caller", "shop/1.4")];
    for _ in 0..3 {
        send(&server, "POST /v1/check", &shop, LOGIN);
    }
    let search = LOGIN.replace("login", "search");
    let unknown = LOGIN.replace("login", "nowhere");
    let list = format!("[{search},{unknown},{LOGIN}]");
    send(&server, "POST /v1/check/batch", &shop, &list);
    send(&server, "POST /v1/check", &[("Catraca-Caller", "my shop")], &search);
    // Neither a peek, nor a check without a name, nor a call of a proxy is counted.
    send(&server, "POST /v1/peek", &shop, LOGIN);
    send(&server, "POST /v1/check", &[], &search);
    assert_eq!(server.request("GET /v1/gates/search/authorize", &shop).status, 200);

    let expected = json!([
        row("(invalid)", "search", "default", 1, 0),
        row("shop/1.4", "login", "default", 4, 2),
        row("shop/1.4", "search", "default", 1, 0),
    ]);
    assert_eq!(send(&server, "GET /v1/stats/callers", &[], "")["callers"], expected);
    assert_eq!(send(&server, "GET /v1/stats", &[], "")["callers"], expected);
    let metrics = server.request("GET /metrics", &[]).body;
    assert!(!metrics.contains("shop/1.4"), "{metrics}");
}

/// Checks that go alone and checks that go in a batch have the name of their program.
#[tokio::test]
async fn the_client_of_the_library_names_its_program() {
    let server = TestServer::with_catalog(CATALOG);
    let client = Client::builder(&format!("http://{}", server.address))
        .caller("shop/1.4")
        .connections(1)
        .deadline(Duration::from_secs(20))
        .build()
        .unwrap();
    let search = Check::new("search", [("ip", "198.51.100.7")]);
    let check = || client.check(&search);
    let (first, second, third) = tokio::join!(check(), check(), check());
    assert!([first, second, third].into_iter().all(|decision| decision.unwrap().allowed));

    let expected = json!([row("shop/1.4", "search", "default", 3, 0)]);
    assert_eq!(send(&server, "GET /v1/stats/callers", &[], "")["callers"], expected);
}

#[test]
fn an_operator_of_a_namespace_sees_only_its_programs() {
    let ana = keygen(&["--role", "admin", "--name", "ana"]);
    let own = keygen(&["--role", "admin", "--namespace", "shop", "--name", "rui"]);
    let shop = keygen(&["--role", "check", "--namespace", "shop"]);
    let bank = keygen(&["--role", "check", "--namespace", "bank"]);
    let tables: String = [&ana, &own, &shop, &bank].map(|key| key.table.as_str()).concat();
    let server = TestServer::with_catalog(&format!("{CATALOG}{tables}"));
    let bearer = |key: &Key| format!("Bearer {}", key.key);
    for (key, caller) in [(&shop, "web"), (&bank, "vault")] {
        let key = bearer(key);
        let headers = [("Catraca-Caller", caller), ("Authorization", key.as_str())];
        send(&server, "POST /v1/check", &headers, LOGIN);
    }
    let seen = |key: &Key| {
        let key = bearer(key);
        let headers = [("Authorization", key.as_str())];
        send(&server, "GET /v1/stats/callers", &headers, "")["callers"].clone()
    };
    let web = row("web", "login", "shop", 1, 0);
    assert_eq!(seen(&own), json!([web]));
    assert_eq!(seen(&ana), json!([row("vault", "login", "bank", 1, 0), web]));
}
