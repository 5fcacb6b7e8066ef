//! Forward auth: the status, headers and body that a proxy passes on to its client.

use crate::test_server::TestServer;

const SHOP: &str = r#"
[network]
trusted_proxies = ["127.0.0.0/8"]

[policy.ip]
by     = ["ip"]
window = "2 per 1m"

[policy.tenant]
by     = ["tenant"]
fixed  = "2 per 1h"

[policy.must]
by         = ["customer"]
window     = "1 per 1m"
on_missing = "deny"

[policy.pay]
each = ["ip"]
ban  = [ { when = "status == 402", for = "10m", reason = "r", status = 418, message = "Tea?" } ]

[[route]]
match = "POST /api/orders/*"
gate  = "tenant"
set   = { tenant = "header:x-tenant", other = "query:q" }

[[route]]
match = "/api/**"
gate  = "ip"

[[blocklist]]
range  = "203.0.113.0/24"
reason = "abuse"
"#;

const SITE: &str = r#"
[policy.site]
by     = ["ip"]
bucket = { size = 100, refill = "1 per 1s" }
"#;

fn forwarded_for(address: &str) -> (&str, &str) {
    ("X-Forwarded-For", address)
}

#[test]
fn a_trusted_proxy_names_the_caller_and_a_forged_hop_changes_nothing() {
    let server = TestServer::with_catalog(SHOP);
    let ask =
        |hops: &str| server.request("GET /v1/gates/ip/authorize", &[forwarded_for(hops)]).status;
    assert_eq!([ask("198.51.100.7"), ask("192.0.2.66, 198.51.100.7")], [200, 200]);
    assert_eq!(ask("192.0.2.67, 198.51.100.7"), 429);
    assert_eq!(ask("198.51.100.8"), 200);
}

/// covers: 003-40
#[test]
fn a_stranger_may_forward_nothing() {
    let server = TestServer::with_catalog(&SHOP.replace("127.0.0.0/8", "10.0.0.0/8"));
    let ask =
        |hops: &str| server.request("GET /v1/gates/ip/authorize", &[forwarded_for(hops)]).status;
    assert_eq!([ask("198.51.100.7"), ask("198.51.100.8"), ask("198.51.100.9")], [200, 200, 429]);
    let described = [("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/api/x")];
    let answer = server.request("GET /v1/authorize", &described);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "no-gate"));
    assert!(answer.body.contains("trusted_proxies"), "{}", answer.body);
}

#[test]
fn the_caller_is_read_from_the_one_header_that_is_named() {
    let other = format!("{SHOP}\n[server]\nclient_address = \"X-Real-Ip\"\n");
    let server = TestServer::with_catalog(&other);
    let ask =
        |name: &str, ip: &str| server.request("GET /v1/gates/ip/authorize", &[(name, ip)]).status;
    assert_eq!([ask("X-Forwarded-For", "198.51.100.7"), ask("X-Forwarded-For", "::1")], [200, 200]);
    assert_eq!(ask("X-Forwarded-For", "198.51.100.8"), 429);
    assert_eq!(ask("X-Real-IP", "198.51.100.9"), 200);
    let peer = TestServer::with_catalog(&format!("{SHOP}\n[server]\nclient_address = \"peer\"\n"));
    let ask = |ip: &str| peer.request("GET /v1/gates/ip/authorize", &[forwarded_for(ip)]).status;
    assert_eq!([ask("198.51.100.1"), ask("198.51.100.2"), ask("198.51.100.3")], [200, 200, 429]);
}

