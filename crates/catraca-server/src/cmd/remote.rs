//! The verbs that call a server, and their shared helpers: building requests, fetching pages and
//! printing responses.

mod audit;
mod blocks;
mod check;
mod config;
mod events;
mod facts;
pub(in crate::cmd) mod format;
mod inspect;
mod lists;
mod locks;
mod privacy;
mod reset;
mod selftest;
mod slots;
mod stats;

pub(in crate::cmd) use lists::blocklist_entries;

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::args::{CliVerb, Output, PagingArgs};
use crate::client::{Client, Reply};
use crate::exit::Exit;
use crate::render::{StdoutPipe, eprint_line, sanitize};

/// Printed for a response with `durable: false`.
const NOT_DURABLE: &str = "catraca: the change is active but not on disk yet; the server \
                           retries, and a crash before that would lose it";

/// Runs a verb that calls a server.
pub fn run(verb: &CliVerb) -> Result<Exit> {
    match verb {
        CliVerb::Check(args) => check::check(args),
        CliVerb::Peek(args) => check::peek(args),
        CliVerb::Settle(args) => check::settle(args),
        CliVerb::Credit(args) => check::credit(args),
        CliVerb::Blocks(args) => blocks::run(args),
        CliVerb::Blocklist(args) => lists::blocklist(args),
        CliVerb::Allowlist(args) => lists::allowlist(args),
        CliVerb::Facts(args) => facts::run(args),
        CliVerb::Inspect(args) => inspect::run(args),
        CliVerb::Locks(args) => locks::run(args),
        CliVerb::Slots(args) => slots::run(args),
        CliVerb::Reset(args) => reset::run(args),
        CliVerb::Selftest(args) => selftest::run(args),
        CliVerb::Stats(args) => stats::run(args),
        CliVerb::Audit(args) => audit::run(args),
        CliVerb::Events(args) => events::run(args),
        CliVerb::Config(args) => config::run(args),
        CliVerb::Whoami(args) => config::whoami(args),
        CliVerb::Privacy(args) => privacy::run(args),
        other => bail!("{other:?} calls no server"),
    }
}

/// Prints a response: the JSON as received, or the text of `words`.
pub(in crate::cmd) fn show(
    output: Output,
    reply: &Reply,
    words: impl FnOnce(&Value) -> String,
) -> Result<()> {
    let text = match output {
        Output::Json => reply.text.clone(),
        Output::Human => words(&reply.json),
    };
    let mut out = StdoutPipe::stdout();
    let written = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
    written.context("the server has executed the call, but its response cannot be printed")?;
    // A dry run changes nothing, so nothing has to be on disk.
    if reply.json["durable"] == false && reply.json["dry_run"] != true {
        eprint_line(format_args!("{NOT_DURABLE}"));
    }
    warn_nodes_behind(&reply.json);
    warn_incomplete(&reply.json);
    Ok(())
}

/// Prints which other nodes do not know of a change yet, if there are any.
fn warn_nodes_behind(reply: &Value) {
    let names = reply["nodes_behind"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        let names = sanitize(&names.join(", "));
        eprint_line(format_args!("catraca: these nodes do not know of the change yet: {names}"));
    }
}

/// Prints why a response from the records may lack the newest entries, if it may.
fn warn_incomplete(reply: &Value) {
    if let Some(why) = reply["incomplete"].as_str() {
        eprint_line(format_args!("catraca: {}", sanitize(why)));
    }
}

/// A JSON object of the fields that have a value.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// The JSON object of a subject.
fn subject(pairs: &[(String, String)]) -> Result<Value> {
    super::refuse_repeated(pairs)?;
    let pairs = pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Ok(Value::Object(pairs.collect::<Map<_, _>>()))
}

/// The blocks of the same act that a release or a reset has left.
fn remaining_text(reply: &Value) -> String {
    let rows = reply["remaining"].as_array().into_iter().flatten();
    let text = |row: &Value| {
        format!(
            "\nnot released: {} (block {}), which the same act blocked; release it by its id, or \
             reset its key",
            format::cell(&row["subject"]),
            format::id(&row["id"])
        )
    };
    rows.map(text).collect()
}

fn text(text: &Option<String>) -> Option<Value> {
    text.as_deref().map(Value::from)
}

/// A path with a query of the parameters that have a value.
fn query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Fetches one page of rows, or all pages joined into one.
pub(in crate::cmd) fn pages(
    client: &Client,
    path: &str,
    parameters: &[(&str, Option<&str>)],
    paging: &PagingArgs,
    rows: &str,
) -> Result<Reply> {
    let limit = paging.limit.or(paging.all.then_some(PAGE_ROWS)).map(|limit| limit.to_string());
    let page = |after: Option<&str>| {
        let mut parameters = parameters.to_vec();
        parameters.extend([("limit", limit.as_deref()), ("after", after)]);
        client.get(&query(path, &parameters))
    };
    let mut all = page(paging.after.as_deref())?;
    if !paging.all {
        return Ok(all);
    }
    while let Some(next) = all.json["next"].as_str().map(str::to_owned) {
        let mut more = page(Some(&next))?.json;
        if let (Some(all), Some(more)) = (all.json[rows].as_array_mut(), more[rows].as_array_mut())
        {
            all.append(more);
        }
        all.json["next"] = more["next"].take();
        if more["incomplete"].is_string() {
            all.json["incomplete"] = more["incomplete"].take();
        }
    }
    all.text = all.json.to_string();
    Ok(all)
}

/// Rows per page with `--all`: the server's maximum.
const PAGE_ROWS: u32 = 1_000;
