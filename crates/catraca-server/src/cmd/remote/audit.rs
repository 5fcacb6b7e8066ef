//! `catraca audit`: lists the acts of operators.

use anyhow::Result;
use serde_json::Value;

use super::format::{cell, instant, next_page_hint, rows};
use super::{pages, show};
use crate::args::AuditArgs;
use crate::client::Client;
use crate::exit::Exit;

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
    let heads = ["at", "by", "act", "target", "why"];
    let table = rows(&heads, &[], &page["acts"], "No operator did anything.", |row| {
        vec![
            instant(&row["at"]),
            cell(&row["by"]),
            cell(&row["act"]),
            cell(&row["target"]),
            cell(&row["why"]),
        ]
    });
    table + &next_page_hint(page)
}
