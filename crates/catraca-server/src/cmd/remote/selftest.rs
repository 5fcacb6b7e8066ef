//! `catraca selftest`: has a running server try its limits, locks and bookings on itself.
//!
//! Must not touch what anybody else counts or holds: the server does it in a namespace of its own.

use anyhow::Result;
use serde_json::{Value, json};

use super::show;
use super::words::cell;
use crate::args::Selftest;
use crate::client::{Client, Reply};
use crate::exit::Exit;

/// What is tried, in this order; the last two leave nothing behind.
const ACTIONS: [&str; 5] = [
    "test_rate_limit",
    "test_lock",
    "test_concurrent_appointments",
    "clear_rate_limits",
    "clear_locks",
];

/// Tries everything; no is the answer if anything went otherwise than it must.
pub fn run(args: &Selftest) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let mut tried = Vec::new();
    for action in ACTIONS {
        tried.push(client.post("/v1/selftest", &json!({ "action": action }))?.json);
    }
    let json = Value::Array(tried);
    let reply = Reply { text: json.to_string(), json };
    show(args.remote.output, &reply, |all| lines(all).join("\n"))?;
    let fine = items(&reply.json).all(|one| one["ok"] == true);
    Ok(if fine { Exit::Yes } else { Exit::No })
}

fn items(all: &Value) -> impl Iterator<Item = &Value> {
    all.as_array().into_iter().flatten()
}

fn lines(all: &Value) -> Vec<String> {
    let line = |one: &Value| {
        let verdict = if one["ok"] == true { "ok  " } else { "FAIL" };
        let seen = one["seen"].as_object().into_iter().flatten();
        let seen: Vec<_> = seen.map(|(name, count)| format!("{name} {}", cell(count))).collect();
        format!("{verdict}  {:<28}  {}", cell(&one["action"]), seen.join(", "))
    };
    items(all).map(line).collect()
}
