//! `catraca simulate`.

mod compare;
mod dict;
mod line_errors;
mod logs;
mod operator_acts;
mod output;
mod settle;
mod summary;
mod time;
mod window;

use serde_json::Value;

use crate::cli::test_dir::{CliOutput, TestDir};

/// Two buckets for one lookup, as in the Pix directory.
pub const DICT: &str = r#"
[policy.user_antiscan]
by     = ["participant", "payer"]
bucket = { size = 100, refill = "2 per 1m" }
cost   = { "200" = 1, "404" = 20, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true
tier   = [ { when = { person = "PJ" }, bucket = { size = 1000, refill = "20 per 1m" },
             credit = { payment = { amount = 2, on = ["200"] } } } ]

[policy.participant_antiscan]
by     = ["participant"]
bucket = { size = 100, refill = "2 per 1m" }
cost   = { "200" = 1, "404" = 3, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true
tier   = [ { when = { category = "A" }, bucket = { size = 50000, refill = "25000 per 1m" } },
           { when = { category = "H" }, bucket = { size = 50, refill = "2 per 1m" } } ]

[gate.lookup]
policies = ["user_antiscan", "participant_antiscan"]

[attribute.payer]
kind    = "cpf_cnpj"
private = true

[facts.participant."12345678"]
category = "A"

[facts.participant."87654321"]
category = "H"
"#;

/// Three per minute, then a block of 15 minutes.
const LOGIN: &str = r#"
[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "15m"
"#;

/// A check of the login gate at a time in milliseconds.
fn login(at: i64) -> String {
    format!(r#"{{"at":{at},"gate":"login","subject":{{"ip":"198.51.100.7"}}}}"#)
}

/// Replays these lines with `-o json`.
fn replay(catalog: &str, lines: &[impl AsRef<str>]) -> CliOutput {
    let dir = TestDir::with_file("catalog.toml", catalog);
    let lines: String = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect();
    dir.write("events.jsonl", lines);
    dir.run(&["simulate", "-c", "catalog.toml", "events.jsonl", "-o", "json"])
}

/// Replays lines that must all be valid; returns the results.
fn results(catalog: &str, lines: &[impl AsRef<str>]) -> Vec<Value> {
    let output = replay(catalog, lines);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    let results = output.json();
    assert_eq!(results.len(), lines.len());
    results
}

/// The integers at one JSON pointer.
fn numbers(results: &[Value], pointer: &str) -> Vec<Option<i64>> {
    results.iter().map(|result| result.pointer(pointer).and_then(Value::as_i64)).collect()
}

fn reasons(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["reason"].as_str().unwrap_or_default()).collect()
}
