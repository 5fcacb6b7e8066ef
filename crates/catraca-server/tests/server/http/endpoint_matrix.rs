//! Every endpoint of the server's own table, called in every way that must be refused.

use catraca_server::http::endpoint::{ANY_METHOD, Access, Endpoint, HostCheck, ROLES, Reach, Role};
use catraca_server::http::table::endpoints;

use crate::keys::{Key, keygen};
use crate::raw_connection::HttpResponse;
use crate::test_server::{TestServer, catalog_file};

const POLICY: &str = "[policy.login]\nby = ['ip']\nwindow = '5 per 1m'\n";

/// One request for each method of an endpoint.
fn requests(row: &Endpoint) -> Vec<String> {
    let pieces = row.path.split('/').map(|piece| if piece.starts_with('{') { "x" } else { piece });
    let path = pieces.collect::<Vec<_>>().join("/");
    let any = ["GET", "POST", "DELETE", "OPTIONS"];
    let own = [row.method];
    let methods = if row.method == ANY_METHOD { &any[..] } else { &own[..] };
    methods.iter().map(|method| format!("{method} {path}")).collect()
}

fn all_requests() -> impl Iterator<Item = (&'static Endpoint, String)> {
    endpoints().flat_map(|row| requests(row).into_iter().map(move |request| (row, request)))
}

fn assert_problem(answer: &HttpResponse, status: u16, code: &str, request: &str) {
    assert_eq!((answer.status, answer.problem_code().as_str()), (status, code), "{request}");
    let challenged = answer.header("www-authenticate").is_some();
    assert_eq!(challenged, status == 401, "{request}: {answer:?}");
}

/// A key of every role, free and bound to a namespace.
fn keys() -> Vec<(Role, bool, Key)> {
    let key = |(name, role): &(&str, Role), bound: bool| {
        let args = ["--role", name, "--namespace", "shop"];
        (*role, bound, keygen(&args[..if bound { 4 } else { 2 }]))
    };
    let both = |role| [key(role, false), key(role, true)];
    ROLES.iter().flat_map(both).collect()
}

fn start_server(keys: &[(Role, bool, Key)]) -> TestServer {
    let tables: String = keys.iter().map(|(.., key)| key.table.as_str()).collect();
    TestServer::with_catalog(&format!("{POLICY}{tables}"))
}

/// covers: B-59, X-25
#[test]
fn every_call_refuses_everybody_whom_the_table_does_not_name() {
    let keys = keys();
    let server = start_server(&keys);
    let stranger = keygen(&["--role", "admin"]);
    let mut tried = 0;
    for (row, request) in all_requests() {
        let least = match row.rights.access {
            Access::Least(least) => least,
            Access::Metrics => Role::Read,
            Access::Open => {
                let piece = row.path.contains('{');
                assert_eq!(server.request(&request, &[]).status, if piece { 404 } else { 200 });
                continue;
            }
        };
        assert_problem(&server.request(&request, &[]), 401, "no-key", &request);
        assert_problem(&stranger.request(&server, &request), 401, "unknown-key", &request);
        for (role, bound, key) in &keys {
            let answer = key.request(&server, &request);
            if !role.includes(least) {
                assert_problem(&answer, 403, "role-too-low", &request);
            } else if *bound && row.rights.reach == Reach::Catalog {
                assert_problem(&answer, 403, "namespace-bound-key", &request);
            } else {
                assert!(![401, 403].contains(&answer.status), "{request}: {answer:?}");
            }
            tried += 1;
        }
        tried += 2;
    }
    assert!(tried >= 200, "{tried}");
}

#[test]
fn a_path_or_method_without_a_row_is_refused_before_and_after_the_key() {
    let keys = keys();
    let server = start_server(&keys);
    let admin = &keys.iter().rfind(|(_, bound, _)| !bound).unwrap().2;
    for request in ["GET /v1", "GET /v1/check/", "POST /v1//check", "GET /v1/buckets/a/b"] {
        assert_problem(&server.request(request, &[]), 401, "no-key", request);
        assert_problem(&admin.request(&server, request), 404, "unknown-call", request);
    }
    for request in ["GET /v1/check", "PATCH /v1/blocks", "TRACE /v1/config"] {
        assert_problem(&server.request(request, &[]), 401, "no-key", request);
        assert_problem(&admin.request(&server, request), 405, "method-not-allowed", request);
    }
    let options = admin.request(&server, "OPTIONS /v1/blocks");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET,HEAD,POST")));
}

/// Sends a request with these header lines from a source address of the loopback network.
fn send_request(server: &TestServer, source: &str, request: &str, lines: &str) -> HttpResponse {
    let mut connection = server.connect_from(source);
    connection
        .send_bytes(format!("{request} HTTP/1.1\r\n{lines}Content-Length: 0\r\n\r\n").as_bytes());
    connection.read_response()
}

const HERE: &str = "127.0.0.1";

#[test]
fn a_call_of_operators_needs_a_host_of_ours_and_no_foreign_page_with_keys_too() {
    let admin = keygen(&["--role", "admin"]);
    let keyed = TestServer::with_catalog(&format!(
        "{POLICY}[server]\nhosts = ['a.example']\n{}",
        admin.table
    ));
    let key = format!("Authorization: Bearer {}\r\n", admin.key);
    for (row, request) in all_requests() {
        let of_operators = [Role::Support, Role::Admin].map(Access::Least);
        let operators = of_operators.contains(&row.rights.access);
        for (lines, code) in [
            ("Host: evil.example\r\n", Some("host-not-allowed")),
            ("Host: a.example\r\nOrigin: https://evil.example\r\n", Some("origin-not-allowed")),
            ("Host: a.example\r\nOrigin: https://a.example\r\n", None),
        ] {
            let answer = send_request(&keyed, HERE, &request, &format!("{lines}{key}"));
            match code.filter(|_| operators) {
                Some(code) => assert_problem(&answer, 403, code, &request),
                None => assert_ne!(answer.status, 403, "{request} {lines}"),
            }
        }
    }
}

