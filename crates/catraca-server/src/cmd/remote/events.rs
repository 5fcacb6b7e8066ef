//! `catraca events`: follows the event stream, one line per event.

use std::io::{ErrorKind, Write, stdout};

use anyhow::Result;
use serde_json::{Value, json};

use super::format::{cell, instant};
use crate::args::{EventsArgs, Output};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{eprint_line, sanitize};

/// Prints events until `--count` is reached, the output is closed, or the server stops.
pub fn run(args: &EventsArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let mut name = String::new();
    let mut remaining = args.count;
    client.listen("/v1/events", |line| {
        if line == ": listening" {
            // From here on no event is missed; a script may wait for this line.
            eprint_line(format_args!("catraca: listening; Ctrl-C stops"));
        } else if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ")
            && (args.only.is_empty() || args.only.contains(&name))
        {
            if !print(args.remote.output, &name, data)? {
                return Ok(false);
            }
            remaining = remaining.map(|count| count.saturating_sub(1));
        }
        Ok(remaining != Some(0))
    })?;
    Ok(Exit::Yes)
}

/// Prints one event; returns false if the reader has closed the pipe.
fn print(output: Output, name: &str, data: &str) -> Result<bool> {
    let fields: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    let line = match output {
        Output::Json => {
            let mut event = json!({ "event": name });
            if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object()) {
                event.extend(fields.clone());
            }
            event.to_string()
        }
        Output::Human => event_text(name, &fields),
    };
    let mut out = stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

fn event_text(name: &str, fields: &Value) -> String {
    let at = if fields["at"].is_string() { instant(&fields["at"]) } else { "-".to_owned() };
    let mut line = format!("{at}  {:<9}", sanitize(name));
    for (name, value) in fields.as_object().into_iter().flatten() {
        let text = match name.as_str() {
            "at" => continue,
            "until" => format!("until={}", instant(value)),
            "subject" => cell(value),
            _ if value.is_null() => continue,
            _ => format!("{}={}", sanitize(name), cell(value)),
        };
        line += &format!(" {text}");
    }
    line
}
