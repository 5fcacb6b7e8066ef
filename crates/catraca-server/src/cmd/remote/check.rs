//! `catraca check`, `peek`, `settle` and `credit`.

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::format::{cell, duration, instant, rows};
use super::{object, query, show, subject, text};
use crate::args::{CheckArgs, CreditArgs, SettleArgs};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{Paint, sanitize};

/// Checks and charges.
pub fn check(args: &CheckArgs) -> Result<Exit> {
    if args.namespace.is_some() {
        bail!("--namespace is for peek; a check is counted in the namespace of its key");
    }
    run_check(args, "/v1/check")
}

/// Checks without charging.
pub fn peek(args: &CheckArgs) -> Result<Exit> {
    run_check(args, &query("/v1/peek", &[("namespace", args.namespace.as_deref())]))
}

fn run_check(args: &CheckArgs, path: &str) -> Result<Exit> {
    let body = object([
        ("gate", Some(args.gate.as_str().into())),
        ("subject", Some(subject(&args.subject)?)),
        ("cost", args.cost.map(Value::from)),
        ("ref", text(&args.r#ref)),
        ("lists", args.no_lists.then_some(false.into())),
    ]);
    let reply = Client::new(&args.remote)?.post(path, &body)?;
    show(args.remote.output, &reply, decision_text)?;
    Ok(Exit::yes_or(reply.json["allowed"] == true, Exit::No))
}

const COLUMNS: &[&str] =
    &["policy", "says", "limit", "left", "charged", "again in", "full in", "mode"];

fn decision_text(decision: &Value) -> String {
    let table = rows(COLUMNS, &[2, 3, 4, 5, 6], &decision["policies"], "", |row| {
        let attribute = row["attribute"].as_str().map(|name| format!(" ({})", sanitize(name)));
        vec![
            cell(&row["policy"]) + &attribute.unwrap_or_default(),
            cell(&row["reason"]),
            cell(&row["limit"]),
            // In debt, the balance is negative and `remaining` is 0.
            cell(if row["balance"].is_null() { &row["remaining"] } else { &row["balance"] }),
            cell(&row["charged"]),
            duration(&row["retry_after_ms"]),
            duration(&row["reset_after_ms"]),
            cell(&row["mode"]),
        ]
    });
    let mut parts = vec![verdict(decision)];
    if let Some(message) = decision["message"].as_str() {
        parts.push(format!("message: {}", sanitize(message)));
    }
    if let Some(ticket) = decision["ticket"].as_str() {
        parts.push(format!("ticket:  {}", sanitize(ticket)));
    }
    if !table.is_empty() {
        parts.push(format!("\n{table}"));
    }
    parts.join("\n")
}

/// The decision in one line.
fn verdict(decision: &Value) -> String {
    let allowed = decision["allowed"] == true;
    let reason = cell(&decision["reason"]);
    let paint = Paint::for_stdout();
    let mut text = match allowed {
        true => paint.good("allowed").to_string(),
        false => paint.bad("denied").to_string(),
    };
    if reason != "ok" {
        text += &format!(": {reason}");
    }
    if let Some(policy) = decision["policy"].as_str() {
        text += &format!("{} {}", if allowed { ", tightest is" } else { " by" }, sanitize(policy));
    }
    if !allowed {
        text += &match decision["retry_after_ms"].as_i64() {
            Some(_) => format!("; again in {}", duration(&decision["retry_after_ms"])),
            None => "; retrying does not help".to_owned(),
        };
    }
    if !decision["blocked_until"].is_null() {
        text += &format!(", blocked until {}", instant(&decision["blocked_until"]));
    }
    if decision["degraded"] == true {
        text += " (degraded: decided without the store)";
    }
    text
}

/// Reports the outcome of a check.
pub fn settle(args: &SettleArgs) -> Result<Exit> {
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
    show(args.remote.output, &reply, settlement_text)?;
    Ok(Exit::yes_or(reply.json["state"] != "expired", Exit::No))
}

fn settlement_text(reply: &Value) -> String {
    let state = match reply["state"].as_str() {
        Some("again") => "settled before; this is the first result",
        Some("expired") => "expired: the ticket has expired, and the held units stay charged",
        _ => "settled",
    };
    let heads = ["policy", "charged", "balance", "blocked until", "reason"];
    let table = rows(&heads, &[1, 2], &reply["policies"], "", |row| {
        let until = &row["blocked_until"];
        let until = if until.is_null() { "-".to_owned() } else { instant(until) };
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

/// Reports a later event that gives units back.
pub fn credit(args: &CreditArgs) -> Result<Exit> {
    let body = object([
        ("ref", Some(args.r#ref.as_str().into())),
        ("event", Some(args.event.as_str().into())),
        ("subject", Some(subject(&args.subject)?)),
    ]);
    let reply = Client::new(&args.remote)?.post("/v1/credit", &body)?;
    show(args.remote.output, &reply, credit_text)?;
    Ok(Exit::yes_or(reply.json["applied"] == true, Exit::No))
}

fn credit_text(reply: &Value) -> String {
    if reply["applied"] != true {
        return format!("nothing was given back: {}", cell(&reply["reason"]));
    }
    rows(&["policy", "given back"], &[1], &reply["policies"], "credited", |row| {
        vec![cell(&row["policy"]), cell(&row["amount"])]
    })
}
