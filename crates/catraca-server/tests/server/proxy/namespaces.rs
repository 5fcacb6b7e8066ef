//! The namespace of proxied requests: their checks, their settles, and the blocks of operators.

use catraca::{Check, CheckMode};

use super::helpers::{ProxyServer, TestUpstream, catalog, response, wait_until};
use crate::raw_connection::RawConnection;

const POLICY: &str =
    "window = '9 per 1h'\nban = [{ when = 'status == 401', for = '1h', status = 403 }]";

fn server(upstream: &TestUpstream) -> ProxyServer {
    ProxyServer::start(&(catalog(POLICY, upstream) + "[proxy]\nnamespace = 'shop-a'\n"))
}

/// Whether the client of these tests may pass in a namespace, and how many units it has left.
fn state(server: &ProxyServer, namespace: &str) -> (bool, Option<i64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut check = Check::new("site", [("ip", "127.0.0.1")]);
    check.namespace = namespace;
    let decision = runtime.block_on(server.context.decide(&check, CheckMode::Peek)).unwrap();
    (decision.allowed, decision.remaining)
}

fn status(server: &ProxyServer, request: &str) -> u16 {
    let mut client = server.connect();
    client.send(request, &[], b"");
    client.read_response().status
}

#[test]
fn a_ban_by_an_answer_is_one_of_the_namespace_of_the_proxy() {
    let upstream = TestUpstream::start(|call| {
        let status = if call.line().contains("/wrong") { "401 No" } else { "200 OK" };
        call.send(&response(status, "", ""));
        true
    });
    let server = server(&upstream);
    assert_eq!(status(&server, "GET /"), 200);
    assert_eq!(state(&server, "shop-a"), (true, Some(8)));
    assert_eq!(status(&server, "GET /wrong"), 403);
    wait_until("the ban is in force", || !state(&server, "shop-a").0);
    assert_eq!(status(&server, "GET /"), 403);
    for other in ["default", "shop-b"] {
        assert_eq!(state(&server, other), (true, Some(9)), "{other}");
    }
    assert_eq!(server.context.proxy_metrics.settle_failures(), 0);
}

#[test]
fn an_operator_names_the_namespace_of_the_proxy() {
    let upstream = TestUpstream::start(|call| {
        call.send(&response("200 OK", "", ""));
        true
    });
    let server = server(&upstream);
    let block = |namespace: &str| {
        let mut client = RawConnection::open(&server.http);
        let subject = r#""subject":{"ip":"127.0.0.1"}"#;
        let body = format!(r#"{{"policy":"site",{subject},"for":"1h"{namespace}}}"#);
        client.post("/v1/blocks", &body);
        client.read_response()
    };
    let mut client = RawConnection::open(&server.http);
    client.send("GET /v1/namespaces", &[], b"");
    let listed = client.read_response().json();
    assert_eq!(listed["namespaces"], serde_json::json!(["default", "shop-a"]));
    // An act in a namespace that the operator did not mean would change nothing for the client.
    assert_eq!(block("").problem_code(), "namespace-required");
    assert_eq!(status(&server, "GET /"), 200);
    let blocked = block(r#","namespace":"shop-a""#);
    assert_eq!(blocked.status, 200, "{blocked:?}");
    assert_eq!(status(&server, "GET /"), 429);
}
