//! The first two minutes: the server as a newcomer starts it, asked over a real socket.
//!
//! Must end the process it started, whatever fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server on a port of its own, ended with the test.
struct Served {
    child: Child,
    address: String,
    greeting: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_catraca"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            let line = lines.next().expect("a greeting").expect("text");
            greeting.push_str(&line);
            greeting.push('\n');
        }
        let address = greeting.split("http://").nth(1).and_then(|rest| rest.split('\n').next());
        let address = address.expect("an address in the greeting").trim().to_owned();
        Self { child, address, greeting }
    }

    /// Sends one request; the status and the whole answer.
    fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        let head = format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }

    fn post(&self, path: &str, body: &str) -> (u16, serde_json::Value) {
        let (status, answer) = self.ask(&format!("POST {path}"), body);
        let json = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        (status, serde_json::from_str(json).expect("JSON"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// covers: 001-06, 004-60
#[test]
fn the_pasted_curl_passes_five_times_and_then_says_when_to_come_back() {
    let served = Served::start(&[]);
    assert!(served.greeting.contains("/v1/authorize?gate=demo'"), "{}", served.greeting);
    for left in (0..5).rev() {
        let (status, answer) = served.ask("GET /v1/authorize?gate=demo", "");
        assert_eq!(status, 204, "{answer}");
        assert!(answer.contains(&format!("ratelimit: \"demo\";r={left};t=")), "{answer}");
        assert!(!answer.contains("retry-after"), "{answer}");
    }
    let (status, answer) = served.ask("GET /v1/authorize?gate=demo", "");
    assert_eq!(status, 429);
    assert!(answer.contains("retry-after: ") && answer.contains("\"over_limit\""), "{answer}");
}

/// covers: X-13, X-14
#[test]
fn check_settle_and_bucket_states_speak_the_decision() {
    let served = Served::start(&[]);
    let ask = r#"{"gate":"search","subject":{"user":"ana"}}"#;
    let (status, decision) = served.post("/v1/check", ask);
    assert_eq!((status, &decision["allowed"]), (200, &true.into()));
    let ticket = decision["ticket"].as_str().expect("a ticket");
    let settle = serde_json::json!({"ticket": ticket, "outcome": {"status": 404}}).to_string();
    let (status, settled) = served.post("/v1/settle", &settle);
    assert_eq!((status, &settled["policies"][0]["charged"]), (200, &5.into()));
    let (_, again) = served.post("/v1/settle", &settle);
    assert_eq!(again["state"], "again");
    let (_, states) = served.post("/v1/buckets", r#"{"subject":{"user":"ana"}}"#);
    assert_eq!(states["buckets"][0]["policy"], "search");
    let (_, peeked) = served.post("/v1/peek", ask);
    assert_eq!(peeked["policies"][0]["charged"], 0);
    let (_, both) = served.post("/v1/check", &format!("[{ask},{{\"gate\":\"nobody\"}}]"));
    assert_eq!(both[0]["allowed"], true);
    assert_eq!(both[1]["code"], "unknown-gate");
}

#[test]
fn bad_input_is_named_and_refused() {
    let served = Served::start(&[]);
    for (path, body, status, code) in [
        ("/v1/check", r#"{"gate":"demo","subjct":{}}"#, 400, "bad-json"),
        ("/v1/check", r#"{"gate":"demo","subject":{"ip":"x"}}"#, 400, "bad-attribute"),
        ("/v1/check", r#"{"gate":"demo","subject":{}}"#, 400, "missing-attribute"),
        ("/v1/check", r#"{"gate":"nobody","subject":{}}"#, 404, "unknown-gate"),
        ("/v1/check", r#"{"gate":"demo","subject":{"ip":"::1"},"cost":-1}"#, 400, "bad-cost"),
        ("/v1/settle", r#"{"ticket":"x","outcome":{}}"#, 400, "bad-ticket"),
        ("/v1/nothing", "{}", 404, "unknown-call"),
    ] {
        let (got, problem) = served.post(path, body);
        assert_eq!((got, problem["code"].as_str()), (status, Some(code)), "{path} {body}");
    }
    let (status, _) = served.ask("GET /v1/check", "");
    assert_eq!(status, 405);
}

#[test]
fn an_address_that_others_can_reach_is_refused_by_name() {
    let mut refused = Command::new(env!("CARGO_BIN_EXE_catraca"));
    let ran = refused.args(["serve", "--listen", "0.0.0.0:0"]).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("loopback"));
}
