//! Rules that read the body of an answer, and bans that replace it.

use std::sync::Mutex;
use std::sync::mpsc;

use super::helpers::{ProxyServer, TestUpstream, catalog, response, wait_until};

const JSON: &str = "content-type: application/json\r\n";

/// A policy that bans for `when`, with more fields of the ban.
fn banning(when: &str, more: &str) -> String {
    format!("window = '99 per 1m'\nban = [{{ when = '{when}', for = '10m'{more} }}]")
}

/// A server whose upstream answers every request with this text.
fn server(when: &str, more: &str, answer: String) -> ProxyServer {
    let upstream = TestUpstream::start(move |call| {
        call.read_body();
        call.send(&answer);
        true
    });
    ProxyServer::start(&catalog(&banning(when, more), &upstream))
}

fn is_banned(server: &ProxyServer) -> bool {
    !server.peek("site").allowed
}

/// covers: 000-43, 000-44
#[test]
fn a_ban_with_a_status_replaces_the_answer_that_triggers_it() {
    let more = ", status = 400, message = 'Wait {retry_after_s} s.'";
    let rejected = response("200 OK", JSON, r#"{"reject_id":5}"#);
    let upstream = TestUpstream::start(move |call| {
        let is_rejected = call.line().contains("/rejected");
        let plain = response("200 OK", JSON, r#"{"reject_id":0}"#);
        call.send(if is_rejected { &rejected } else { &plain });
        true
    });
    let policy = banning("body.reject_id == 5", more);
    let denial = "[server]\ndenial = 'message'\n";
    let server = ProxyServer::start(&format!("{}{denial}", catalog(&policy, &upstream)));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let plain = client.read_response();
    assert_eq!((plain.status, plain.body.as_str()), (200, r#"{"reject_id":0}"#));
    client.send("GET /rejected", &[], b"");
    let replaced = client.read_response();
    assert_eq!(replaced.status, 400, "{replaced:?}");
    assert_eq!(replaced.json()["errorMessage"], "Wait 600 s.");
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().status, 400);
    assert_eq!(upstream.connections(), 1);
}

/// covers: 000-43, 000-44, B-11
#[test]
fn the_request_that_starts_a_ban_has_a_status_and_a_text_of_its_own() {
    let more = ", answer_status = 400, answer_message = 'Declined.', message = 'Wait.'";
    let rejected = response("200 OK", JSON, r#"{"reject_id":5}"#);
    let upstream = TestUpstream::start(move |call| {
        call.send(&rejected);
        true
    });
    let policy = banning("body.reject_id == 5", more);
    let denial = "[server]\ndenial = 'message'\n";
    let server = ProxyServer::start(&format!("{}{denial}", catalog(&policy, &upstream)));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let replaced = client.read_response();
    assert_eq!((replaced.status, &replaced.json()["errorMessage"]), (400, &"Declined.".into()));
    client.send("GET /", &[], b"");
    let denied = client.read_response();
    assert_eq!((denied.status, &denied.json()["errorMessage"]), (429, &"Wait.".into()));
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_ban_without_a_status_lets_the_answer_pass() {
    let answer = response("200 OK", JSON, r#"{"reject_id":5}"#);
    let server = server("body.reject_id == 5", "", answer);
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().body, r#"{"reject_id":5}"#);
    wait_until("the caller is banned", || is_banned(&server));
    client.send("GET /", &[], b"");
    assert_eq!(client.read_response().status, 429);
}

#[test]
fn a_client_cannot_hide_an_answer_by_its_encoding() {
    let (seen, encodings) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send(call.header("accept-encoding")).unwrap();
        // An upstream that encodes although it was not asked to.
        call.send(&response("200 OK", "content-type: application/json\r\n", "\u{1f}\u{8b}gzip"));
        true
    });
    let policy = banning("body_invalid", "");
    let server = ProxyServer::start(&catalog(&policy, &upstream));
    let mut client = server.connect();
    client.send("GET /", &[("Accept-Encoding", "gzip")], b"");
    client.read_response();
    assert_eq!(encodings.recv().unwrap(), None);
    wait_until("the caller is banned", || is_banned(&server));
}

#[test]
fn a_body_over_the_limit_is_truncated_for_rules_and_passes_whole() {
    let large = format!(r#"{{"text":"{}"}}"#, "a".repeat(70_000));
    let length = large.len();
    for more in ["", ", status = 400"] {
        let server = server("body_truncated", more, response("200 OK", JSON, &large));
        let mut client = server.connect();
        client.send("GET /", &[], b"");
        let answer = client.read_response();
        assert_eq!((answer.status, answer.body.len()), (200, length));
        wait_until("the caller is banned", || is_banned(&server));
    }
}

#[test]
fn a_client_that_hangs_up_does_not_hide_the_body() {
    for more in ["", ", status = 400"] {
        let (began, beginnings) = mpsc::channel();
        let (open, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let upstream = TestUpstream::start(move |call| {
            if call.line().contains("/late") {
                began.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            }
            call.send(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n",
            );
            if !call.line().contains("/late") {
                began.send(()).unwrap();
                wait.lock().unwrap().recv().unwrap();
            }
            call.send(r#"{"reject_id":5}"#);
            false
        });
        let policy = banning("body.reject_id == 5", more);
        for path in ["/late", "/half"] {
            let server = ProxyServer::start(&catalog(&policy, &upstream));
            let mut client = server.connect();
            client.send(&format!("GET {path}"), &[], b"");
            beginnings.recv().unwrap();
            drop(client);
            open.send(()).unwrap();
            wait_until("the caller is banned", || is_banned(&server));
        }
    }
}

#[test]
fn an_answer_that_no_rule_reads_is_not_held_back() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        let kind = if call.line().contains("/events") { "text/event-stream" } else { "a/json" };
        call.send(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n\
             2\r\n{{\n\r\n"
        ));
        wait.lock().unwrap().recv().unwrap();
        call.send("2\r\n}\n\r\n0\r\n\r\n");
        true
    });
    let policy = banning("status == 401", ", status = 400");
    let server = ProxyServer::start(&catalog(&policy, &upstream));
    let mut client = server.connect();
    client.send("GET /events", &[], b"");
    client.read_until("{\n");
    open.send(()).unwrap();
    client.read_until("0\r\n");
}

/// A ban with a status concerns the response itself, but what it reads is in the head.
#[test]
fn a_rule_that_reads_the_head_holds_back_only_what_it_matches() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        let is_bad = call.line().contains("/bad");
        let head = if is_bad { "401 No\r\nx-state: bad" } else { "200 OK\r\nx-state: good" };
        call.send(&format!("HTTP/1.1 {head}\r\n{JSON}transfer-encoding: chunked\r\n\r\n"));
        call.send("2\r\n{\n\r\n");
        if !is_bad {
            wait.lock().unwrap().recv().unwrap();
        }
        call.send("2\r\n}\n\r\n0\r\n\r\n");
        true
    });
    for when in ["status == 401", "headers[\"x-state\"] == \"bad\""] {
        let ban = format!("ban = [{{ when = '{when}', for = '10m', status = 400 }}]");
        let policy = format!("inflight = 2\nhold = '10m'\n{ban}");
        let server = ProxyServer::start(&catalog(&policy, &upstream));
        let mut client = server.connect();
        client.send("GET /good", &[], b"");
        client.read_until("{\n");
        assert_eq!(server.remaining("site"), 1, "{when}: the response is in progress");
        open.send(()).unwrap();
        client.read_until("0\r\n");
        server.wait_for_remaining("site", 2);
        let mut client = server.connect();
        client.send("GET /bad", &[], b"");
        assert_eq!(client.read_response().status, 400, "{when}");
        assert!(is_banned(&server), "{when}");
    }
}

#[test]
fn a_rule_in_shadow_mode_holds_nothing_back() {
    let (open, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = TestUpstream::start(move |call| {
        call.send(&format!("HTTP/1.1 401 No\r\n{JSON}transfer-encoding: chunked\r\n\r\n"));
        call.send("2\r\n{\n\r\n");
        wait.lock().unwrap().recv().unwrap();
        call.send("2\r\n}\n\r\n0\r\n\r\n");
        true
    });
    let policy = banning("status == 401", ", status = 400") + "\nmode = 'shadow'";
    let server = ProxyServer::start(&catalog(&policy, &upstream));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    client.read_until("{\n");
    open.send(()).unwrap();
    client.read_until("0\r\n");
}

#[test]
fn the_answer_may_say_what_the_request_cost() {
    let upstream = TestUpstream::start(|call| {
        let body = r#"{"usage":{"total_tokens":321}}"#;
        call.send(&response(
            "200 OK",
            JSON,
            if call.line().contains("/known") { body } else { "{}" },
        ));
        true
    });
    let policy = "bucket = { size = 10000, refill = '1 per 1h' }\nreserve = 1000\n\
                  cost = { from = 'body.usage.total_tokens' }";
    let server = ProxyServer::start(&catalog(policy, &upstream));
    let mut client = server.connect();
    // An answer that does not say it keeps what was held.
    for (path, left) in [("/known", 9_679), ("/unknown", 8_679)] {
        client.send(&format!("GET {path}"), &[], b"");
        assert_eq!(client.read_response().status, 200);
        server.wait_for_remaining("site", left);
    }
}

#[test]
fn a_held_answer_without_a_body_leaves_the_connection_idle() {
    let upstream = TestUpstream::start(|call| {
        let line = call.line().to_owned();
        call.send(match line.as_str() {
            "GET /204 HTTP/1.1" => "HTTP/1.1 204 No Content\r\n\r\n",
            "GET /304 HTTP/1.1" => "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n",
            "HEAD /head HTTP/1.1" => "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        });
        true
    });
    let policy = banning("body.reject_id == 5", ", status = 400");
    let idle = "[server]\nidle_timeout = '1s'\n";
    let server = ProxyServer::start(&(catalog(&policy, &upstream) + idle));
    for request in ["GET /204", "GET /304", "HEAD /head", "GET /0"] {
        let mut client = server.connect();
        client.send_bytes(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        client.read_head();
        // The timeout of idle connections ends it.
        assert!(client.is_closed(), "{request}");
    }
}

#[test]
fn a_client_cannot_hide_an_answer_by_a_range_or_a_condition() {
    const NAMES: [&str; 5] =
        ["accept-encoding", "range", "if-range", "if-none-match", "if-modified-since"];
    let (seen, heads) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        seen.send(NAMES.map(|name| call.header(name))).unwrap();
        call.send(&response("200 OK", JSON, "{}"));
        true
    });
    let server = ProxyServer::start(&catalog(&banning("body.reject_id == 5", ""), &upstream));
    let mut client = server.connect();
    client.send("GET /", &NAMES.map(|name| (name, "bytes=0-1")), b"");
    assert_eq!(client.read_response().status, 200);
    assert_eq!(heads.recv().unwrap(), NAMES.map(|_| None));
}

#[test]
fn a_held_answer_that_stops_is_a_timeout() {
    let upstream = TestUpstream::start(|call| {
        call.send(&format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 9\r\n\r\n{{"));
        !call.is_closed_by_peer()
    });
    let policy = banning("body.reject_id == 5", ", status = 400");
    let idle = "[proxy]\nidle_timeout = '100ms'\n";
    let server = ProxyServer::start(&(catalog(&policy, &upstream) + idle));
    let mut client = server.connect();
    client.send("GET /", &[], b"");
    let answer = client.read_response();
    assert_eq!((answer.status, answer.problem_code().as_str()), (504, "upstream-timeout"));
}

/// A broken upload ends the connection to the upstream, in the middle of a response that is held
/// back.
#[test]
fn a_client_cannot_hide_a_status_by_breaking_its_own_upload() {
    let (answered, answers) = mpsc::channel();
    let upstream = TestUpstream::start(move |call| {
        call.read_part();
        let head = "content-type: application/json\r\ncontent-length: 20";
        call.send(&format!("HTTP/1.1 401 Unauthorized\r\n{head}\r\n\r\n{{\"x\":"));
        answered.send(()).unwrap();
        call.is_closed_by_peer();
        false
    });
    let policy = "window = '99 per 1m'\n\
                  ban = [{ when = 'status == 401', for = '1h', status = 403 }]";
    let server = ProxyServer::start(&catalog(policy, &upstream));
    let mut client = server.connect();
    client
        .send_bytes(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    answers.recv().unwrap();
    client.send_bytes(b"broken\r\n");
    wait_until("the rule has banned", || !server.peek("site").allowed);
}
