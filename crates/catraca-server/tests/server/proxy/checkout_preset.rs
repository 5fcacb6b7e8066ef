//! The preset `checkout` behind the proxy, without any code of the application.

use super::helpers::{ProxyServer, TestUpstream};
use crate::raw_connection::HttpResponse;

const CHECKOUT: &str = include_str!("../../../../../presets/checkout/catalog.toml");
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn start() -> (ProxyServer, TestUpstream) {
    let upstream = TestUpstream::constant(OK);
    let server = ProxyServer::start(&CHECKOUT.replace("http://127.0.0.1:9000", &upstream.url));
    (server, upstream)
}

fn send(server: &ProxyServer, line: &str, ip: &str) -> HttpResponse {
    let mut client = server.connect();
    client.send(line, &[("X-Forwarded-For", ip)], b"");
    client.read_response()
}

/// covers: 003-12, 003-41, 003-44
#[test]
fn every_function_of_a_checkout_has_the_limit_of_its_action() {
    let (server, _upstream) = start();
    let policies: Vec<&str> = CHECKOUT
        .lines()
        .filter_map(|line| line.strip_prefix("[policy."))
        .map(|line| line.split(']').next().unwrap())
        .filter(|policy| *policy != "default")
        .collect();
    assert_eq!(policies.len(), 20);
    for policy in policies {
        let function = policy.replace('_', "-");
        let passed = send(&server, &format!("POST /functions/v1/{function}"), "198.51.100.7");
        assert_eq!(passed.status, 200, "{policy}: {passed:?}");
        let quota = passed.header("ratelimit-policy").unwrap_or_default().to_owned();
        assert!(quota.starts_with(&format!("\"{policy}\"")), "{policy}: {quota}");
    }
    let login = "POST /functions/v1/buyer-auth-login";
    for _ in 2..=10 {
        assert_eq!(send(&server, login, "198.51.100.7").status, 200);
    }
    let denied = send(&server, login, "198.51.100.7");
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("1800")));
    assert_eq!(denied.body, r#"{"error":"Rate limit exceeded","retryAfter":1800}"#);
    let other = "POST /functions/v1/buyer-auth-login/again";
    assert_eq!(send(&server, other, "198.51.100.7").status, 429, "a longer path");
    assert_eq!(send(&server, "POST /functions/v1/create-order", "198.51.100.7").status, 200);
    assert_eq!(send(&server, login, "198.51.100.8").status, 200);
}

#[test]
fn a_preflight_takes_no_attempt_and_unknown_functions_have_the_default() {
    let (server, _upstream) = start();
    for _ in 0..6 {
        let preflight = send(&server, "OPTIONS /functions/v1/gdpr-forget", "198.51.100.7");
        assert_eq!(preflight.status, 200, "{preflight:?}");
    }
    let forget = send(&server, "POST /functions/v1/gdpr-forget", "198.51.100.7");
    assert_eq!(forget.status, 200, "{forget:?}");
    for line in ["POST /functions/v1/export-report", "GET /health"] {
        let passed = send(&server, line, "198.51.100.7");
        let quota = passed.header("ratelimit-policy").unwrap_or_default();
        assert!(quota.starts_with("\"default\""), "{line}: {passed:?}");
    }
}
