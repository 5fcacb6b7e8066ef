//! `catraca locks`: who holds what, until when; and ending it.

use anyhow::Result;
use axum::http::Method;
use serde_json::Value;

use super::words::{cell, id, moment, more, rows};
use super::{object, pages, query, show, text};
use crate::args::{Locks, LocksVerb};
use crate::client::Client;
use crate::exit::Exit;

const PATH: &str = "/v1/locks";

/// Does what was asked.
pub fn run(args: &Locks) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        LocksVerb::List { tenant, kind, prefix, paging } => {
            let asked = [
                ("tenant", tenant.as_deref()),
                ("kind", kind.as_deref()),
                ("prefix", prefix.as_deref()),
            ];
            show(output, &pages(&client, PATH, &asked, paging, "locks")?, listed)?;
        }
        LocksVerb::Release { fence, why, cool_down_ms } => {
            let body = object([
                ("reason", Some(why.as_str().into())),
                ("cool_down_ms", cool_down_ms.map(Value::from)),
            ]);
            let reply = client.send(Method::DELETE, &format!("{PATH}/{fence}"), Some(&body))?;
            show(output, &reply, |lease| format!("ended {}", about(lease)))?;
        }
        LocksVerb::Clear { tenant, why } => {
            let path = query(PATH, &[("tenant", Some(tenant))]);
            let body = object([("reason", text(why))]);
            let reply = client.send(Method::DELETE, &path, Some(&body))?;
            show(output, &reply, |reply| format!("ended {} leases", cell(&reply["cleared"])))?;
        }
        LocksVerb::Stats => show(output, &client.get("/v1/stats/locks")?, counted)?,
    }
    Ok(Exit::Yes)
}

/// What a lease is about, in one line.
pub fn about(lease: &Value) -> String {
    match lease.get("slot") {
        Some(slot) => format!(
            "{} {} to {}",
            cell(&slot["calendars"]),
            moment(&slot["start"]),
            moment(&slot["end"])
        ),
        None => cell(&lease["keys"]),
    }
}

fn listed(page: &Value) -> String {
    let heads = ["fence", "tenant", "kind", "about", "state", "owner", "since", "until"];
    let table = rows((&heads, &[0]), &page["locks"], "Nothing is held.", |row| {
        vec![
            id(&row["fence"]),
            cell(&row["tenant"]),
            cell(&row["kind"]),
            about(row),
            cell(&row["state"]),
            cell(&row["owner_label"]),
            moment(&row["acquired_at"]),
            moment(&row["expires_at"]),
        ]
    });
    table + &more(page)
}

fn counted(stats: &Value) -> String {
    let names = ["total", "success", "conflicts", "active", "released", "expired", "forced"];
    let heads = [&["tenant", "kind"][..], &names[..]].concat();
    let numbers: Vec<usize> = (2..heads.len()).collect();
    let row = |row: &Value| {
        let mut cells = vec![cell(&row["tenant"]), cell(&row["kind"])];
        cells.extend(names.iter().map(|name| cell(&row[*name])));
        cells
    };
    let table = rows((&heads, &numbers), &stats["rows"], "Nobody asked for a lock yet.", row);
    format!("{table}\n\n{} callers wait.", cell(&stats["waiters"]))
}
