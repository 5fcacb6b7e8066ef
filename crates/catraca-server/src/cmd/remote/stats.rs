//! `catraca stats`: totals that add up.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use catraca::Time;
use catraca::core::time::parse_span;
use serde_json::Value;

use super::words::{cell, moment, rows};
use super::{query, show};
use crate::args::{Counted, Stats};
use crate::client::Client;
use crate::exit::Exit;

/// Asks and prints.
pub fn run(args: &Stats) -> Result<Exit> {
    let last = args.last.as_deref().map(before_now).transpose()?;
    let from = last.as_deref().or(args.from.as_deref());
    let limit = args.limit.map(|limit| limit.to_string());
    let top = args.what == Counted::TopBlocked;
    ensure!(top || limit.is_none(), "--limit is for top-blocked; totals have a row for each");
    ensure!(!top || args.to.is_none(), "top-blocked counts up to now; leave --to out");
    let asked = [("from", from), ("to", args.to.as_deref()), ("limit", limit.as_deref())];
    let (path, words): (&str, fn(&Value) -> String) = match args.what {
        Counted::Totals => ("/v1/stats", |reply| totals(reply, "policy", "policies")),
        Counted::Actions => ("/v1/stats/actions", |reply| totals(reply, "action", "actions")),
        Counted::TopBlocked => ("/v1/stats/top-blocked", top_blocked),
    };
    let reply = Client::new(&args.remote)?.get(&query(path, &asked))?;
    show(args.remote.output, &reply, words)?;
    Ok(Exit::Yes)
}

/// An instant so long ago, by this machine's clock.
fn before_now(text: &str) -> Result<String> {
    let span = parse_span(text).with_context(|| format!("--last {text:?}"))?;
    ensure!(!span.is_forever(), "--last {text:?}: write a time such as 1h or 7d");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    Ok(now.before(span).to_rfc3339())
}

fn totals(reply: &Value, one: &str, all: &str) -> String {
    let head = format!("from {} to {}", moment(&reply["from"]), moment(&reply["to"]));
    let mut listed = reply[all].as_array().cloned().unwrap_or_default();
    // What a list decides has no policy, and is a request all the same.
    if reply["total"] != 0 {
        let mut sum = reply.clone();
        sum[one] = "all".into();
        listed.push(sum);
    }
    let heads = [one, "total", "allowed", "denied", "blocked"];
    let table = rows((&heads, &[1, 2, 3, 4]), &listed.into(), "Nothing was asked.", |row| {
        heads.map(|head| cell(&row[head])).to_vec()
    });
    format!("{head}\n\n{table}")
}

fn top_blocked(reply: &Value) -> String {
    let heads = ["subject", "policy", "namespace", "blocks", "last until"];
    let table = rows((&heads, &[3]), &reply["subjects"], "Nobody was blocked.", |row| {
        vec![
            cell(&row["subject"]),
            cell(&row["policy"]),
            cell(&row["namespace"]),
            cell(&row["blocks"]),
            moment(&row["last_until"]),
        ]
    });
    format!("since {}\n\n{table}", moment(&reply["from"]))
}
