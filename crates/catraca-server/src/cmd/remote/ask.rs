//! `catraca check`, `peek`, `settle` and `credit`: what a caller's program does, by hand.

use anyhow::Result;
use serde_json::{Map, Value};

use super::words::{cell, moment, rows, wait};
use super::{object, show, subject, text};
use crate::args::{Check, Credit, Settle};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{Paint, plain};

/// Decides and charges.
pub fn check(args: &Check) -> Result<Exit> {
    ask(args, "/v1/check")
}

/// The same, and nothing is charged.
pub fn peek(args: &Check) -> Result<Exit> {
    ask(args, "/v1/peek")
}

fn ask(args: &Check, path: &str) -> Result<Exit> {
    let body = object([
        ("gate", Some(args.gate.as_str().into())),
        ("subject", Some(subject(&args.subject)?)),
        ("cost", args.cost.map(Value::from)),
        ("ref", text(&args.r#ref)),
        ("lists", args.no_lists.then_some(false.into())),
    ]);
    let reply = Client::new(&args.remote)?.post(path, &body)?;
    show(args.remote.output, &reply, decision)?;
    Ok(Exit::yes_or(reply.json["allowed"] == true, Exit::No))
}

const ROWS: &[&str] =
    &["policy", "says", "limit", "left", "charged", "again in", "full in", "mode"];

fn decision(decision: &Value) -> String {
    let heads = (ROWS, &[2, 3, 4, 5, 6][..]);
    let table = rows(heads, &decision["policies"], "", |row| {
        let attribute = row["attribute"].as_str().map(|name| format!(" ({})", plain(name)));
        vec![
            cell(&row["policy"]) + &attribute.unwrap_or_default(),
            cell(&row["reason"]),
            cell(&row["limit"]),
            // In debt, what is left is less than nothing.
            cell(if row["balance"].is_null() { &row["remaining"] } else { &row["balance"] }),
            cell(&row["charged"]),
            wait(&row["retry_after_ms"]),
            wait(&row["reset_after_ms"]),
            cell(&row["mode"]),
        ]
    });
    let mut parts = vec![verdict(decision)];
    if let Some(message) = decision["message"].as_str() {
        parts.push(format!("message: {}", plain(message)));
    }
    if let Some(ticket) = decision["ticket"].as_str() {
        parts.push(format!("ticket:  {}", plain(ticket)));
    }
    if !table.is_empty() {
        parts.push(format!("\n{table}"));
    }
    parts.join("\n")
}

/// The decision in one line.
fn verdict(decision: &Value) -> String {
    let (allowed, reason) = (decision["allowed"] == true, cell(&decision["reason"]));
    let paint = Paint::for_stdout();
    let mut text = match allowed {
        true => paint.good("allowed").to_string(),
        false => paint.bad("denied").to_string(),
    };
    if reason != "ok" {
        text += &format!(": {reason}");
    }
    if let Some(policy) = decision["policy"].as_str() {
        text += &format!("{} {}", if allowed { ", tightest is" } else { " by" }, plain(policy));
    }
    if !allowed {
        text += &match decision["retry_after_ms"].as_i64() {
            Some(_) => format!("; again in {}", wait(&decision["retry_after_ms"])),
            None => "; no wait helps".to_owned(),
        };
    }
    if !decision["blocked_until"].is_null() {
        text += &format!(", blocked until {}", moment(&decision["blocked_until"]));
    }
    if decision["degraded"] == true {
        text += " (degraded: decided without the store)";
    }
    text
}

/// Tells what came of a check.
pub fn settle(args: &Settle) -> Result<Exit> {
    let headers = args.header.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    let headers: Map<String, Value> = headers.collect();
    let outcome = object([
        ("status", args.status.map(Value::from)),
        ("body", args.body.clone()),
        ("headers", (!headers.is_empty()).then_some(headers.into())),
        ("cost", args.cost.map(Value::from)),
    ]);
    let body = object([
        ("ticket", text(&args.ticket)),
        ("ref", text(&args.r#ref)),
        ("subject", args.r#ref.as_ref().map(|_| subject(&args.subject)).transpose()?),
        ("outcome", Some(outcome)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/settle", &body)?;
    show(args.remote.output, &reply, settled)?;
    Ok(Exit::yes_or(reply.json["state"] != "expired", Exit::No))
}

fn settled(reply: &Value) -> String {
    let state = match reply["state"].as_str() {
        Some("again") => "settled before; this is the first result",
        Some("expired") => "expired: the ticket's time is over, what was held stays charged",
        _ => "settled",
    };
    let heads = (&["policy", "charged", "balance", "blocked until", "reason"][..], &[1, 2][..]);
    let table = rows(heads, &reply["policies"], "", |row| {
        let until = &row["blocked_until"];
        let until = if until.is_null() { "-".to_owned() } else { moment(until) };
        vec![
            cell(&row["policy"]),
            cell(&row["charged"]),
            cell(&row["balance"]),
            until,
            cell(&row["reason"]),
        ]
    });
    if table.is_empty() { state.to_owned() } else { format!("{state}\n\n{table}") }
}

/// Gives back what a late event earns.
pub fn credit(args: &Credit) -> Result<Exit> {
    let body = object([
        ("ref", Some(args.r#ref.as_str().into())),
        ("event", Some(args.event.as_str().into())),
        ("subject", Some(subject(&args.subject)?)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/credit", &body)?;
    show(args.remote.output, &reply, credited)?;
    Ok(Exit::yes_or(reply.json["applied"] == true, Exit::No))
}

fn credited(reply: &Value) -> String {
    if reply["applied"] != true {
        return format!("nothing was given back: {}", cell(&reply["reason"]));
    }
    let heads = (&["policy", "given back"][..], &[1][..]);
    rows(heads, &reply["policies"], "credited", |row| {
        vec![cell(&row["policy"]), cell(&row["amount"])]
    })
}
