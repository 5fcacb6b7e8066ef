//! `catraca stats`: totals of decisions, and the subjects blocked most often.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use catraca::Time;
use catraca::core::time::parse_span;
use serde_json::Value;

use super::format::{cell, instant, rows, scope_hint};
use super::{query, show};
use crate::args::{StatsArgs, StatsReport};
use crate::client::Client;
use crate::exit::Exit;

/// Fetches and prints.
pub fn run(args: &StatsArgs) -> Result<Exit> {
    let last = args.last.as_deref().map(before_now).transpose()?;
    let from = last.as_deref().or(args.from.as_deref());
    let limit = args.limit.map(|limit| limit.to_string());
    let is_top = args.what == StatsReport::TopBlocked;
    ensure!(
        is_top || limit.is_none(),
        "--limit is for top-blocked; totals have one row per policy"
    );
    ensure!(!is_top || args.to.is_none(), "top-blocked counts up to now; leave --to out");
    let is_period = from.is_some() || args.to.is_some();
    ensure!(
        args.what != StatsReport::Callers || !is_period,
        "callers are counted since the server started; leave the interval out"
    );
    let parameters = [("from", from), ("to", args.to.as_deref()), ("limit", limit.as_deref())];
    let (path, words): (&str, fn(&Value) -> String) = match args.what {
        StatsReport::Totals => ("/v1/stats", |reply| totals(reply, "policy", "policies")),
        StatsReport::Groups => ("/v1/stats", groups),
        StatsReport::Actions => ("/v1/stats/actions", |reply| totals(reply, "action", "actions")),
        StatsReport::TopBlocked => ("/v1/stats/top-blocked", top_blocked),
        StatsReport::Callers => ("/v1/stats/callers", |reply| callers(&reply["callers"])),
    };
    let reply = Client::new(&args.remote)?.get(&query(path, &parameters))?;
    show(args.remote.output, &reply, words)?;
    Ok(Exit::Yes)
}

/// The instant this long ago, by the clock of this machine.
fn before_now(text: &str) -> Result<String> {
    let span = parse_span(text).with_context(|| format!("--last {text:?}"))?;
    ensure!(!span.is_forever(), "--last {text:?}: write a time such as 1h or 7d");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    Ok(now.before(span).to_rfc3339())
}

fn totals(reply: &Value, one: &str, all: &str) -> String {
    let head = format!("from {} to {}", instant(&reply["from"]), instant(&reply["to"]));
    let mut listed = reply[all].as_array().cloned().unwrap_or_default();
    // The sum row counts each request once; requests that a list decides appear only there.
    if reply["total"] != 0 {
        let mut sum = reply.clone();
        sum[one] = "all".into();
        listed.push(sum);
    }
    let heads = [one, "total", "allowed", "denied", "blocked"];
    let table = rows(&heads, &[1, 2, 3, 4], &listed.into(), "There were no decisions.", |row| {
        heads.map(|head| cell(&row[head])).to_vec()
    });
    let callers = callers_below(reply);
    format!("{head}\n\n{table}{}{callers}{}", unlisted_gates(reply), scope_hint(reply))
}

/// The verdicts of the policies of each group. There is no sum: a request counts in each policy.
fn groups(reply: &Value) -> String {
    let period = format!("from {} to {}", instant(&reply["from"]), instant(&reply["to"]));
    let heads = ["group", "total", "allowed", "denied", "blocked"];
    let none = "There were no decisions of policies with a group.";
    let table = rows(&heads, &[1, 2, 3, 4], &reply["groups"], none, |row| {
        heads.map(|head| cell(&row[head])).to_vec()
    });
    format!("{period}\n\n{table}")
}

/// The undeclared gates that checks named, which are often misspelt.
fn unlisted_gates(reply: &Value) -> String {
    let gates = reply["unlisted_gates"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<String> = gates.iter().map(cell).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("\n\nGates that the catalog does not declare: {}", names.join(", ")),
    }
}

/// The table of callers below the totals, if there are any.
fn callers_below(reply: &Value) -> String {
    match reply["callers"].as_array().is_some_and(|callers| !callers.is_empty()) {
        true => format!("\n\nsince the server started\n\n{}", callers(&reply["callers"])),
        false => String::new(),
    }
}

/// Which program uses which gate.
fn callers(listed: &Value) -> String {
    let heads = ["caller", "gate", "namespace", "checks", "denied"];
    rows(&heads, &[3, 4], listed, "No program has sent its name.", |row| {
        heads.map(|head| cell(&row[head])).to_vec()
    })
}

fn top_blocked(reply: &Value) -> String {
    let heads = ["subject", "policy", "namespace", "blocks", "last until"];
    let table = rows(&heads, &[3], &reply["subjects"], "No subject was blocked.", |row| {
        vec![
            cell(&row["subject"]),
            cell(&row["policy"]),
            cell(&row["namespace"]),
            cell(&row["blocks"]),
            instant(&row["last_until"]),
        ]
    });
    format!("since {}\n\n{table}{}", instant(&reply["from"]), scope_hint(reply))
}
