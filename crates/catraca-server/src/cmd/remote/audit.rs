//! `catraca audit`: what operators did.

use anyhow::Result;
use serde_json::Value;

use super::words::{cell, moment, more, rows};
use super::{pages, show};
use crate::args::Audit;
use crate::client::Client;
use crate::exit::Exit;

/// Asks and prints.
pub fn run(args: &Audit) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let asked = [("by", args.by.as_deref()), ("act", args.act.as_deref())];
    let page = pages(&client, "/v1/audit", &asked, &args.paging, "acts")?;
    show(args.remote.output, &page, acts)?;
    Ok(Exit::Yes)
}

fn acts(page: &Value) -> String {
    let heads = ["at", "by", "act", "target", "why"];
    let table = rows((&heads, &[]), &page["acts"], "No operator did anything.", |row| {
        vec![
            moment(&row["at"]),
            cell(&row["by"]),
            cell(&row["act"]),
            cell(&row["target"]),
            cell(&row["why"]),
        ]
    });
    table + &more(page)
}
