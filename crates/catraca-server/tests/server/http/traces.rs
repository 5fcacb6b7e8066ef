//! Traces as a collector receives them; a failing collector does not affect decisions.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use crate::http::collector::{Collector, span_attribute, spans};
use crate::keys::keygen;
use crate::raw_connection::{JSON, head};
use crate::test_server::TestServer;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const POLICIES: &str = "default = 'other'\n\
    [policy.login]\nby = ['user']\nwindow = '1 per 1h'\n\
    [policy.other]\nby = ['user']\nwindow = '9 per 1h'\n";

fn bytes_of(hex: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap()
}

fn start_server(collector: &str, share: &str, more: &str) -> TestServer {
    TestServer::with_catalog(&format!(
        "{POLICIES}{more}\n[server]\ntraces = '{collector}'\ntrace_share = '{share}'\n"
    ))
}

/// Waits until `is_so` returns true.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "never {what}");
    }
}

fn counter(server: &TestServer, name: &str) -> u64 {
    let text = server.request("GET /metrics", &[]).body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// The calls that a collector receives for these requests: target, body, trace flags and expected
/// status. The requests contain values that no span may contain.
fn exported_calls(
    requests: &[(&str, &str, &str, u16)],
) -> (Vec<ExportTraceServiceRequest>, String) {
    let collector = Collector::start(0);
    let key = keygen(&["--role", "admin"]);
    let server = start_server(&collector.address, "0%", &key.table);
    let bearer = format!("Bearer {}", key.key);
    for (request, body, flags, status) in requests {
        let parent = format!("00-{TRACE}-{PARENT}{flags}");
        let headers = [
            JSON,
            ("Authorization", bearer.as_str()),
            ("traceparent", parent.as_str()),
            ("tracestate", "who=canary-state"),
            ("baggage", "who=canary-baggage"),
            ("User-Agent", "canary-agent"),
        ];
        let mut connection = server.connect();
        connection.send(request, &headers, body.as_bytes());
        assert_eq!(connection.read_response().status, *status, "{request}");
    }
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    // Some of the calls name a gate that the catalog does not declare, which is a warning.
    let mut warnings = log.lines().filter(|line| line.contains("WARN"));
    let is_expected = |line: &str| line.contains("does not declare");
    assert!(status.success() && warnings.all(is_expected), "{log}");
    (collector.all(), key.key)
}

const KNOWN: &str = r#"{"gate":"login","subject":{"user":"canary-user"}}"#;
const UNKNOWN: &str = r#"{"gate":"canary-gate","subject":{"user":"canary-user"}}"#;

#[test]
fn a_callers_trace_is_continued_and_says_nothing_of_whom() {
    let requests = [
        ("POST /v1/check", KNOWN, "-01", 200),
        ("POST /v1/check", UNKNOWN, "-01", 200),
        ("POST /v1/check?canary-query=1", UNKNOWN, "-01", 400),
        ("GET /v1/gates/other/authorize", "", "-01", 400),
        ("GET /v1/facts/user/canary-value", "", "-01", 404),
        ("GET /canary-path", "", "-01", 404),
        ("CANARY-METHOD /v1/gates/login/authorize", "", "-01", 400),
        ("POST /v1/check", KNOWN, "-00", 200),
        ("POST /v1/check", KNOWN, "", 200),
    ];
    let (calls, key) = exported_calls(&requests);
    let spans = spans(&calls);
    for span in &spans {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&bytes_of(TRACE), &bytes_of(PARENT)));
        assert_eq!((span.kind, span.trace_state.as_str()), (2, ""));
    }
    let all = format!("{calls:?}");
    for secret in ["canary", "CANARY", key.as_str(), "127.0.0.1"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    for wanted in ["\"service.name\"", "\"catraca\"", "\"service.version\""] {
        assert!(all.contains(wanted), "{wanted} in {all}");
    }
    // The unsampled trace and the trace without flags were not exported.
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "POST /v1/check",
        "POST /v1/check",
        "POST /v1/check",
        "GET /v1/gates/{gate}/authorize",
        "GET /v1/facts/{attribute}/{value}",
        "GET",
        "_OTHER /v1/gates/{gate}/authorize",
    ];
    assert_eq!(names, expected);
    let word = |index: usize, name: &str| span_attribute(spans[index], name).unwrap_or_default();
    assert_eq!([word(1, "http.route"), word(5, "http.route")], ["/v1/check", ""]);
    let fourth = [word(4, "http.response.status_code"), word(4, "http.request.method")];
    assert_eq!(fourth, ["404", "GET"]);
}

