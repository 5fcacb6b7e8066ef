//! The preset `checkout` behind the proxy, without any code of the application.

use super::helpers::{ProxyServer, TestUpstream};
use crate::raw_connection::{HttpResponse, JSON, RawConnection};

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

fn send_from_page(server: &ProxyServer, line: &str, ip: &str, origin: &str) -> HttpResponse {
    let mut client = server.connect();
    client.send(line, &[("X-Forwarded-For", ip), ("Origin", origin)], b"");
    client.read_response()
}

const PAGE: &str = "https://shop.example";
const OWN_CORS: &str = "HTTP/1.1 204 No Content\r\nvary: Origin\r\n\
                        access-control-allow-origin: https://own.example\r\n\
                        access-control-allow-methods: POST\r\n\r\n";

/// covers: 003-37
#[test]
fn a_page_of_the_shop_may_read_a_denial_and_another_page_may_not() {
    let (server, _upstream) = start();
    let reset = "POST /functions/v1/gdpr-forget";
    for _ in 0..5 {
        let passed = send_from_page(&server, reset, "198.51.100.7", PAGE);
        assert_eq!(passed.status, 200, "{passed:?}");
        // The headers of an answer are those of the function.
        assert_eq!(passed.header("access-control-allow-origin"), None, "{passed:?}");
    }
    let denied = send_from_page(&server, reset, "198.51.100.7", PAGE);
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(denied.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(denied.header("vary"), Some("Origin"));
    let exposed = denied.header("access-control-expose-headers").unwrap();
    assert_eq!(exposed, "Retry-After, RateLimit, RateLimit-Policy");
    for origin in ["https://evil.example", "http://shop.example"] {
        let denied = send_from_page(&server, reset, "198.51.100.7", origin);
        assert_eq!((denied.status, denied.header("vary")), (429, Some("Origin")));
        assert_eq!(denied.header("access-control-allow-origin"), None, "{origin}");
    }
    let gone = send_from_page(&server, "GET /%00", "198.51.100.7", PAGE);
    assert_eq!(gone.status, 400, "{gone:?}");
    assert_eq!(gone.header("access-control-allow-origin"), Some(PAGE), "an error of the proxy");
}

#[test]
fn a_preflight_gets_the_answer_of_the_function_as_it_is() {
    let upstream = TestUpstream::constant(OWN_CORS);
    let server = ProxyServer::start(&CHECKOUT.replace("http://127.0.0.1:9000", &upstream.url));
    let mut client = server.connect();
    let headers = [("Origin", PAGE), ("Access-Control-Request-Method", "POST")];
    client.send("OPTIONS /functions/v1/create-order", &headers, b"");
    let preflight = client.read_response();
    assert_eq!(preflight.status, 204, "{preflight:?}");
    let allowed = preflight.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://own.example"), "{preflight:?}");
    assert_eq!(preflight.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(preflight.header("access-control-expose-headers"), None);
}

/// covers: 003-38
#[test]
fn a_function_with_its_limit_alone_serves_a_listed_address() {
    let upstream = TestUpstream::constant(OK);
    let catalog =
        CHECKOUT.replace("http://127.0.0.1:9000", &upstream.url).replace("60 per 1m", "3 per 1m");
    let server = ProxyServer::start(&catalog);
    let entry = r#"{"range":"203.0.113.66","reason":"carding"}"#;
    let mut operator = RawConnection::open(&server.http);
    operator.send("POST /v1/blocklist", &[JSON], entry.as_bytes());
    assert_eq!(operator.read_response().status, 200);
    let listed = send(&server, "POST /functions/v1/create-order", "203.0.113.66");
    assert_eq!(listed.status, 403, "{listed:?}");
    let stripe = "POST /functions/v1/stripe-create-payment";
    for _ in 0..3 {
        assert_eq!(send(&server, stripe, "203.0.113.66").status, 200);
    }
    let denied = send(&server, stripe, "203.0.113.66");
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("120")), "{denied:?}");
}
