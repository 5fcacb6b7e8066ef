//! The verbs that ask a server, and what they have in common: how a request is put together and how
//! an answer is told.
//!
//! Must not decide anything, nor know the server by another way than its public HTTP API.

mod ask;
mod audit;
mod blocks;
mod config;
mod events;
mod facts;
mod lists;
mod locks;
mod privacy;
mod reset;
mod selftest;
mod slots;
mod stats;
mod words;

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::args::{Output, Paging, Verb};
use crate::client::{Client, Reply};
use crate::exit::Exit;
use crate::render::{Outlet, tell};

/// What is told with a `durable: false`.
const NOT_YET: &str = "catraca: it is in force, and not on disk yet: the server tries it again, \
                       and a crash before that would lose it";

/// Runs a verb that asks a server.
pub fn run(verb: &Verb) -> Result<Exit> {
    match verb {
        Verb::Check(args) => ask::check(args),
        Verb::Peek(args) => ask::peek(args),
        Verb::Settle(args) => ask::settle(args),
        Verb::Credit(args) => ask::credit(args),
        Verb::Blocks(args) => blocks::run(args),
        Verb::Blocklist(args) => lists::blocklist(args),
        Verb::Allowlist(args) => lists::allowlist(args),
        Verb::Facts(args) => facts::run(args),
        Verb::Locks(args) => locks::run(args),
        Verb::Slots(args) => slots::run(args),
        Verb::Reset(args) => reset::run(args),
        Verb::Selftest(args) => selftest::run(args),
        Verb::Stats(args) => stats::run(args),
        Verb::Audit(args) => audit::run(args),
        Verb::Events(args) => events::run(args),
        Verb::Config(args) => config::run(args),
        Verb::Whoami(args) => config::whoami(args),
        Verb::Privacy(args) => privacy::run(args),
        other => bail!("{other:?} asks no server"),
    }
}

/// Prints an answer: as it came, or in words.
fn show(output: Output, reply: &Reply, words: impl FnOnce(&Value) -> String) -> Result<()> {
    let text = match output {
        Output::Json => reply.text.clone(),
        Output::Human => words(&reply.json),
    };
    let mut out = Outlet::stdout();
    let told = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
    told.context("the server has done what it was asked, but its answer cannot be shown")?;
    if reply.json["durable"] == false {
        tell(format_args!("{NOT_YET}"));
    }
    Ok(())
}

/// An object of what is there; what is not is left out.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect())
}

/// A subject as the server takes it.
fn subject(pairs: &[(String, String)]) -> Result<Value> {
    super::refuse_repeated(pairs)?;
    let pairs = pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Ok(Value::Object(pairs.collect::<Map<_, _>>()))
}

fn text(text: &Option<String>) -> Option<Value> {
    text.as_deref().map(Value::from)
}

/// A path with its query; what is not asked for is left out.
fn query(path: &str, asked: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in asked {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// A page of rows, or all pages as one.
fn pages(
    client: &Client,
    path: &str,
    asked: &[(&str, Option<&str>)],
    paging: &Paging,
    rows: &str,
) -> Result<Reply> {
    let limit = paging.limit.or(paging.all.then_some(PAGE_ROWS)).map(|limit| limit.to_string());
    let page = |after: Option<&str>| {
        let mut asked = asked.to_vec();
        asked.extend([("limit", limit.as_deref()), ("after", after)]);
        client.get(&query(path, &asked))
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
    }
    all.text = all.json.to_string();
    Ok(all)
}

/// Rows of a page when all pages are wanted: as many as the server gives.
const PAGE_ROWS: u32 = 1_000;