#[test]
fn the_route_of_the_described_request_decides() {
    let server = TestServer::with_catalog(SHOP);
    let ask = |method: &str, target: &str, tenant: &str| {
        let described =
            [("X-Forwarded-Method", method), ("X-Forwarded-Uri", target), ("X-Tenant", tenant)];
        server.request("GET /v1/authorize", &described)
    };
    for status in [200, 200, 429] {
        let answer = ask("POST", "/api/orders/7?q=1", "t1");
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.header("ratelimit").unwrap().starts_with("\"tenant\""));
    }
    assert_eq!(ask("POST", "/api//orders/./9", "t2").status, 200);
    let other = ask("GET", "/api/orders/7", "t1");
    assert!(other.header("ratelimit").unwrap().starts_with("\"ip\""), "{other:?}");
    let nowhere = ask("GET", "/shop", "t1");
    assert_eq!((nowhere.status, nowhere.problem_code().as_str()), (404, "unknown-route"));
    assert!(nowhere.body.contains("GET /shop"), "{}", nowhere.body);
}

#[test]
fn the_headers_of_other_proxies_are_understood_too() {
    let server = TestServer::with_catalog(SHOP);
    let nginx = [("X-Original-Method", "POST"), ("X-Original-URI", "/api/orders/1")];
    let answer = server.request("GET /v1/authorize", &[&nginx[..], &[("X-Tenant", "n")]].concat());
    assert!(answer.header("ratelimit").unwrap().starts_with("\"tenant\""), "{answer:?}");
    let whole = [("X-Original-Method", "GET"), ("X-Original-URL", "https://a.example/api/x?y")];
    let answer = server.request("GET /v1/authorize", &whole);
    assert!(answer.header("ratelimit").unwrap().starts_with("\"ip\""), "{answer:?}");
    // Without X-Forwarded-Method the method of the call itself is used.
    let answer = server.request("POST /v1/authorize", &[("X-Forwarded-Uri", "/api/orders/1")]);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "missing-attribute"));
}

#[test]
fn a_description_that_is_there_twice_is_not_believed() {
    let server = TestServer::with_catalog(SHOP);
    let twice = [("X-Forwarded-Uri", "/api/x"), ("X-Forwarded-Uri", "/free")];
    let answer = server.request("GET /v1/authorize", &twice);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "ambiguous-request"));
    assert!(answer.body.contains("x-forwarded-uri"), "{}", answer.body);
}

/// Regression: the first of two equal headers was used, while the upstream may read the second.
#[test]
fn what_decides_and_is_there_twice_is_refused_by_its_name() {
    let server = TestServer::with_catalog(SHOP);
    let refused = |request: &str, headers: &[(&str, &str)], name: &str| {
        let answer = server.request(request, headers);
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "ambiguous-request"));
        assert!(answer.body.contains(&format!("`{name}`")), "{}", answer.body);
    };
    let order = |query: &'static str| [("X-Forwarded-Method", "POST"), ("X-Forwarded-Uri", query)];
    let with = |query, more: &[(&'static str, &'static str)]| [&order(query)[..], more].concat();
    let tenants = with("/api/orders/7", &[("X-Tenant", "a"), ("x-tenant", "b")]);
    refused("GET /v1/authorize", &tenants, "x-tenant");
    let twice = with("/api/orders/7?q=1&r=2&q=1", &[("X-Tenant", "a")]);
    refused("GET /v1/authorize", &twice, "q");
    // Headers that no route reads may be repeated.
    let others = [("X-Tenant", "a"), ("Accept", "text/html"), ("Accept", "text/plain")];
    let fine = with("/api/orders/7?q=1&r=2&r=3", &others);
    assert_eq!(server.request("GET /v1/authorize", &fine).status, 200);
}

/// Regression: a client behind a proxy that sends one of the two headers could add the other one
/// and choose the route.
#[test]
fn descriptions_that_do_not_agree_are_refused() {
    let server = TestServer::with_catalog(SHOP);
    let ask = |target: &str, method: &str| {
        let nginx = [("X-Original-URI", "/api/x?y=1"), ("X-Original-Method", "GET")];
        let caller = [("X-Forwarded-Uri", target), ("X-Forwarded-Method", method)];
        server.request("GET /v1/authorize", &[nginx, caller].concat())
    };
    assert_eq!(ask("https://a.example/api/x?y=1", "GET").status, 200);
    for (target, method, names) in [
        ("/free", "GET", ["x-forwarded-uri", "x-original-uri"]),
        ("/api/x?y=1", "POST", ["x-forwarded-method", "x-original-method"]),
    ] {
        let answer = ask(target, method);
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "ambiguous-request"));
        assert!(names.iter().all(|name| answer.body.contains(name)), "{}", answer.body);
    }
}

