//! `catraca audit`: lists the acts of operators.

use anyhow::Result;
use serde_json::Value;

use super::format::{cell, instant, next_page_hint, rows};
use super::{pages, show};
use crate::args::AuditArgs;
use crate::client::Client;
use crate::exit::Exit;

/// Below the acts of a node that does not share its records.
const OTHER_NODES: &str = "\nEvery node has an audit of the acts that it was asked for.";

/// Fetches and prints.
pub fn run(args: &AuditArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let parameters = [
        ("by", args.by.as_deref()),
        ("act", args.act.as_deref()),
        ("namespace", args.namespace.as_deref()),
    ];
    let page = pages(&client, "/v1/audit", &parameters, &args.paging, "acts")?;
    show(args.remote.output, &page, acts_text)?;
    Ok(Exit::Yes)
}

fn acts_text(page: &Value) -> String {
    let heads = ["at", "by", "act", "namespace", "target", "why"];
    let is_of_one_node = page["scope"] == "node";
    let none = match is_of_one_node {
        true => "No operator did anything on this node.",
        false => "No operator did anything.",
    };
    let table = rows(&heads, &[], &page["acts"], none, |row| {
        vec![
            instant(&row["at"]),
            cell(&row["by"]),
            cell(&row["act"]),
            cell(&row["namespace"]),
            cell(&row["target"]),
            cell(&row["why"]),
        ]
    });
    let other_nodes = if is_of_one_node { OTHER_NODES } else { "" };
    table + &next_page_hint(page) + other_nodes
}
