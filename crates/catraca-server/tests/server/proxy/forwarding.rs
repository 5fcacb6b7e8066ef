//! What an upstream gets of a request, and what the client gets of the response.

use std::sync::mpsc;

use super::helpers::{ProxyServer, TestUpstream, catalog, response};
use crate::http::authorize_parts::{SECRET, bearer, claims};
use crate::raw_connection::RawConnection;
use crate::test_server::{TestServer, catalog_file};

const LIMIT: &str = "window = '3 per 1m'";

#[test]
fn a_request_and_its_response_pass_with_their_bodies() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        let body = String::from_utf8(call.read_body()).unwrap();
        let names = ["host", "x-own", "content-length", "x-request-id"];
        let headers = names.map(|name| call.header(name).unwrap_or_default());
        seen.send((call.line().to_owned(), headers, body)).unwrap();
        call.send(&response("201 Created", "x-answer: 1\r\nx-answer: 2\r\n", "made"));
        true
    });
    let server = ProxyServer::start(&catalog(LIMIT, &upstream));
    let mut client = server.connect();
    let headers = [("X-Own", "a"), ("X-Request-Id", "id-1")];
    client.send("POST /orders?x=%2F", &headers, b"order");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.body.as_str()), (201, "made"));
    let lines: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "x-answer").collect();
    assert_eq!(lines.len(), 2, "{answer:?}");
    assert_eq!(answer.header("ratelimit"), Some("\"site\";r=2;t=60"), "{answer:?}");
    assert_eq!(answer.header("x-request-id"), Some("id-1"));
    let (line, headers, body) = calls.recv().unwrap();
    assert_eq!(line, "POST /orders?x=%2F HTTP/1.1");
    assert_eq!(headers, ["localhost", "a", "5", "id-1"].map(str::to_owned));
    assert_eq!(body, "order");
}

#[test]
fn connections_are_kept_on_both_sides() {
    let upstream = TestUpstream::constant("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let server = ProxyServer::start(&catalog("window = '99 per 1m'", &upstream));
    let mut client = server.connect();
    for _ in 0..5 {
        client.send("GET /", &[], b"");
        assert_eq!(client.read_response().body, "ok");
    }
    let mut other = server.connect();
    other.send("GET /", &[], b"");
    assert_eq!(other.read_response().body, "ok");
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn an_answer_without_a_body_keeps_its_length() {
    let upstream = TestUpstream::start(|call| {
        let status = if call.line().starts_with("HEAD") { "200 OK" } else { "304 Not Modified" };
        call.send(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\netag: \"a\"\r\n\r\n"));
        true
    });
    let server = ProxyServer::start(&catalog("window = '99 per 1m'", &upstream));
    let mut client = server.connect();
    for (request, status, length) in
        [("HEAD /", "200 OK", "content-length: 5\r\n"), ("GET /", "304 Not Modified", "")]
    {
        client.send_bytes(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        let head = client.read_head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
        assert!(head.contains(length) && head.contains("etag: \"a\"\r\n"), "{head}");
    }
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_denied_request_does_not_reach_the_upstream() {
    let upstream = TestUpstream::constant("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let message = "window = '1 per 1m'\nmessage = 'slow down'";
    let denial = "[server]\ndenial = 'message'\nx_ratelimit = true\n";
    let server = ProxyServer::start(&format!("{}{denial}", catalog(message, &upstream)));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let allowed = client.read_response();
    assert_eq!((allowed.status, allowed.header("x-ratelimit-remaining")), (200, Some("0")));
    client.send("POST /", &[], b"unread");
    let denied = client.read_response();
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!(denied.status == 429 && (1..=60).contains(&wait), "{denied:?}");
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    assert_eq!(denied.json()["errorMessage"], "slow down");
    assert_eq!(denied.header("catraca-ticket"), None);
    let mut authorize = RawConnection::open(&server.http);
    authorize.send("GET /v1/gates/site/authorize", &[], b"");
    let mut body = authorize.read_response().json();
    body["retryAfter"] = wait.into();
    assert_eq!(body, denied.json());
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn headers_of_the_sender_are_written_afresh() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        let names =
            ["x-forwarded-for", "forwarded", "x-forwarded-proto", "x-forwarded-host", "x-secret"];
        seen.send(names.map(|name| call.header(name).unwrap_or_default())).unwrap();
        call.send(&response("200 OK", "connection: x-hop\r\nx-hop: 1\r\nkeep-alive: a\r\n", ""));
        true
    });
    let network = "[network]\ntrusted_proxies = ['127.0.0.2']\n";
    let text = format!("{}{network}", catalog("window = '99 per 1m'", &upstream));
    let server = ProxyServer::start(&text);
    let forged = [
        ("X-Forwarded-For", "1.1.1.1"),
        ("Forwarded", "for=1.1.1.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "a.example"),
        ("Connection", "x-secret, x-forwarded-for"),
        ("X-Secret", "1"),
    ];
    let mut client = server.connect();
    client.send("GET /", &forged, b"");
    let answer = client.read_response();
    assert_eq!((answer.header("x-hop"), answer.header("keep-alive")), (None, None));
    let own = ["127.0.0.1", "for=127.0.0.1;host=\"localhost\";proto=http", "http", "localhost", ""];
    assert_eq!(calls.recv().unwrap(), own.map(str::to_owned));
    let mut proxy = RawConnection::open_from("127.0.0.2", &server.address);
    proxy.send("GET /", &forged[..4], b"");
    proxy.read_response();
    let believed = [
        "1.1.1.1, 127.0.0.2",
        "for=1.1.1.1;host=\"a.example\";proto=https, for=127.0.0.2",
        "https",
        "a.example",
        "",
    ];
    assert_eq!(calls.recv().unwrap(), believed.map(str::to_owned));
}

#[test]
fn the_upstream_gets_the_path_that_was_matched() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send(call.line().to_owned()).unwrap();
        call.send(&response("200 OK", "", ""));
        true
    });
    let url = &upstream.url;
    let text = format!(
        "[policy.login]\nby = ['ip']\nwindow = '99 per 1m'\n\
         [[route]]\nmatch = '/api/login'\ngate = 'login'\nupstream = '{url}'\n\
         [[route]]\nmatch = '/unused'\ngate = 'login'\n"
    );
    let server = ProxyServer::start(&text);
    let mut client = server.connect();
    for spelling in ["/api/login?a", "/api//./login?a", "/%61pi/login;x=1?a"] {
        client.send(&format!("GET {spelling}"), &[], b"");
        assert_eq!(client.read_response().status, 200);
        assert_eq!(calls.recv().unwrap(), "GET /api/login?a HTTP/1.1");
    }
    client.send("GET /api/x/../login", &[], b"");
    assert_eq!(client.read_response().problem_code(), "ambiguous-path");
    for unknown in ["GET /api", "GET /unused", "OPTIONS *"] {
        client.send(unknown, &[], b"");
        let answer = client.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (404, "no-upstream"));
    }
    assert!(calls.try_recv().is_err());
}

