//! `catraca selftest`: makes a running server test its limits, locks and bookings.
//!
//! The server runs the tests in a separate namespace.

use anyhow::Result;
use serde_json::{Value, json};

use super::format::cell;
use super::show;
use crate::args::SelftestArgs;
use crate::client::{Client, Reply};
use crate::exit::Exit;

/// The tests in their order; the last two clean up after the others.
const ACTIONS: [&str; 5] = [
    "test_rate_limit",
    "test_lock",
    "test_concurrent_appointments",
    "clear_rate_limits",
    "clear_locks",
];

/// Runs all tests; exits 1 if one of them fails.
pub fn run(args: &SelftestArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let mut results = Vec::new();
    for action in ACTIONS {
        results.push(client.post("/v1/selftest", &json!({ "action": action }))?.json);
    }
    let json = Value::Array(results);
    let reply = Reply { text: json.to_string(), json };
    show(args.remote.output, &reply, |all| lines(all).join("\n"))?;
    let passed = items(&reply.json).all(|one| one["ok"] == true);
    Ok(if passed { Exit::Yes } else { Exit::No })
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
