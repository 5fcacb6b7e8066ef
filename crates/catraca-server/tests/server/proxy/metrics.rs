//! What the metrics and `/readyz` say about the proxy, and the request id of every response.

use super::helpers::{ProxyServer, TestUpstream, catalog, response};
use crate::raw_connection::RawConnection;

#[test]
fn responses_and_failures_are_counted() {
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/half") {
            call.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
        }
        if call.line().contains("/ok") {
            call.send(&response("200 OK", "", "ok"));
        }
        call.line().contains("/ok")
    });
    let server = ProxyServer::start(&catalog("window = '3 per 1m'", &upstream));
    for path in ["/ok", "/broken", "/half", "/denied"] {
        let mut client = server.connect();
        client.send(&format!("GET {path}"), &[], b"");
        let _ = client.try_read_response();
    }
    let mut client = server.connect();
    client.send_bytes(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    client.read_response();
    for (series, count) in [
        ("catraca_proxy_responses_total{from=\"upstream\",class=\"2xx\"}", 2),
        ("catraca_proxy_responses_total{from=\"problem\",class=\"5xx\"}", 1),
        ("catraca_proxy_responses_total{from=\"problem\",class=\"4xx\"}", 1),
        ("catraca_proxy_responses_total{from=\"denial\",class=\"4xx\"}", 1),
        ("catraca_proxy_upstream_failures_total{cause=\"broken\"}", 1),
        ("catraca_proxy_upstream_failures_total{cause=\"broken_off\"}", 1),
        ("catraca_proxy_upstream_failures_total{cause=\"timeout\"}", 0),
        ("catraca_proxy_settle_failures_total", 0),
    ] {
        assert_eq!(server.metric(series), count, "{series}");
    }
}

#[test]
fn an_upstream_that_cannot_be_used_is_a_problem_of_readiness() {
    let url = "https://localhost:1";
    let text = format!(
        "[policy.site]\nby = ['ip']\nwindow = '9 per 1m'\n[[route]]\nmatch = '/**'\n\
         gate = 'site'\nupstream = '{url}'\n[proxy]\nca_file = 'missing.pem'\n"
    );
    let server = ProxyServer::start(&text);
    let mut http = RawConnection::open(&server.http);
    http.send("GET /readyz", &[], b"");
    let ready = http.read_response().json();
    assert_eq!(ready["problems"][0]["what"], "upstream", "{ready}");
    assert!(ready["problems"][0]["why"].as_str().unwrap().contains(url), "{ready}");
    assert_eq!(server.metric("catraca_proxy_upstreams_unusable"), 1);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().problem_code(), "upstream-unreachable");
}

#[test]
fn every_response_has_a_request_id() {
    let upstream = TestUpstream::start(|call| {
        if call.line().contains("/ok") {
            call.send(&response("200 OK", "", "ok"));
        }
        false
    });
    let server = ProxyServer::start(&catalog("window = '2 per 1m'", &upstream));
    for (request, status) in
        [("GET /ok", 200), ("GET /broken", 502), ("GET /denied", 429), ("GET /a/../b", 400)]
    {
        for sent in [None, Some("id-7")] {
            let mut client = server.connect();
            let headers: Vec<_> = sent.map(|id| ("X-Request-Id", id)).into_iter().collect();
            client.send(request, &headers, b"");
            let answer = client.read_response();
            // The limit is reached by the requests before.
            assert!(answer.status == status || answer.status == 429, "{answer:?}");
            let id = answer.header("x-request-id").unwrap_or_default();
            assert!(sent.map_or(id.len() == 32, |sent| sent == id), "{answer:?}");
        }
    }
}

#[test]
fn problems_are_xml_where_denials_are() {
    let upstream = TestUpstream::start(|_| false);
    let denial = "[server]\ndenial = 'problem_xml'\n";
    let text = format!("{}{denial}", catalog("window = '9 per 1m'", &upstream));
    let server = ProxyServer::start(&text);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!(answer.status, 502, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+xml"));
    assert!(answer.body.contains("<status>502</status>"), "{}", answer.body);
}