#[test]
fn a_span_says_what_was_decided() {
    let list = format!("[{KNOWN},{UNKNOWN}]");
    let (calls, _) = exported_calls(&[
        ("POST /v1/check", KNOWN, "-01", 200),
        ("POST /v1/check", KNOWN, "-01", 200),
        ("POST /v1/check", UNKNOWN, "-01", 200),
        ("POST /v1/check/batch", &list, "-01", 200),
        ("POST /v1/peek", KNOWN, "-01", 200),
    ]);
    let spans = spans(&calls);
    let words = |name: &str| -> Vec<String> {
        spans.iter().map(|span| span_attribute(span, name).unwrap_or_default()).collect()
    };
    assert_eq!(words("catraca.gate"), ["login", "login", "(unlisted)", "", "login"]);
    assert_eq!(words("catraca.policy"), ["login", "login", "other", "", "login"]);
    assert_eq!(words("catraca.allowed"), ["true", "false", "true", "", "false"]);
    assert_eq!(words("catraca.reason"), ["ok", "over_limit", "ok", "", "over_limit"]);
    assert_eq!(words("catraca.degraded"), ["false", "false", "false", "", "false"]);
    assert_eq!(words("catraca.mode"), ["enforce", "enforce", "enforce", "", "enforce"]);
    assert_eq!([&words("catraca.checks")[3], &words("catraca.denied")[3]], ["2", "1"]);
    assert!(!words("catraca.revision")[0].is_empty());
}

#[test]
fn calls_without_a_trace_begin_their_own_by_the_share_and_what_a_collector_refuses_is_counted() {
    let collector = Collector::start(1);
    let server = start_server(&collector.address, "100%", "");
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    assert_eq!(server.post("/v1/check", body).status, 200);
    let first = collector.next();
    let begun = spans(std::slice::from_ref(&first));
    assert_eq!(begun[0].name, "POST /v1/check");
    assert!(begun[0].parent_span_id.is_empty() && begun[0].trace_id.len() == 16, "{begun:?}");
    wait_until("refused", || counter(&server, "catraca_spans_dropped_total") == 1);
    wait_until("taken", || counter(&server, "catraca_spans_sent_total") > 0);
}

#[test]
fn a_collector_that_is_not_there_holds_nobody_up_and_what_is_dropped_is_counted() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = start_server(&format!("http://{gone}"), "100%", "");
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    for index in 0..5 {
        assert_eq!(server.json("/v1/check", body).1["allowed"], index == 0);
    }
    wait_until("dropped", || counter(&server, "catraca_spans_dropped_total") >= 5);
    assert_eq!(counter(&server, "catraca_spans_sent_total"), 0);
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success(), "{log}");
    assert_eq!(log.matches("does not accept spans").count(), 1, "{log}");
    assert!(log.contains("spans were not sent to the collector"), "{log}");
}

#[test]
fn a_collector_that_never_answers_fills_the_queue_and_delays_neither_calls_nor_the_stop() {
    // The kernel accepts connections, but the process never reads from them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start_server(&format!("http://{}", mute.local_addr().unwrap()), "100%", "");
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let mut call = head("POST /v1/check", &[JSON], Some(body.len()));
    call.extend(body.as_bytes());
    let mut connection = server.connect();
    for _ in 0..4_000 {
        connection.send_bytes(&call);
        assert_eq!(connection.read_response().status, 200);
    }
    // One batch is in flight and the queue is full; all other spans are dropped.
    wait_until("dropped", || {
        counter(&server, "catraca_spans_dropped_total") >= 4_000 - 2_048 - 512
    });
    let signalled = Instant::now();
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success() && signalled.elapsed() < Duration::from_secs(20), "{log}");
    assert!(log.contains("spans were not sent to the collector"), "{log}");
    drop(mute);
}

#[test]
fn what_is_wrong_with_the_settings_is_named() {
    for (settings, wanted) in [
        ("traces = 'https://collector:4317'", "such as http://127.0.0.1:4317"),
        ("traces = 'collector'", "this is not the address of a collector"),
        ("trace_share = '101%'", "more than the whole"),
        ("trace_share = 5", "a percentage such as"),
    ] {
        let file = crate::test_server::catalog_file(&format!("{POLICIES}[server]\n{settings}\n"));
        let mut command = crate::test_server::binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{settings}: {stderr}");
        assert!(stderr.contains(wanted), "{settings}: {stderr}");
    }
}
