//! `catraca events`: the live feed, one line per event.

use std::io::{ErrorKind, Write, stdout};

use anyhow::Result;
use serde_json::{Value, json};

use super::words::{cell, moment};
use crate::args::{Events, Output};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{plain, tell};

/// Listens until it was enough, nobody reads any more, or the server goes.
pub fn run(args: &Events) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let mut name = String::new();
    let mut left = args.count;
    client.listen("/v1/events", |line| {
        if line == ": listening" {
            // Not a result, and worth knowing: nothing that happens from now on is missed.
            tell(format_args!("catraca: listening; Ctrl-C ends it"));
        } else if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ")
            && (args.only.is_empty() || args.only.contains(&name))
        {
            if !print(args.remote.output, &name, data)? {
                return Ok(false);
            }
            left = left.map(|left| left.saturating_sub(1));
        }
        Ok(left != Some(0))
    })?;
    Ok(Exit::Yes)
}

/// Whether anybody reads on.
fn print(output: Output, name: &str, data: &str) -> Result<bool> {
    let told: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    let line = match output {
        Output::Json => {
            let mut event = json!({ "event": name });
            if let (Some(event), Some(told)) = (event.as_object_mut(), told.as_object()) {
                event.extend(told.clone());
            }
            event.to_string()
        }
        Output::Human => words(name, &told),
    };
    let mut out = stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

fn words(name: &str, told: &Value) -> String {
    let at = if told["at"].is_string() { moment(&told["at"]) } else { "-".to_owned() };
    let mut line = format!("{at}  {:<9}", plain(name));
    for (name, value) in told.as_object().into_iter().flatten() {
        let shown = match name.as_str() {
            "at" => continue,
            "until" => format!("until={}", moment(value)),
            "subject" => cell(value),
            _ if value.is_null() => continue,
            _ => format!("{}={}", plain(name), cell(value)),
        };
        line += &format!(" {shown}");
    }
    line
}
