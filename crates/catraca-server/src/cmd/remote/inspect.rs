//! `catraca inspect`: all there is to know of a caller.

use anyhow::Result;
use serde_json::Value;

use super::format::{cell, id, instant, rows, scope_hint};
use super::{object, show, subject, text};
use crate::args::InspectArgs;
use crate::client::Client;
use crate::exit::Exit;

/// Prints policies, the list that decides, facts, active blocks and the last that have ended.
pub fn run(args: &InspectArgs) -> Result<Exit> {
    let body =
        object([("subject", Some(subject(&args.subject)?)), ("namespace", text(&args.namespace))]);
    let reply = Client::new(&args.remote)?.post("/v1/inspect", &body)?;
    show(args.remote.output, &reply, inspection_text)?;
    Ok(Exit::Yes)
}

fn inspection_text(found: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(list) = found["list"].as_str() {
        parts.push(format!("This caller is {list}: policies do not matter."));
        parts.push(entry_text(&found["list_entry"]));
    }
    let heads = ["policy", "limit", "left", "passes", "reason", "blocked until"];
    let none = "No policy applies to these attributes.";
    parts.push(rows(&heads, &[1, 2], &found["policies"], none, |row| {
        let passes = if row["allowed"] == true { "yes" } else { "no" };
        let until = &row["blocked_until"];
        vec![
            cell(&row["policy"]) + &tier_text(&row["tier"]),
            cell(&row["limit"]),
            cell(&row["remaining"]),
            passes.to_owned(),
            cell(&row["reason"]),
            if until.is_null() { String::new() } else { instant(until) },
        ]
    }));
    let facts = found["facts"].as_object().into_iter().flatten();
    let facts: Vec<String> = facts.map(|(name, fact)| format!("{name}={}", cell(fact))).collect();
    if !facts.is_empty() {
        parts.push(format!("facts: {}", facts.join(", ")));
    }
    parts.push(blocks_text(&found["blocks"], "There are no active blocks."));
    if found["more_blocks"] == true {
        let more = "There are more: `catraca blocks list ATTRIBUTE=VALUE --all` lists all of them.";
        parts.push(more.to_owned());
    }
    if found["ended_blocks"].as_array().is_some_and(|ended| !ended.is_empty()) {
        let ended = blocks_text(&found["ended_blocks"], "");
        parts.push(format!("These blocks have ended:\n\n{ended}"));
    }
    parts.join("\n\n") + scope_hint(found)
}

/// What a request needs to be counted in the row of a tier, such as ` (method=POST)`.
fn tier_text(tier: &Value) -> String {
    let Some(tier) = tier.as_object() else { return String::new() };
    let names = tier.iter().map(|(name, values)| {
        let values = values.as_array().into_iter().flatten().map(cell).collect::<Vec<_>>();
        format!("{name}={}", values.join("|"))
    });
    format!(" ({})", names.collect::<Vec<_>>().join(", "))
}

fn blocks_text(blocks: &Value, none: &str) -> String {
    let heads = ["block", "policy", "subject", "until", "origin", "level", "reason", "by"];
    rows(&heads, &[5], blocks, none, |row| {
        vec![
            id(&row["id"]),
            cell(&row["policy"]),
            cell(&row["subject"]),
            instant(&row["until"]),
            cell(&row["origin"]),
            cell(&row["level"]),
            cell(&row["reason"]),
            cell(&row["by"]),
        ]
    })
}

/// The entry that decides, in one line.
fn entry_text(entry: &Value) -> String {
    let target = match entry["range"].as_str() {
        Some(_) => cell(&entry["range"]),
        None => format!("{}={}", cell(&entry["attribute"]), cell(&entry["value"])),
    };
    let until = match entry["until"].is_null() {
        true => "until it is removed".to_owned(),
        false => format!("until {}", instant(&entry["until"])),
    };
    let mut text = format!("entry: {target}, {until}");
    if !entry["namespace"].is_null() {
        text += &format!(", in the namespace {}", cell(&entry["namespace"]));
    }
    if !entry["reason"].is_null() {
        text += &format!(", reason: {}", cell(&entry["reason"]));
    }
    text += match entry["source"].as_str() {
        Some("catalog") => "; it is in a file of the catalog",
        _ => "; added at run time",
    };
    if !entry["by"].is_null() {
        text += &format!(" by {}", cell(&entry["by"]));
    } else if entry["source"] != "catalog" && entry["namespace"].is_null() {
        // Who it was is not shown to the operators of one namespace.
        text += " by an operator of all namespaces";
    }
    if !entry["since"].is_null() {
        text += &format!(" at {}", instant(&entry["since"]));
    }
    text
}
