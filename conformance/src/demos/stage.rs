//! The server of a demo, and how requests and responses are printed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::http_client::{DemoRequest, DemoResponse, send};
use crate::{Scratch, TestContext};

/// Longer than a settle takes.
const SOON: Duration = Duration::from_secs(10);

/// A server with a preset, whose proxy forwards to the upstream of a demo.
pub(super) struct Stage {
    child: Child,
    /// Kept open: a server that cannot write its output would end.
    _output: BufReader<ChildStdout>,
    _folder: Scratch,
    /// The address of the proxy.
    pub(super) proxy: String,
    /// The address of the HTTP API.
    pub(super) api: String,
}

impl Stage {
    /// Starts `catraca serve` with a preset. `variable` is what the preset calls its upstream.
    pub(super) fn start(
        context: &TestContext,
        binary: &Path,
        preset: &str,
        variable: &str,
        upstream: &str,
    ) -> Result<Self> {
        Self::start_with(context, binary, preset, &[(variable, upstream)])
    }

    /// The same with any variables of the preset.
    pub(super) fn start_with(
        context: &TestContext,
        binary: &Path,
        preset: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let folder = Scratch::new("demo")?;
        let file = folder.path().join("catalog.toml");
        fs::write(&file, context.repo.read(&format!("presets/{preset}/catalog.toml"))?)?;
        let set: String =
            variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        println!("$ {set}catraca serve -c presets/{preset}/catalog.toml");
        println!("  with no other program than the demo's upstream\n");
        let mut server = context.repo.command(&binary.display().to_string());
        server.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
        server
            .envs(variables.iter().copied())
            .env("LLM_LISTEN", "127.0.0.1:0")
            .env("PROXY_LISTEN", "127.0.0.1:0");
        server.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = context.processes.spawn(&mut server)?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut output = BufReader::new(output);
        let api = address(&mut output)?;
        let proxy = address(&mut output)?;
        Ok(Self { child, _output: output, _folder: folder, proxy, api })
    }

    /// Sends a request through the proxy, prints it with its response, and checks the status.
    pub(super) fn ask(
        &self,
        request: &DemoRequest<'_>,
        status: u16,
        why: &str,
    ) -> Result<DemoResponse> {
        let response = send(&self.proxy, request)?;
        print_exchange(request, &response);
        println!("  {why}\n");
        ensure!(response.status == status, "{}: expected {status}", request.line);
        Ok(response)
    }

    /// Sends a request again and again until it gets this status, and prints the last response.
    pub(super) fn repeat_until(
        &self,
        request: &DemoRequest<'_>,
        status: u16,
        most: usize,
    ) -> Result<DemoResponse> {
        for number in 1..=most {
            let response = send(&self.proxy, request)?;
            if response.status == status {
                println!("> {number} times:");
                print_exchange(request, &response);
                return Ok(response);
            }
        }
        anyhow::bail!("{}: no {status} in {most} requests", request.line)
    }

    /// Calls the HTTP API, without a word.
    pub(super) fn call(&self, path: &str, body: &str) -> Result<Value> {
        let response = self.call_as(&format!("POST {path}"), "application/json", body)?;
        Ok(serde_json::from_str(&response)?)
    }

    /// Calls the HTTP API with a method and a path, and returns the body of this type.
    pub(super) fn call_as(&self, line: &str, accept: &str, body: &str) -> Result<String> {
        let request = DemoRequest { line, headers: &[("Accept", accept)], body };
        let response = send(&self.api, &request)?;
        ensure!(response.status == 200, "{line}: {} {}", response.status, response.body);
        Ok(response.body)
    }

    /// The units that a key of a policy has left.
    pub(super) fn remaining(&self, policy: &str, attribute: &str, value: &str) -> Result<i64> {
        let body = format!(r#"{{"gate":"{policy}","subject":{{"{attribute}":"{value}"}}}}"#);
        let decision = self.call("/v1/peek", &body)?;
        decision["remaining"].as_i64().with_context(|| format!("{policy}: {decision}"))
    }

    /// Waits for a condition. A check is settled when its response ends, and a store may need a
    /// moment for that.
    pub(super) fn wait_until(
        &self,
        what: &str,
        is_so: impl Fn(&Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + SOON;
        while !is_so(self)? {
            ensure!(Instant::now() < deadline, "not in time: {what}");
            thread::yield_now();
        }
        Ok(())
    }

    /// Ends the server; one that has ended by itself is a failure.
    pub(super) fn end(mut self) -> Result<()> {
        ensure!(self.child.try_wait()?.is_none(), "the server has ended before its demo");
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn print_exchange(request: &DemoRequest<'_>, response: &DemoResponse) {
    let headers: Vec<String> =
        request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    println!("> {}  {}", request.line, headers.join("  "));
    if !request.body.is_empty() {
        println!("> {}", request.body);
    }
    println!("< {}", response.status);
    for name in ["retry-after", "ratelimit"] {
        if let Some(value) = response.header(name) {
            println!("< {name}: {value}");
        }
    }
    response.body.lines().filter(|line| !line.is_empty()).for_each(|line| println!("< {line}"));
}

/// The next address in the output of the server.
fn address(output: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    while output.read_line(&mut line)? > 0 {
        if let Some(rest) = line.split("http://").nth(1) {
            return Ok(rest.split_whitespace().next().unwrap_or_default().to_owned());
        }
        line.clear();
    }
    anyhow::bail!("the server did not print its addresses")
}
