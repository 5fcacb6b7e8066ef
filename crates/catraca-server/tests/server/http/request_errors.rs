//! Invalid requests get problem+json that says what is wrong, where, and how to fix it.

use serde_json::json;

use crate::raw_connection::JSON;
use crate::test_server::TestServer;

#[test]
fn bad_input_is_named() {
    let server = TestServer::demo();
    let user = r#""subject":{"ip":"198.51.100.7"}"#;
    let with = |rest: &str| format!("{{\"gate\":\"demo\",{user},{rest}}}");
    for (path, body, status, code) in [
        ("/v1/check", r#"{"gate":"demo","subject":{"ip":"x"}}"#.to_owned(), 400, "bad-attribute"),
        ("/v1/check", r#"{"gate":"demo","subject":{}}"#.to_owned(), 400, "missing-attribute"),
        ("/v1/check", r#"{"gate":"missing","subject":{}}"#.to_owned(), 404, "unknown-gate"),
        ("/v1/check", with("\"cost\":-1"), 400, "bad-cost"),
        ("/v1/check", with("\"cost\":1.5"), 400, "bad-field"),
        ("/v1/check", with("\"cost\":\"1\""), 400, "bad-field"),
        ("/v1/check", with("\"ref\":\"\""), 400, "bad-name"),
        ("/v1/check", with("\"limit\":5"), 400, "bad-field"),
        ("/v1/check", r#"{"gate":"demo","subject":{"ip":null}}"#.to_owned(), 400, "bad-field"),
        ("/v1/check", r#"{"subject":{}}"#.to_owned(), 400, "bad-field"),
        ("/v1/peek", "\"demo\"".to_owned(), 400, "bad-field"),
        ("/v1/check", String::new(), 400, "bad-json"),
        ("/v1/check", "{".to_owned(), 400, "bad-json"),
        ("/v1/check", with("\"cost\":1") + " x", 400, "bad-json"),
        ("/v1/settle", r#"{"ticket":"x","outcome":{}}"#.to_owned(), 400, "bad-ticket"),
        ("/v1/settle", r#"{"outcome":{}}"#.to_owned(), 400, "bad-settle"),
        ("/v1/settle", r#"{"ticket":"x","ref":"y","outcome":{}}"#.to_owned(), 400, "bad-settle"),
        ("/v1/settle", r#"{"ref":"y","outcome":{}}"#.to_owned(), 404, "unknown-reference"),
        ("/v1/credit", r#"{"ref":"y","event":"e"}"#.to_owned(), 400, "bad-field"),
        ("/v1/buckets", "{}".to_owned(), 400, "bad-field"),
        ("/v1/settle", r#"{"ticket":"x","outcome":{"body_text":{}}}"#.to_owned(), 400, "bad-field"),
    ] {
        let answer = server.post(path, &body);
        assert_eq!(
            (answer.status, answer.problem_code().as_str()),
            (status, code),
            "{path} {body}"
        );
    }
}

#[test]
fn a_field_that_nobody_knows_is_named_with_its_place() {
    let server = TestServer::demo();
    let answer = server.post("/v1/check", "{\n  \"gate\": \"demo\",\n  \"subjct\": {}\n}");
    assert_eq!(answer.problem_code(), "bad-field");
    let problem = answer.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("unknown field `subjct`") && detail.contains("`subject`"), "{detail}");
    assert_eq!((&problem["line"], &problem["column"]), (&3.into(), &10.into()));
    let broken = server.post("/v1/check", "{\n  \"gate\": demo }").json();
    assert_eq!((&broken["code"], &broken["line"]), (&"bad-json".into(), &2.into()));
    assert_eq!(broken["column"], 11);
}

/// covers: 003-05
#[test]
fn limits_in_a_check_are_refused_and_charge_nothing() {
    let server = TestServer::demo();
    let user = r#""gate":"demo","subject":{"ip":"198.51.100.7"}"#;
    let peek = || server.post("/v1/peek", &format!("{{{user}}}"));
    let before = peek().json()["remaining"].clone();
    assert!(before.is_i64(), "{before}");
    for (name, value) in [
        ("limit", "5"),
        ("window", r#""9 per 1s""#),
        ("bucket", r#"{"size":9,"refill":"1 per 1s"}"#),
        ("block", r#""1m""#),
    ] {
        for path in ["/v1/check", "/v1/peek"] {
            let answer = server.post(path, &format!("{{{user},\"{name}\":{value}}}"));
            assert_eq!((answer.status, answer.problem_code().as_str()), (400, "bad-field"));
            let problem = answer.json();
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("unknown field `{name}`")), "{detail}");
        }
    }
    assert_eq!(peek().json()["remaining"], before);
}

#[test]
fn a_key_that_is_given_twice_is_refused_wherever_it_stands() {
    // In an outcome's `body`, which the upstream writes, it is an outcome that rules see.
    let server = TestServer::demo();
    for (path, body, name) in [
        ("/v1/check", r#"{"gate":"demo","gate":"login","subject":{}}"#, "`gate`"),
        ("/v1/check", r#"{"gate":"demo","subject":{"ip":"::1","ip":"::2"}}"#, "`ip`"),
        ("/v1/settle", r#"{"ticket":"x","outcome":{"status":1,"status":2}}"#, "`status`"),
        ("/v1/settle", r#"{"ticket":"x","outcome":{"headers":{"A":"1","a":"2"}}}"#, "`a`"),
    ] {
        let answer = server.post(path, body);
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "bad-field"), "{body}");
        let problem = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
        assert_eq!(problem["line"], 1);
    }
}

#[test]
fn a_status_that_no_answer_can_have_is_refused_and_settles_nothing() {
    let server = TestServer::demo();
    let body = r#"{"gate":"search","subject":{"user":"a"}}"#;
    let (_, decision) = server.json("/v1/check", body);
    let settle = |status: i64| {
        let outcome = json!({ "status": status });
        json!({ "ticket": decision["ticket"], "outcome": outcome }).to_string()
    };
    for (status, code) in [
        (0, "bad-status"),
        (99, "bad-status"),
        (600, "bad-status"),
        (1_000, "bad-status"),
        (-1, "bad-field"),
        (65_536, "bad-field"),
    ] {
        let answer = server.post("/v1/settle", &settle(status));
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, code), "{status}");
    }
    let (_, settled) = server.json("/v1/settle", &settle(599));
    assert_eq!(settled["state"], "settled");
}

#[test]
fn whole_numbers_are_taken_as_their_digits_and_a_subject_is_bounded() {
    let server = TestServer::demo();
    let (_, decision) = server.json("/v1/check", r#"{"gate":"search","subject":{"user":7}}"#);
    assert_eq!(decision["allowed"], true);
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("a{n}"), json!("x"))).collect();
    let answer = server.post("/v1/check", &json!({"gate": "search", "subject": many}).to_string());
    assert_eq!(answer.problem_code(), "bad-field");
    assert!(answer.body.contains("64"), "{}", answer.body);
}

#[test]
fn an_unknown_path_is_404_and_says_what_there_is() {
    let server = TestServer::demo();
    for request in ["GET /v1", "POST /v1/nothing", "GET /v1/check/", "DELETE /v2/check"] {
        let answer = server.request(request, &[]);
        assert_eq!(
            (answer.status, answer.problem_code().as_str()),
            (404, "unknown-call"),
            "{request}"
        );
        assert!(answer.body.contains("see /docs or /openapi.json"), "{}", answer.body);
    }
}

#[test]
fn a_wrong_method_is_405_with_what_is_allowed_and_options_asks_for_that() {
    let server = TestServer::demo();
    for path in ["/v1/check", "/v1/peek", "/v1/settle", "/v1/credit", "/v1/buckets/demo"] {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = server.request(&format!("{method} {path}"), &[]);
            assert_eq!(
                (answer.status, answer.problem_code().as_str()),
                (405, "method-not-allowed")
            );
            assert_eq!(answer.header("allow"), Some("POST"), "{path}");
        }
        let options = server.request(&format!("OPTIONS {path}"), &[]);
        assert_eq!((options.status, options.header("allow")), (204, Some("POST")));
    }
    let answer = server.request("POST /healthz", &[]);
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD")));
}

#[test]
fn a_body_must_say_that_it_is_json() {
    let server = TestServer::demo();
    let body = br#"{"gate":"demo","subject":{"ip":"198.51.100.7"}}"#;
    let post = |headers: &[(&str, &str)]| {
        let mut connection = server.connect();
        connection.send("POST /v1/check", headers, body);
        connection.read_response()
    };
    assert_eq!(post(&[("Content-Type", "application/json; charset=utf-8")]).status, 200);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = post(&[("Content-Type", kind)]);
        assert_eq!((answer.status, answer.problem_code().as_str()), (415, "not-json"), "{kind}");
    }
    assert_eq!(post(&[]).status, 415);
    for codings in [&["gzip"][..], &["identity", "gzip"]] {
        let codings = codings.iter().map(|coding| ("Content-Encoding", *coding));
        let zipped = post(&[JSON].into_iter().chain(codings).collect::<Vec<_>>());
        assert_eq!((zipped.status, zipped.problem_code().as_str()), (415, "encoded-body"));
    }
    let repeated = post(&[JSON, ("Content-Type", "text/plain")]);
    assert_eq!((repeated.status, repeated.problem_code().as_str()), (400, "repeated-header"));
}

/// Regression: `%zz` was taken as these three characters.
#[test]
fn a_broken_escape_is_refused() {
    let server = TestServer::demo();
    for request in ["GET /v1/facts/user/%zz", "GET /v1/facts/user/a%2", "GET /v1/facts/user/%ff"] {
        let answer = server.request(request, &[]);
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "bad-path"), "{request}");
    }
    for request in ["GET /v1/audit?by=%zz", "GET /v1/audit?by=%ff"] {
        let answer = server.request(request, &[]);
        assert_eq!(
            (answer.status, answer.problem_code().as_str()),
            (400, "bad-query"),
            "{answer:?}"
        );
    }
}

/// Regression: calls without query parameters ignored them, so `?dry_run=true` blocked a caller.
#[test]
fn a_query_that_the_call_does_not_take_is_refused() {
    let server = TestServer::demo();
    for path in ["/v1/blocks?dry_run=true", "/v1/reset?dry_run=true", "/v1/check?gate=demo"] {
        let answer = server.post(path, "{}");
        assert_eq!((answer.status, answer.problem_code().as_str()), (400, "bad-query"), "{path}");
    }
    assert_eq!(server.request("GET /healthz?probe=1", &[]).status, 200);
    assert_ne!(server.request("GET /v1/gates/demo/authorize?x=1", &[]).status, 400);
}

/// Regression: the error of a tunnel did not name what was asked for.
#[test]
fn a_tunnel_is_refused_by_name() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    let authority = &server.address;
    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    connection.send_bytes(head.as_bytes());
    let answer = connection.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (404, "unknown-call"));
    assert!(answer.body.contains(&format!("CONNECT {authority}: this server opens no tunnels")));
}

/// Regression: CONNECT was an authorize call, whose success makes the connection a tunnel.
#[test]
fn connect_is_no_authorize_call() {
    let server = TestServer::demo();
    for path in ["/v1/gates/demo/authorize", "/v1/authorize", "/v1/check"] {
        let mut connection = server.connect();
        connection.send(&format!("CONNECT {path}"), &[], b"");
        let status = connection.read_response().status;
        assert!((400..500).contains(&status) && status != 429, "{path}: {status}");
    }
    let mut connection = server.connect();
    connection.send("CONNECT /v1/gates/demo/authorize", &[], b"");
    let answer = connection.read_response();
    if answer.status == 405 {
        assert!(answer.header("allow").is_some_and(|allow| allow.starts_with("GET,HEAD,POST")));
    }
}
