//! A team that uses a language model: what its answers have used is what is charged.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::http_client::{DemoRequest, DemoResponse, send};
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

const USER: [(&str, &str); 2] = [("X-User", "ana"), ("X-Team", "red")];
/// Requests of one user at the same time.
const CONCURRENT: usize = 12;
/// As many of them as the preset admits.
const IN_FLIGHT: usize = 8;

/// The model: a prompt of 20 tokens, and as many of the answer as `answer_tokens` says. Requests of
/// the user `bob` wait until the demo says so.
fn answer(request: &UpstreamRequest, signal: &Signal) -> UpstreamResponse {
    let call: Value = serde_json::from_str(&request.body).unwrap_or_default();
    if call["waits"] == true {
        signal.wait();
    }
    let output = call["answer_tokens"].as_i64().unwrap_or(10);
    let is_message = request.line.ends_with("/messages");
    let has_usage = call["stream_options"]["include_usage"] == true;
    let events = match (is_message, call["stream"] == true) {
        (false, false) => {
            return whole(&json!({
                "choices": [{"message": {"content": "Bom dia!"}}],
                "usage": {"prompt_tokens": 20, "completion_tokens": output},
            }));
        }
        (true, false) => {
            return whole(&json!({
                "content": [{"type": "text", "text": "Bom dia!"}],
                "usage": {"input_tokens": 20, "output_tokens": output},
            }));
        }
        (false, true) => {
            let mut events =
                vec![json!({"choices": [{"delta": {"content": "Bom dia!"}}], "usage": null})];
            let usage = json!({"prompt_tokens": 20, "completion_tokens": output});
            events.extend(has_usage.then(|| json!({"choices": [], "usage": usage})));
            events
        }
        (true, true) => vec![
            json!({
                "type": "message_start",
                "message": {"usage": {"input_tokens": 20, "output_tokens": 1}},
            }),
            json!({"type": "content_block_delta", "delta": {"text": "Bom dia!"}}),
            json!({"type": "message_delta", "usage": {"output_tokens": output}}),
        ],
    };
    let parts = events.iter().map(|event| format!("data: {event}\n\n"));
    let parts = parts.chain(["data: [DONE]\n\n".to_owned()]).collect();
    UpstreamResponse { status: "200 OK", content_type: "text/event-stream", parts }
}

fn whole(body: &Value) -> UpstreamResponse {
    UpstreamResponse {
        status: "200 OK",
        content_type: "application/json",
        parts: vec![body.to_string()],
    }
}

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let signal = Arc::new(Signal::default());
    let waiting = Arc::clone(&signal);
    let url = upstream::start(move |request| answer(request, &waiting))?;
    let stage = Stage::start(context, binary, "llm-budget", "LLM_UPSTREAM", &url)?;
    let story = Story { stage: &stage };
    story.chat(
        "/v1/chat/completions",
        r#"{"model":"large","max_tokens":1000,"answer_tokens":30}"#,
        (50, 20 * 2_500 + 30 * 10_000),
        "The check held 1,000 tokens and one for each four bytes of the request; the answer says \
         50, and the rest is given back.",
    )?;
    story.chat(
        "/v1/chat/completions",
        concat!(
            r#"{"model":"small","max_tokens":1000,"answer_tokens":30,"stream":true,"#,
            r#""stream_options":{"include_usage":true}}"#
        ),
        (50, 20 * 150 + 30 * 600),
        "A stream: its last event but [DONE] has the usage. The model `small` is cheaper.",
    )?;
    story.chat(
        "/v1/messages",
        r#"{"model":"large","max_tokens":1000,"answer_tokens":40,"stream":true}"#,
        (60, 20 * 2_500 + 40 * 10_000),
        "The other shape: the first event has the tokens of the prompt, a later one those of the \
         answer.",
    )?;
    stage.ask(
        &DemoRequest {
            line: "POST /v1/chat/completions",
            headers: &USER,
            body: r#"{"model":"small","max_tokens":1000,"stream":true}"#,
        },
        400,
        "A stream whose client does not ask for its usage could not be counted: it is refused.",
    )?;
    story.chat(
        "/v1/chat/completions",
        r#"{"model":"small","max_tokens":1000,"answer_tokens":250000}"#,
        (199_840, 20 * 150 + 250_000 * 600),
        "An answer that used far more than was held: it is charged completely, as a debt.",
    )?;
    stage.ask(
        &DemoRequest { line: "POST /v1/messages", headers: &USER, body: r#"{"max_tokens":10}"# },
        429,
        "Ana waits until time has paid the debt. The model does not get the request.",
    )?;
    run_side_by_side(&stage, &signal)?;
    stage.end()
}

struct Story<'a> {
    stage: &'a Stage,
}

impl Story<'_> {
    /// Sends a request of ana, and checks what it cost in tokens and in nano-dollars. A balance
    /// never shows less than zero.
    fn chat(&self, path: &str, body: &str, cost: (i64, i64), why: &str) -> Result<DemoResponse> {
        let tokens = || self.stage.remaining("user_tokens", "user", "ana");
        let money = || self.stage.remaining("team_money", "team", "red");
        let before = (tokens()?, money()?);
        let line = format!("POST {path}");
        let request = DemoRequest { line: &line, headers: &USER, body };
        let response = self.stage.ask(&request, 200, why)?;
        self.stage.wait_until("ana has no request in flight", |stage| {
            let free = stage.remaining("user_requests", "user", "ana")?;
            Ok(free == IN_FLIGHT as i64)
        })?;
        let paid = (before.0 - tokens()?, before.1 - money()?);
        println!("  Cost: {} tokens of ana, {} nano-dollars of red.\n", paid.0, paid.1);
        // Both buckets refill while the demo runs: 2.3 tokens and 19,290 nano-dollars a second.
        ensure!((cost.0 - 20..=cost.0 + 20).contains(&paid.0), "expected {cost:?}");
        ensure!((cost.1 - 200_000..=cost.1).contains(&paid.1), "expected {cost:?}");
        Ok(response)
    }
}

/// Eight requests of one user may run at the same time.
fn run_side_by_side(stage: &Stage, signal: &Signal) -> Result<()> {
    let body = r#"{"model":"small","max_tokens":10,"answer_tokens":5,"waits":true}"#;
    let (sender, statuses) = mpsc::channel();
    for _ in 0..CONCURRENT {
        let proxy = stage.proxy.clone();
        let sender = sender.clone();
        thread::spawn(move || {
            let headers = [("X-User", "bob"), ("X-Team", "red")];
            let line = "POST /v1/chat/completions";
            let response = send(&proxy, &DemoRequest { line, headers: &headers, body });
            sender.send(response.map(|response| response.status))
        });
    }
    let next = || statuses.recv_timeout(Duration::from_secs(20)).context("no response");
    // The model answers none before the others are denied.
    for _ in IN_FLIGHT..CONCURRENT {
        let status = next()??;
        ensure!(status == 429, "expected 429, and got {status}");
    }
    signal.set();
    for _ in 0..IN_FLIGHT {
        let status = next()??;
        ensure!(status == 200, "expected 200, and got {status}");
    }
    println!("> {CONCURRENT} requests of bob at the same time");
    println!("< {IN_FLIGHT} answers, {} times 429", CONCURRENT - IN_FLIGHT);
    println!("  A user has at most eight requests in flight.\n");
    Ok(())
}

/// Lets threads wait until it is set.
#[derive(Default)]
struct Signal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(is_set, |is_set| !*is_set));
    }
}