/// Caddy keeps the client's query in the call, so a client could add `?gate=` to it.
#[test]
fn the_query_of_a_call_never_chooses_a_gate() {
    let server = TestServer::with_catalog(&format!("default = \"site\"\n{SHOP}{SITE}"));
    let order = [
        ("X-Forwarded-Method", "POST"),
        ("X-Forwarded-Uri", "/api/orders/7?gate=ip"),
        ("X-Tenant", "t1"),
    ];
    let queries =
        ["gate=ip", "gate=site", "GATE=ip", "g%61te=ip", "gate=ip&gate=ip", "a=1;gate=ip"];
    for query in queries {
        let answer = server.request(&format!("GET /v1/authorize?{query}"), &order);
        let limit = answer.header("ratelimit").unwrap();
        assert!(limit.starts_with("\"tenant\""), "{query}: {answer:?}");
        let named =
            server.request(&format!("GET /v1/gates/ip/authorize?{query}"), &[forwarded_for("::7")]);
        assert!(named.header("ratelimit").unwrap().starts_with("\"ip\""), "{query}: {named:?}");
    }
    let answer = server.request("GET /v1/authorize?gate=ip", &[]);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "no-gate"));
}

/// Envoy's ext_authz appends the client's path and query to its prefix.
#[test]
fn an_appended_path_is_the_clients_path_and_never_a_gate() {
    let server = TestServer::with_catalog(&format!("default = \"site\"\n{SHOP}{SITE}"));
    let policy = |request: &str| {
        let answer = server.request(request, &[("X-Tenant", "t1"), forwarded_for("198.51.100.7")]);
        let limit = answer.header("ratelimit").unwrap_or_default().to_owned();
        limit.split(';').next().unwrap_or_default().trim_matches('"').to_owned()
    };
    assert_eq!(policy("POST /v1/authorize/api/orders/7?q=1"), "tenant");
    assert_eq!(policy("POST /v1/authorize/api/./orders//7"), "tenant");
    assert_eq!(policy("GET /v1/authorize/api/x"), "ip");
    assert_eq!(policy("GET /v1/authorize/"), "site");
    // None of these names a gate: they are paths that no route matches.
    assert_eq!(policy("GET /v1/authorize/v1/gates/ip/authorize"), "site");
    // Nor do these: they have no canonical form, and are refused.
    assert_eq!(policy("GET /v1/authorize/../gates/ip/authorize"), "");
    assert_eq!(policy("GET /v1/gates/tenant/authorize/../../ip/authorize"), "");
    let forged = [("X-Forwarded-Uri", "/free"), ("X-Tenant", "t1")];
    let answer = server.request("POST /v1/authorize/api/orders/7", &forged);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "ambiguous-request"));
    let stranger = TestServer::with_catalog(&SHOP.replace("127.0.0.0/8", "10.0.0.0/8"));
    let answer = stranger.request("GET /v1/authorize/api/x", &[]);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "no-gate"));
}

#[test]
fn a_named_gate_takes_attributes_from_its_own_routes_alone() {
    let server = TestServer::with_catalog(SHOP);
    let order = [("X-Forwarded-Method", "POST"), ("X-Forwarded-Uri", "/api/orders/7")];
    let with = |tenant| [&order[..], &[("X-Tenant", tenant)]].concat();
    assert_eq!(server.request("GET /v1/gates/tenant/authorize", &with("t1")).status, 200);
    // `/api/x` matches a route of another gate, so nothing defines its tenant.
    let other = [("X-Forwarded-Uri", "/api/x"), ("X-Tenant", "t1")];
    let answer = server.request("GET /v1/gates/tenant/authorize", &other);
    assert_eq!((answer.status, answer.problem_code().as_str()), (400, "missing-attribute"));
    let answer = server.request("GET /v1/gates/ip/authorize", &with("t1"));
    assert!(answer.header("ratelimit").unwrap().starts_with("\"ip\""), "{answer:?}");
}

