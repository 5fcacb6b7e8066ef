//! A server with a catalog that has something for every verb, and the binary that asks it.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::served::{Served, binary};

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

[attribute.customer]
private = true

[[blocklist]]
range = "192.0.2.66"
"#;

pub const PAYER: &str = "payer=52998224725";
pub const CUSTOMER: &str = "customer=c-4711";
pub const IP: &str = "ip=198.51.100.7";

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A server of the catalog above.
pub fn served() -> Served {
    Served::with(CATALOG)
}

/// The binary, pointed at a server.
pub fn command(url: &str, args: &[&str]) -> Command {
    let mut command = binary();
    for name in ["CATRACA_KEY", "CATRACA_CA"] {
        command.env_remove(name);
    }
    command.env("CATRACA_URL", url).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The address of a server as a URL.
pub fn url(served: &Served) -> String {
    format!("http://{}", served.address)
}

/// Runs a verb against a server.
pub fn run(served: &Served, args: &[&str]) -> Ran {
    Ran::of(command(&url(served), args).output().unwrap())
}

/// The same, which must succeed; what it printed.
pub fn done(served: &Served, args: &[&str]) -> String {
    let ran = run(served, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.out, ran.err);
    ran.out
}

/// The same with `-o json`; what it printed, read.
pub fn json(served: &Served, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
    let out = done(served, &args);
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Runs a verb that reads this from standard input.
pub fn fed(served: &Served, args: &[&str], input: &str) -> Ran {
    let mut child = command(&url(served), args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        // The binary may end before it has read all of it.
        scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        child.wait_with_output().unwrap()
    });
    Ran::of(output)
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// That it ended with this code, printed no result, and said all of this.
    pub fn says(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?}: {}", self.err);
        }
    }
}