#[test]
fn without_keys_every_call_needs_a_host_of_ours_and_no_foreign_page() {
    let free = TestServer::with_catalog(&format!("{POLICY}[server]\nhosts = ['a.example']\n"));
    let mut requests: Vec<(HostCheck, String)> =
        all_requests().map(|(row, request)| (row.rights.host, request)).collect();
    for other in ["GET /", "PATCH /v1/blocks", "OPTIONS /v1/check", "GET /v1/check"] {
        requests.push((HostCheck::Checked, other.to_owned()));
    }
    for (host, request) in requests {
        for (lines, code) in [
            ("Host: 127.evil.example\r\n", Some("host-not-allowed")),
            ("", Some("host-not-allowed")),
            ("Host: localhost\r\nOrigin: null\r\n", Some("origin-not-allowed")),
            ("Host: a.example\r\nOrigin: https://evil.example\r\n", Some("origin-not-allowed")),
            ("Host: a.example\r\nOrigin: https://a.example\r\n", None),
            ("Host: 127.0.0.1\r\n", None),
        ] {
            if lines.is_empty() && request.starts_with("OPTIONS") {
                continue;
            }
            let answer = send_request(&free, HERE, &request, lines);
            match code.filter(|_| host != HostCheck::Never) {
                Some(code) => assert_problem(&answer, 403, code, &request),
                None => assert_ne!(answer.status, 403, "{request} {lines}"),
            }
        }
    }
}

/// Envoy and Caddy send their client's `Host`, so forward auth accepts any `Host` from a trusted
/// proxy. A browser that was led to this address by a foreign name is refused.
#[test]
fn without_keys_only_authorize_takes_any_host_from_a_trusted_proxy() {
    let proxies = "[network]\ntrusted_proxies = ['127.0.0.2/32']\n";
    let free = TestServer::with_catalog(&format!("{POLICY}{proxies}"));
    let lines = "Host: shop.example\r\nOrigin: https://shop.example\r\n";
    for (row, request) in all_requests() {
        let from_proxy = send_request(&free, "127.0.0.2", &request, lines);
        let from_other = send_request(&free, "127.0.0.3", &request, lines);
        let (by_proxy, by_other) = match row.rights.host {
            HostCheck::Checked => (true, true),
            HostCheck::ExceptProxies => (false, true),
            HostCheck::Never => (false, false),
        };
        for (answer, is_refused) in [(from_proxy, by_proxy), (from_other, by_other)] {
            match is_refused {
                true => assert_problem(&answer, 403, "host-not-allowed", &request),
                false => assert_ne!(answer.status, 403, "{request}"),
            }
        }
    }
    let exempt = |check: HostCheck| {
        let rows = endpoints().filter(|row| row.rights.host == check);
        rows.map(|row| row.path).collect::<Vec<_>>()
    };
    assert_eq!(exempt(HostCheck::Never), ["/healthz", "/readyz"]);
    assert!(exempt(HostCheck::ExceptProxies).iter().all(|path| path.contains("/authorize")));
}

/// Regression: an image of another site could charge a limit, because its request has no `Origin`.
/// Browsers send `Sec-Fetch-Site` with every request to a loopback address.
#[test]
fn without_keys_a_page_of_another_site_can_cause_no_call() {
    let proxies = "[network]\ntrusted_proxies = ['127.0.0.2/32']\n";
    let free = TestServer::with_catalog(&format!("{POLICY}{proxies}"));
    for (row, request) in all_requests() {
        let is_open = row.rights.access == Access::Open;
        for (source, site, is_refused) in [
            (HERE, "cross-site", !is_open),
            (HERE, "same-site", !is_open),
            (HERE, "same-origin", false),
            (HERE, "none", false),
            ("127.0.0.2", "cross-site", !is_open && row.rights.host == HostCheck::Checked),
        ] {
            let lines = format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n");
            let answer = send_request(&free, source, &request, &lines);
            match is_refused {
                true => assert_problem(&answer, 403, "origin-not-allowed", &request),
                false => assert_ne!(answer.status, 403, "{request} {site}"),
            }
        }
    }
}

/// Regression: the host of a target in absolute form was ignored, although it is the one that
/// counts in HTTP.
#[test]
fn a_target_in_absolute_form_must_name_this_server() {
    let free = TestServer::with_catalog(POLICY);
    let lines = "Host: localhost\r\n";
    let own = send_request(&free, HERE, "GET http://localhost/v1/policies", lines);
    assert_eq!(own.status, 200, "{own:?}");
    let foreign = send_request(&free, HERE, "GET http://evil.example/v1/policies", lines);
    assert_problem(&foreign, 403, "host-not-allowed", "GET http://evil.example");
}

#[test]
fn without_keys_readyz_does_not_tell_a_foreign_page_what_a_catalog_says() {
    let file = catalog_file(POLICY);
    let free = TestServer::from_file(&file);
    std::fs::write(&file, "[policy.secret_name]\n").unwrap();
    assert_ne!(free.request("POST /v1/config/reload", &[]).status, 200);
    let own = send_request(&free, HERE, "GET /readyz", "Host: localhost\r\n");
    let foreign = send_request(&free, HERE, "GET /readyz", "Host: evil.example\r\n");
    assert_eq!((own.status, foreign.status), (200, 200));
    assert!(own.body.contains("secret_name"), "{}", own.body);
    assert!(foreign.body.contains("read the log"), "{}", foreign.body);
    assert!(!foreign.body.contains("secret_name"), "{}", foreign.body);
}