#[test]
fn the_server_program_serves_the_proxy_of_its_catalog() {
    let upstream = TestUpstream::constant("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let text = format!("{}[proxy]\nlisten = '127.0.0.1:0'\n", catalog(LIMIT, &upstream));
    let server = TestServer::with_catalog(&text);
    let line = server.greeting.lines().find(|line| line.starts_with("It proxies")).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let mut client = RawConnection::open(address);
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().body, "ok");
}

#[test]
fn a_field_of_the_body_is_counted_and_the_body_passes_whole() {
    let upstream = TestUpstream::start(|call| {
        let body = String::from_utf8(call.read_body()).unwrap();
        call.send(&response("200 OK", "", &body));
        true
    });
    let url = &upstream.url;
    let server = ProxyServer::start(&format!(
        "[policy.user]\nby = ['user']\nwindow = '1 per 1m'\n\
         [[route]]\nmatch = 'POST /login'\ngate = 'user'\nupstream = '{url}'\n\
         set = {{ user = 'body:user.name' }}\n"
    ));
    let mut client = server.connect();
    let login = |name: &str| format!(r#"{{"user":{{"name":"{name}"}}}}"#);
    for (name, status) in [("ana", 200), ("ana", 429), ("bea", 200)] {
        client.post("/login", &login(name));
        let answer = client.read_response();
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 200 {
            assert_eq!(answer.body, login(name));
        }
    }
    let chunked = "POST /login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send_bytes(format!("{chunked}10\r\n{{\"user\":{{\"name\":\r\n").as_bytes());
    client.send_bytes(b"7\r\n\"eve\"}}\r\n0\r\n\r\n");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.body.as_str()), (200, login("eve").as_str()));
    for (body, status, code) in [
        ("no json".to_owned(), 400, "request-body-invalid"),
        (login(&"a".repeat(70_000)), 413, "request-body-too-large"),
    ] {
        let mut client = server.connect();
        client.post("/login", &body);
        let answer = client.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (status, code));
    }
}

#[test]
fn a_claim_of_a_token_and_a_cookie_are_counted() {
    let (seen, calls) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send(call.line().to_owned()).unwrap();
        call.send(&response("200 OK", "", ""));
        true
    });
    let url = &upstream.url;
    let policy = |name: &str, source: &str| {
        format!(
            "[policy.{name}]\nby = ['{name}']\nwindow = '1 per 1h'\n\
             [[route]]\nmatch = '/{name}'\ngate = '{name}'\nupstream = '{url}'\n\
             set = {{ {name} = '{source}' }}\n"
        )
    };
    let jwt = "[jwt]\nsecret_file = 'jwt.secret'\naudience = 'api'\n";
    let text = jwt.to_owned() + &policy("user", "jwt:sub") + &policy("session", "cookie:sid");
    let file = catalog_file(&text);
    std::fs::write(file.with_file_name("jwt.secret"), format!("{SECRET}\n")).unwrap();
    let server = ProxyServer::start_file(&file);
    let mut client = server.connect();
    let mut status = |request: &str, header: (&str, &str)| {
        client.send(request, &[header], b"");
        client.read_response().status
    };
    let [ana, bob] = ["ana", "bob"].map(|user| bearer(SECRET, &claims(user, "api")));
    for (token, expected) in [(&ana, 200), (&ana, 429), (&bob, 200)] {
        assert_eq!(status("GET /user", ("Authorization", token)), expected);
    }
    for (cookies, expected) in [("a=1; sid=x", 200), ("sid=x", 429), ("sid=y", 200)] {
        assert_eq!(status("GET /session", ("Cookie", cookies)), expected, "{cookies}");
    }
    for (claims, code) in [
        (r#"{"sub":"eve","aud":"api","exp":1}"#, "jwt-expired"),
        (&*claims("eve", "other"), "jwt-audience"),
    ] {
        let mut client = server.connect();
        client.send("GET /user", &[("Authorization", &bearer(SECRET, claims))], b"");
        let answer = client.read_response();
        assert_eq!((answer.status, answer.problem_code().as_str()), (401, code));
    }
    assert_eq!(calls.try_iter().count(), 4, "what is refused does not reach the upstream");
}