#[test]
fn another_spelling_of_a_guarded_path_meets_the_same_gate_or_is_refused() {
    let server = TestServer::with_catalog(&format!("default = \"site\"\n{SHOP}{SITE}"));
    let ask = |target: &str| {
        let described = [("X-Forwarded-Method", "POST"), ("X-Forwarded-Uri", target)];
        server.request("GET /v1/authorize", &[&described[..], &[("X-Tenant", "t9")]].concat())
    };
    for target in ["/api/orders/7;x=1", "/api;x/orders;y=2/7", "/api/%6frders/7"] {
        let answer = ask(target);
        assert!(answer.header("ratelimit").unwrap().starts_with("\"tenant\""), "{answer:?}");
    }
    for target in ["/api/orders/7%2f", "/x/..%2fapi/orders/7", "/\\api/orders/7", "/api/orders/%00"]
    {
        let answer = ask(target);
        assert_eq!(
            (answer.status, answer.problem_code().as_str()),
            (400, "ambiguous-path"),
            "{target}"
        );
    }
    let upper = ask("/API/ORDERS/7");
    assert!(upper.header("ratelimit").unwrap().starts_with("\"site\""), "{upper:?}");
    let network = "[network]\npath_case = \"insensitive\"";
    let server = TestServer::with_catalog(&SHOP.replace("[network]", network));
    let described = [("X-Forwarded-Uri", "/API/ORDERS/7"), ("X-Tenant", "t9")];
    let answer = server.request("POST /v1/authorize", &described);
    assert!(answer.header("ratelimit").unwrap().starts_with("\"tenant\""), "{answer:?}");
}

/// Regression: unmatched requests were counted under a gate name that no operation could reach.
#[test]
fn operators_reach_requests_that_no_route_matches_by_the_default_policys_name() {
    let server = TestServer::with_catalog(&format!("default = \"site\"\n{SHOP}{SITE}"));
    let unmatched = [("X-Forwarded-Uri", "/shop"), forwarded_for("198.51.100.7")];
    assert_eq!(server.request("GET /v1/authorize", &unmatched).status, 200);
    let (_, peek) = server.json("/v1/peek", r#"{"gate":"site","subject":{"ip":"198.51.100.7"}}"#);
    assert_eq!(peek["remaining"], 99, "{peek}");
    let block = r#"{"policy":"site","subject":{"ip":"198.51.100.7"},"for":"1h","reason":"r"}"#;
    let (status, blocked) = server.json("/v1/blocks", block);
    assert_eq!(status, 200, "{blocked}");
    assert_eq!(server.request("GET /v1/authorize", &unmatched).status, 429);
}

/// A gateway hands the denial on with its headers.
#[test]
fn a_denial_names_the_page_that_may_read_it() {
    let setting = "[server]\ncors_origins = ['https://shop.example']\nx_ratelimit = true\n";
    let server = TestServer::with_catalog(&format!("{SHOP}{setting}"));
    let ask = |ip: &'static str, origin: &'static str| {
        let headers = [forwarded_for(ip), ("Origin", origin)];
        server.request("GET /v1/gates/ip/authorize", &headers)
    };
    let denied = ask("203.0.113.9", "https://shop.example");
    assert_eq!(denied.status, 403, "{denied:?}");
    assert_eq!(denied.header("access-control-allow-origin"), Some("https://shop.example"));
    let exposed = denied.header("access-control-expose-headers").unwrap();
    assert!(exposed.starts_with("Retry-After, RateLimit") && exposed.contains("X-RateLimit-Reset"));
    let other = ask("203.0.113.9", "https://evil.example");
    assert_eq!(other.header("access-control-allow-origin"), None, "{other:?}");
    assert_eq!((other.status, other.header("vary")), (403, Some("Origin")), "{other:?}");
    let allowed = ask("198.51.100.7", "https://shop.example");
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, None));
}

