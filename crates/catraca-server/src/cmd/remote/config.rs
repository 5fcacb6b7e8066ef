//! `catraca config` and `catraca whoami`: what is in force, the kill switch, and who is asking.

use anyhow::Result;
use axum::http::Method;
use serde_json::Value;

use super::facts::piece;
use super::words::{cell, rows};
use super::{object, show, text};
use crate::args::{Config, ConfigVerb, Output, Whoami};
use crate::client::{Client, Reply};
use crate::exit::Exit;

/// Does what was asked.
pub fn run(args: &Config) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        ConfigVerb::Show { policy: None } => overview(&client, output)?,
        ConfigVerb::Show { policy: Some(name) } => {
            let reply = client.get(&format!("/v1/policies/{}", piece(name)))?;
            show(output, &reply, fields)?;
        }
        ConfigVerb::Reload { why } => {
            let reply = client.post("/v1/config/reload", &object([("why", text(why))]))?;
            show(output, &reply, fields)?;
        }
        ConfigVerb::Mode { policy, mode, why } => {
            let body = object([
                ("mode", Some(mode.name().map_or(Value::Null, Value::from))),
                ("why", text(why)),
            ]);
            let path = format!("/v1/policies/{}/mode", piece(policy));
            show(output, &client.send(Method::PUT, &path, Some(&body))?, switched)?;
        }
    }
    Ok(Exit::Yes)
}

/// Two calls make one picture; should the catalog change in between, both revisions are shown.
fn overview(client: &Client, output: Output) -> Result<()> {
    let mut config = client.get("/v1/config")?.json;
    let policies = client.get("/v1/policies")?.json;
    if policies["revision"] != config["revision"] {
        config["revision_of_policies"] = policies["revision"].clone();
    }
    config["policies"] = policies["policies"].clone();
    let reply = Reply { text: config.to_string(), json: config };
    show(output, &reply, pictured)
}

fn pictured(config: &Value) -> String {
    let mut parts = vec![format!("revision {}", cell(&config["revision"]))];
    if let Some(default) = config["default"].as_str() {
        parts[0] += &format!(", whatever has no gate meets {}", cell(&default.into()));
    }
    if let Some(waiting) = config["after_restart"].as_array().filter(|all| !all.is_empty()) {
        let waiting: Vec<String> = waiting.iter().map(cell).collect();
        parts.push(format!("from the next start on: {}", waiting.join(", ")));
    }
    let heads = ["policy", "by", "limit", "block", "mode"];
    parts.push(rows((&heads, &[]), &config["policies"], "There is no policy.", |row| {
        let who = if row["each"].is_null() { cell(&row["by"]) } else { each(&row["each"]) };
        vec![cell(&row["policy"]), who, cell(&row["limit"]), cell(&row["block"]), mode(row)]
    }));
    let gates = rows((&["gate", "policies"], &[]), &config["gates"], "", |row| {
        vec![cell(&row["gate"]), cell(&row["policies"])]
    });
    let routes = rows((&["route", "gate"], &[]), &config["routes"], "", |row| {
        vec![cell(&row["match"]), cell(&row["gate"])]
    });
    parts.extend([gates, routes].into_iter().filter(|table| !table.is_empty()));
    parts.join("\n\n")
}

fn each(names: &Value) -> String {
    format!("each of {}", cell(names))
}

fn mode(row: &Value) -> String {
    let overridden = if row["overridden"] == true { " (overridden)" } else { "" };
    format!("{}{overridden}", cell(&row["mode"]))
}

fn switched(reply: &Value) -> String {
    let whose = if reply["overridden"] == true { "overridden" } else { "as the catalog says" };
    format!(
        "{}: {} before, {} now, {whose}",
        cell(&reply["policy"]),
        cell(&reply["before"]),
        cell(&reply["after"])
    )
}

/// Tells who is asking, as the server sees it.
pub fn whoami(args: &Whoami) -> Result<Exit> {
    let reply = Client::new(&args.remote)?.get("/v1/whoami")?;
    show(args.remote.output, &reply, fields)?;
    Ok(Exit::Yes)
}

/// Every field on a line of its own.
fn fields(reply: &Value) -> String {
    let Some(fields) = reply.as_object() else { return cell(reply) };
    let wide = fields.keys().map(|name| name.chars().count()).max().unwrap_or_default();
    let line = |(name, value): (&String, &Value)| {
        let name = cell(&name.as_str().into());
        format!("{name:<wide$}  {}", cell(value))
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}
