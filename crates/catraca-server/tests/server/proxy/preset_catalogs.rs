//! The presets `booking` and `window-block` behind the proxy, without any code of the application.

use super::helpers::{ProxyServer, TestUpstream};
use crate::raw_connection::HttpResponse;

const BOOKING: &str = include_str!("../../../../../presets/booking/catalog.toml");
const WINDOW_BLOCK: &str = include_str!("../../../../../presets/window-block/catalog.toml");
/// The windows of the public pages.
const PAGES: &str = "\"${RATE_LIMIT_PUBLIC_REQUESTS:60} per ${RATE_LIMIT_PUBLIC_WINDOW:60000}ms\", \
    \"10 per 1s\"";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn send(server: &ProxyServer, line: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut client = server.connect();
    client.send(line, headers, b"");
    client.read_response()
}

/// The calls of the source's manual have a tenant and no slug.
///
/// covers: 004-57, 004-58, 004-59, 004-68
#[test]
fn the_calls_of_a_booking_sites_manual_pass_unchanged() {
    let upstream = TestUpstream::constant(OK);
    let catalog = BOOKING
        .replace("http://127.0.0.1:9000", &upstream.url)
        // A window that a slow machine does not leave, with as many pages as in a second.
        .replace(PAGES, "\"10 per 24h\"");
    assert!(catalog.contains("10 per 24h"), "the preset has another window");
    let server = ProxyServer::start(&catalog);
    let tenant = [("X-Tenant-Id", "tenant_1")];
    let first = send(&server, "GET /api/services", &tenant);
    assert_eq!(first.status, 200, "{first:?}");
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert!(first.header(name).is_some_and(|value| value.parse::<u64>().is_ok()), "{first:?}");
    }
    let appointment = send(&server, "POST /api/appointments", &tenant);
    assert_eq!(appointment.status, 200, "{appointment:?}");
    // Ten pages, of which one was asked for before.
    let statuses = (0..30).map(|_| send(&server, "GET /api/services", &tenant).status);
    assert_eq!(statuses.filter(|status| *status == 200).count(), 9);
    let denied = send(&server, "GET /api/employees", &tenant);
    assert_eq!(denied.status, 429, "{denied:?}");
    assert!(denied.body.contains(r#""conflict":true"#), "{denied:?}");
    let slug = [("X-Tenant-Id", "tenant_1"), ("X-Shop-Slug", "cuts")];
    assert_eq!(send(&server, "GET /api/services", &slug).status, 200, "a slug counts apart");
    assert_eq!(send(&server, "GET /api/services", &[]).status, 400, "no tenant");
}

/// A browser writes its own tenant, and another one in every request.
///
/// covers: B-59
#[test]
fn sixty_logins_with_sixty_tenants_are_those_of_one_address() {
    let upstream = TestUpstream::constant(OK);
    let catalog = BOOKING
        .replace("http://127.0.0.1:9000", &upstream.url)
        // A window that a slow machine does not leave.
        .replace("\"20 per 1m\", \"10 per 1s\"", "\"20 per 24h\"")
        .replace("\"40 per 1m\", \"20 per 1s\"", "\"40 per 24h\"");
    let server = ProxyServer::start(&catalog);
    let passed = |line: &str, address: &str| {
        let tenants = (0..60).map(|number| format!("tenant_{number}"));
        let statuses = tenants.map(|tenant| {
            let headers = [("X-Tenant-Id", &*tenant), ("X-Forwarded-For", address)];
            send(&server, line, &headers).status
        });
        statuses.filter(|status| *status == 200).count()
    };
    assert_eq!(passed("POST /api/auth/login", "198.51.100.66"), 20);
    assert_eq!(passed("POST /api/payments/7", "198.51.100.67"), 40);
    let headers = [("X-Tenant-Id", "tenant_1"), ("X-Forwarded-For", "198.51.100.7")];
    let other = send(&server, "POST /api/auth/login", &headers);
    assert_eq!(other.status, 200, "another address: {other:?}");
}

/// covers: 002-10, 002-31, 002-32, B-42
#[test]
fn a_token_in_a_header_has_its_own_limit_and_an_invented_one_has_none() {
    let upstream = TestUpstream::constant(OK);
    let catalog = WINDOW_BLOCK
        .replace("http://127.0.0.1:9000", &upstream.url)
        // A window that a slow machine does not leave.
        .replace("${RATE_LIMIT_WINDOW_SECONDS:1}", "60");
    let server = ProxyServer::start(&catalog);
    let mut last = send(&server, "GET /", &[]);
    for _ in 0..10 {
        last = send(&server, "GET /", &[("API_KEY", "invented")]);
    }
    assert_eq!(last.status, 429, "an unknown token counts for the address");
    assert_eq!(last.header("retry-after"), Some("300"));
    for name in ["API_KEY", "X-API-Key"] {
        assert_eq!(send(&server, "GET /", &[(name, "abc123")]).status, 200, "{name}");
    }
    let hash = WINDOW_BLOCK.split("[facts.token.\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(send(&server, "GET /", &[("API_KEY", hash)]).status, 429, "a hash is no token");
}

/// covers: B-77
#[test]
fn a_denial_of_a_booking_site_has_the_message_of_its_policy() {
    let upstream = TestUpstream::constant(OK);
    let catalog = BOOKING
        .replace("http://127.0.0.1:9000", &upstream.url)
        // A window that a slow machine does not leave.
        .replace("\"10 per 1m\", \"5 per 1s\"", "\"1 per 24h\"");
    let server = ProxyServer::start(&catalog);
    let login = || send(&server, "POST /api/auth/login", &[("X-Tenant-Id", "tenant_1")]);
    assert_eq!(login().status, 200);
    let denied = login();
    assert_eq!(denied.status, 429, "{denied:?}");
    let body = denied.json();
    let text = body["error"].as_str().unwrap();
    assert!(text.starts_with("Houve tentativas demais de entrar. Aguarde "), "{text}");
    assert_eq!((&body["conflict"], body["retryAfter"].is_u64()), (&true.into(), true), "{body}");
}

#[test]
fn a_denial_of_an_address_is_in_the_language_of_the_preset() {
    let upstream = TestUpstream::constant(OK);
    let catalog = WINDOW_BLOCK
        .replace("http://127.0.0.1:9000", &upstream.url)
        .replace("${RATE_LIMIT_IP:10} per ${RATE_LIMIT_WINDOW_SECONDS:1}s", "1 per 1m");
    let server = ProxyServer::start(&catalog);
    assert_eq!(send(&server, "GET /", &[]).status, 200);
    let denied = send(&server, "GET /", &[]);
    let expected = "Este endereço fez requisições demais. Tente de novo em 5 minutos.";
    assert_eq!(denied.json()["detail"], expected, "{denied:?}");
}
