//! A server whose catalog has something for every command, and the binary run against it.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::test_server::{TestServer, binary};

pub const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "2 per 1h"
block  = "2h"

[policy.lookup]
by     = ["payer"]
bucket = { size = 100, refill = "1 per 1h" }
cost   = { "200" = 1, "404" = 20, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }

[policy.api]
by     = ["customer"]
window = "1 per 1h"
tier   = [ { when = { plan = "gold" }, window = "3 per 1h" } ]

[gate.front]
policies = ["login", "api"]

[attribute.payer]
kind    = "cpf_cnpj"
private = true

[attribute.shop]
[attribute.customer]
private = true

[[blocklist]]
range = "192.0.2.66"
"#;

pub const PAYER: &str = "payer=52998224725";
pub const CUSTOMER: &str = "customer=c-4711";
pub const IP: &str = "ip=198.51.100.7";

/// The exit code and the output of one run of the binary.
#[derive(Debug)]
pub struct CliOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A server with `CATALOG`.
pub fn start_server() -> TestServer {
    TestServer::with_catalog(CATALOG)
}

/// The binary with `CATRACA_URL` set to a server.
pub fn command(url: &str, args: &[&str]) -> Command {
    let mut command = binary();
    // The environment of the developer must not change the result.
    for name in ["CATRACA_KEY", "CATRACA_CA"] {
        command.env_remove(name);
    }
    command.env("CATRACA_URL", url).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The address of a server as a URL.
pub fn url(server: &TestServer) -> String {
    format!("http://{}", server.address)
}

/// Runs a command against a server.
pub fn run(server: &TestServer, args: &[&str]) -> CliOutput {
    CliOutput::new(command(&url(server), args).output().unwrap())
}

/// Runs a command that must succeed; returns its standard output.
pub fn run_ok(server: &TestServer, args: &[&str]) -> String {
    let output = run(server, args);
    assert_eq!(output.code, Some(0), "{args:?}: {}{}", output.out, output.err);
    output.out
}

/// Runs a command with `-o json`, which must succeed; returns what it printed.
pub fn json(server: &TestServer, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
    let out = run_ok(server, &args);
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Runs a command with `input` as its standard input.
pub fn run_with_stdin(server: &TestServer, args: &[&str], input: &str) -> CliOutput {
    let mut child = command(&url(server), args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        // The binary may end before it has read all of its input.
        scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        child.wait_with_output().unwrap()
    });
    CliOutput::new(output)
}

impl CliOutput {
    pub fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts the exit code, an empty standard output and these parts of standard error.
    pub fn assert_exit(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "{part:?}: {}", self.err);
        }
    }
}