#[test]
fn a_route_may_skip_the_lists() {
    let routes = "[[route]]\nmatch = '/limits-only'\ngate = 'ip'\nlists = false\n\
                  [[route]]\nmatch = '/**'\ngate = 'ip'\n";
    let server = TestServer::with_catalog(&format!("{SHOP}{routes}"));
    let ask = |path: &'static str| {
        let described = [("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", path)];
        let from = forwarded_for("203.0.113.9");
        server.request("GET /v1/authorize", &[from, described[0], described[1]]).status
    };
    assert_eq!((ask("/limits-only"), ask("/other")), (200, 403));
}

#[test]
fn every_denial_has_its_status() {
    let server = TestServer::with_catalog(SHOP);
    let ask = |gate: &str, ip: &str| {
        server.request(&format!("GET /v1/gates/{gate}/authorize"), &[forwarded_for(ip)])
    };
    let listed = ask("ip", "203.0.113.9");
    assert_eq!((listed.status, listed.json()["reason"].as_str()), (403, Some("blocklisted")));
    let missing = ask("must", "198.51.100.7");
    assert_eq!((missing.status, missing.json()["reason"].as_str()), (400, Some("missing")));
    assert_eq!(missing.header("retry-after"), None);
    let check = r#"{"gate":"pay","subject":{"ip":"198.51.100.7"}}"#;
    let (_, decision) = server.json("/v1/check", check);
    let settle = serde_json::json!({"ticket": decision["ticket"], "outcome": {"status": 402}});
    server.json("/v1/settle", &settle.to_string());
    let banned = ask("pay", "198.51.100.7");
    assert_eq!((banned.status, banned.json()["detail"].as_str()), (418, Some("Tea?")));
    assert!(banned.header("retry-after").is_some());
    let unknown = ask("missing", "198.51.100.7");
    assert_eq!((unknown.status, unknown.problem_code().as_str()), (404, "unknown-gate"));
    for denial in [&listed, &missing, &banned] {
        assert_eq!(denial.header("content-type"), Some("application/problem+json"));
        assert_eq!(denial.header("cache-control"), Some("no-store"));
        assert_eq!(denial.json()["status"], denial.status);
    }
}

#[test]
fn whoever_stands_behind_the_proxy_can_settle_what_it_let_pass() {
    let server = TestServer::with_catalog(SHOP);
    let ask = |gate: &str| {
        server.request(&format!("GET /v1/gates/{gate}/authorize"), &[forwarded_for("198.51.100.7")])
    };
    assert_eq!(ask("ip").header("catraca-ticket"), None, "no outcome changes a plain window");
    let passed = ask("pay");
    let ticket = passed.header("catraca-ticket").unwrap();
    let settle = serde_json::json!({"ticket": ticket, "outcome": {"status": 402}});
    let (status, settled) = server.json("/v1/settle", &settle.to_string());
    assert_eq!((status, settled["state"].as_str()), (200, Some("settled")), "{settled}");
    let banned = ask("pay");
    assert_eq!((banned.status, banned.header("catraca-ticket")), (418, None));
}

#[test]
fn any_method_asks_and_a_body_does_not_matter() {
    let server = TestServer::with_catalog(&SHOP.replace("2 per 1m", "100 per 1m"));
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] {
        let answer = server.request(&format!("{method} /v1/gates/ip/authorize"), &[]);
        assert_eq!(answer.status, 200, "{method}");
    }
    let mut connection = server.connect();
    connection.send("POST /v1/gates/ip/authorize", &[("Content-Type", "text/plain")], b"hello");
    assert_eq!(connection.read_response().status, 200);
    connection.send("GET /v1/gates/ip/authorize", &[], b"");
    assert_eq!(connection.read_response().status, 200);
}
