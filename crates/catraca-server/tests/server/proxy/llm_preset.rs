//! The preset `llm-budget`: what a request holds covers what its answer may use, also if the client
//! leaves fields out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use catraca::{Check, CheckMode};

use super::helpers::{ProxyServer, TestUpstream, response, wait_until};
use super::llm_budget::{CLIENTS, OpenStreams};
use crate::raw_connection::RawConnection;

const PRESET: &str = include_str!("../../../../../presets/llm-budget/catalog.toml");
const UPSTREAM: &str = "${LLM_UPSTREAM:http://127.0.0.1:9000}";
const HEADERS: [(&str, &str); 3] =
    [("X-User", "ana"), ("X-Team", "red"), ("Content-Type", "application/json")];
/// What the preset gives a user at once.
const BUDGET: i64 = 200_000;

fn start(upstream: &TestUpstream) -> ProxyServer {
    ProxyServer::start(&PRESET.replace(UPSTREAM, &upstream.url))
}

/// How many more requests the user may have in flight.
fn requests_left(server: &ProxyServer) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let check = Check::new("user_requests", [("user", "ana")]);
    let decided = runtime.block_on(server.context.decide(&check, CheckMode::Peek));
    decided.unwrap().remaining.unwrap()
}

fn post(client: &mut RawConnection, path: &str, fields: &str) {
    let body = format!("{:<256}", format!("{{\"model\":\"small\",{fields}}}"));
    client.send(&format!("POST /v1/{path}"), &HEADERS, body.as_bytes());
}

#[test]
fn no_field_of_a_request_makes_its_answer_cheaper() {
    let usage = r#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let answer = response("200 OK", "content-type: application/json\r\n", usage);
    let upstream = TestUpstream::start(move |call| {
        call.read_body();
        call.send(&answer);
        true
    });
    let server = start(&upstream);
    let mut client = server.connect();
    let stream = r#""stream":true,"max_tokens":10"#;
    let with_usage = format!(r#"{stream},"stream_options":{{"include_usage":true}}"#);
    for (path, fields, status) in [
        ("chat/completions", r#""max_tokens":100000"#, 200),
        // More than the whole budget: the largest number, for each of the answers.
        ("chat/completions", r#""max_tokens":2000,"n":128"#, 429),
        ("chat/completions", r#""max_tokens":300000,"max_completion_tokens":1"#, 429),
        ("chat/completions", r#""max_completion_tokens":300000,"max_tokens":1"#, 429),
        ("chat/completions", r#""n":13"#, 429),
        ("chat/completions", r#""n":12"#, 200),
        ("chat/completions", r#""MAX_TOKENS":300000"#, 400),
        ("chat/completions", &with_usage, 200),
        ("chat/completions", stream, 400),
        ("messages", stream, 200),
        ("messages", r#""max_tokens":300000"#, 429),
    ] {
        post(&mut client, path, fields);
        let answer = client.read_response();
        assert_eq!(answer.status, status, "{path} {fields}: {}", answer.body);
        // The next request needs what this one held.
        wait_until("it is settled", || requests_left(&server) == 8);
    }
}

#[test]
fn concurrent_streams_of_the_preset_stay_within_the_budget() {
    // Two answers of 24,968 tokens each, and 256 bytes of the request.
    const HELD: i64 = 50_000;
    const USED: i64 = 2 * 24_968;
    let admitted = usize::try_from(BUDGET / HELD).unwrap();
    let streams = OpenStreams::start(admitted + 1);
    let server = start(&streams.upstream);
    let decided = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let address = server.address.clone();
            let decided = Arc::clone(&decided);
            thread::spawn(move || {
                let mut client = RawConnection::open(&address);
                let usage = r#""stream":true,"stream_options":{"include_usage":true}"#;
                let answers = format!(r#""n":2,"max_tokens":24968,"answer_tokens":{USED}"#);
                post(&mut client, "chat/completions", &format!("{answers},{usage}"));
                let head = client.read_head();
                decided.fetch_add(1, Ordering::SeqCst);
                if head.starts_with("HTTP/1.1 200") {
                    client.read_until("[DONE]");
                }
                head.starts_with("HTTP/1.1 200")
            })
        })
        .collect();
    wait_until("all requests are decided", || decided.load(Ordering::SeqCst) == CLIENTS);
    streams.end.wait();
    let passed = clients.into_iter().map(|client| client.join().unwrap());
    assert_eq!(passed.filter(|passed| *passed).count(), admitted);
    let used = streams.used.load(Ordering::SeqCst);
    assert_eq!(used, USED * admitted as i64);
    println!(
        "{CLIENTS} streams of the preset: {admitted} admitted, {used} of {BUDGET} tokens used"
    );
    assert!(used <= BUDGET);
}
