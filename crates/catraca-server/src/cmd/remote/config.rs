//! `catraca config` and `catraca whoami`: the active catalog, the kill switch, and the operator.

use anyhow::Result;
use hyper::http::Method;
use serde_json::Value;

use super::facts::path_segment;
use super::format::{cell, instant, rows};
use super::{object, query, show, text};
use crate::args::{ConfigArgs, ConfigVerb, Output, WhoamiArgs};
use crate::client::{Client, Reply};
use crate::cmd::config_schema;
use crate::exit::Exit;

/// Runs the verb.
pub fn run(args: &ConfigArgs) -> Result<Exit> {
    if matches!(args.verb, ConfigVerb::Schema) {
        return config_schema::run();
    }
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        ConfigVerb::Show { policy: None } => overview(&client, output)?,
        ConfigVerb::Show { policy: Some(name) } => {
            let reply = client.get(&format!("/v1/policies/{}", path_segment(name)))?;
            show(output, &reply, policy_text)?;
        }
        ConfigVerb::Reload { dry_run, why } => {
            let path = query("/v1/config/reload", &[("dry_run", dry_run.then_some("true"))]);
            let reply = client.post(&path, &object([("why", text(why))]))?;
            show(output, &reply, reload_text)?;
        }
        ConfigVerb::Mode { policy, mode, why } => {
            let body = object([
                ("mode", Some(mode.name().map_or(Value::Null, Value::from))),
                ("why", text(why)),
            ]);
            let path = format!("/v1/policies/{}/mode", path_segment(policy));
            show(output, &client.send(Method::PUT, &path, Some(&body))?, mode_text)?;
        }
        // Printed above, without a server.
        ConfigVerb::Schema => {}
    }
    Ok(Exit::Yes)
}

/// Joins two calls; if the catalog changes between them, both revisions are printed.
fn overview(client: &Client, output: Output) -> Result<()> {
    let mut config = client.get("/v1/config")?.json;
    let policies = client.get("/v1/policies")?.json;
    if policies["revision"] != config["revision"] {
        config["revision_of_policies"] = policies["revision"].clone();
    }
    config["policies"] = policies["policies"].clone();
    let reply = Reply { text: config.to_string(), json: config };
    show(output, &reply, overview_text)
}

fn overview_text(config: &Value) -> String {
    let mut parts = vec![format!("revision {}", cell(&config["revision"]))];
    if let Some(default) = config["default"].as_str() {
        parts[0] += &format!(", default policy {}", cell(&default.into()));
    }
    if let Some(waiting) = config["after_restart"].as_array().filter(|all| !all.is_empty()) {
        let names: Vec<String> = waiting.iter().map(cell).collect();
        parts.push(format!("applies after a restart: {}", names.join(", ")));
    }
    let heads = ["policy", "by", "limit", "block", "mode"];
    parts.push(rows(&heads, &[], &config["policies"], "The catalog has no policies.", |row| {
        let who = if row["each"].is_null() { cell(&row["by"]) } else { each(&row["each"]) };
        vec![cell(&row["policy"]), who, cell(&row["limit"]), cell(&row["block"]), mode(row)]
    }));
    let gates = rows(&["gate", "policies"], &[], &config["gates"], "", |row| {
        vec![cell(&row["gate"]), cell(&row["policies"])]
    });
    let routes = rows(&["route", "gate"], &[], &config["routes"], "", |row| {
        vec![cell(&row["match"]), cell(&row["gate"])]
    });
    let [tiers, bans] = tiers_and_bans(config["policies"].as_array().map_or(&[], Vec::as_slice));
    parts.extend([tiers, bans, gates, routes].into_iter().filter(|table| !table.is_empty()));
    parts.join("\n\n")
}

/// The tables of the tiers and of the bans of these policies; empty if there are none.
fn tiers_and_bans(policies: &[Value]) -> [String; 2] {
    // Each row of a table needs the name of its policy.
    let all = |kind: &str| -> Value {
        let rows = policies.iter().flat_map(|policy| {
            let items = policy[kind].as_array().into_iter().flatten();
            items.map(|item| {
                let mut row = item.clone();
                row["policy"] = policy["policy"].clone();
                row
            })
        });
        rows.collect()
    };
    let heads = ["tier of", "when", "limit", "block", "cost"];
    let tiers = rows(&heads, &[], &all("tiers"), "", |row| {
        ["policy", "when", "limit", "block", "cost"].map(|name| cell(&row[name])).to_vec()
    });
    let heads = ["ban of", "reason", "when", "for", "after"];
    let bans = rows(&heads, &[], &all("bans"), "", |row| {
        ["policy", "reason", "when", "for", "after"].map(|name| cell(&row[name])).to_vec()
    });
    [tiers, bans]
}

/// One policy: its fields, and tables of its tiers and bans.
fn policy_text(policy: &Value) -> String {
    let [tiers, bans] = tiers_and_bans(std::slice::from_ref(policy));
    let mut fields = policy.clone();
    for name in ["tiers", "bans"] {
        fields[name] = policy[name].as_array().map_or(0, Vec::len).into();
    }
    let parts = [fields_text(&fields), tiers, bans];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The result of a reload. A revision that was in force before is said first.
fn reload_text(reply: &Value) -> String {
    let fields = fields_text(reply);
    match reply["in_force_since"].is_null() {
        true => fields,
        false => {
            let revision = cell(&reply["revision"]);
            let since = instant(&reply["in_force_since"]);
            format!("revision {revision} is already in force since {since}\n\n{fields}")
        }
    }
}

fn each(names: &Value) -> String {
    format!("each of {}", cell(names))
}

fn mode(row: &Value) -> String {
    let note = if row["overridden"] == true { " (overridden)" } else { "" };
    format!("{}{note}", cell(&row["mode"]))
}

fn mode_text(reply: &Value) -> String {
    let origin = if reply["overridden"] == true { "overridden" } else { "as in the catalog" };
    format!(
        "{}: {} before, {} now, {origin}",
        cell(&reply["policy"]),
        cell(&reply["before"]),
        cell(&reply["after"])
    )
}

/// Prints the operator, role and address that the server sees.
pub fn whoami(args: &WhoamiArgs) -> Result<Exit> {
    let reply = Client::new(&args.remote)?.get("/v1/whoami")?;
    show(args.remote.output, &reply, fields_text)?;
    Ok(Exit::Yes)
}

/// One line per field.
fn fields_text(reply: &Value) -> String {
    let Some(fields) = reply.as_object() else { return cell(reply) };
    let width = fields.keys().map(|name| name.chars().count()).max().unwrap_or_default();
    let line = |(name, value): (&String, &Value)| {
        let name = cell(&name.as_str().into());
        format!("{name:<width$}  {}", cell(value))
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}
