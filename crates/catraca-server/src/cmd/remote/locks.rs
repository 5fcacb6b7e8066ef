//! `catraca locks`: lists and releases leases, and prints lock statistics.

use anyhow::Result;
use hyper::http::Method;
use serde_json::Value;

use super::format::{cell, id, instant, next_page_hint, rows};
use super::{object, pages, query, show, text};
use crate::args::{LocksArgs, LocksVerb};
use crate::client::Client;
use crate::exit::Exit;

const PATH: &str = "/v1/locks";

/// Runs the verb.
pub fn run(args: &LocksArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        LocksVerb::List { tenant, kind, prefix, paging } => {
            let parameters = [
                ("tenant", tenant.as_deref()),
                ("kind", kind.as_deref()),
                ("prefix", prefix.as_deref()),
            ];
            show(output, &pages(&client, PATH, &parameters, paging, "locks")?, list_text)?;
        }
        LocksVerb::Release { fence, why, cool_down_ms } => {
            let body = object([
                ("reason", Some(why.as_str().into())),
                ("cool_down_ms", cool_down_ms.map(Value::from)),
            ]);
            let reply = client.send(Method::DELETE, &format!("{PATH}/{fence}"), Some(&body))?;
            show(output, &reply, |lease| format!("ended {}", lease_text(lease)))?;
        }
        LocksVerb::Clear { tenant, why } => {
            let path = query(PATH, &[("tenant", Some(tenant))]);
            let body = object([("reason", text(why))]);
            let reply = client.send(Method::DELETE, &path, Some(&body))?;
            show(output, &reply, |reply| format!("ended {} leases", cell(&reply["cleared"])))?;
        }
        LocksVerb::Stats => show(output, &client.get("/v1/stats/locks")?, stats_text)?,
    }
    Ok(Exit::Yes)
}

/// The locked names or the booked time of a lease, in one line.
pub fn lease_text(lease: &Value) -> String {
    match lease.get("slot") {
        Some(slot) => format!(
            "{} {} to {}",
            cell(&slot["calendars"]),
            instant(&slot["start"]),
            instant(&slot["end"])
        ),
        None => cell(&lease["keys"]),
    }
}

fn list_text(page: &Value) -> String {
    let heads = ["fence", "tenant", "kind", "about", "state", "owner", "since", "until"];
    let table = rows(&heads, &[0], &page["locks"], "There are no active leases.", |row| {
        vec![
            id(&row["fence"]),
            cell(&row["tenant"]),
            cell(&row["kind"]),
            lease_text(row),
            cell(&row["state"]),
            cell(&row["owner_label"]),
            instant(&row["acquired_at"]),
            instant(&row["expires_at"]),
        ]
    });
    table + &next_page_hint(page)
}

fn stats_text(stats: &Value) -> String {
    let names = ["total", "success", "conflicts", "active", "released", "expired", "forced"];
    let heads = [&["tenant", "kind"][..], &names[..]].concat();
    let numbers: Vec<usize> = (2..heads.len()).collect();
    let row = |row: &Value| {
        let mut cells = vec![cell(&row["tenant"]), cell(&row["kind"])];
        cells.extend(names.iter().map(|name| cell(&row[*name])));
        cells
    };
    let table = rows(&heads, &numbers, &stats["rows"], "No lock was requested yet.", row);
    format!("{table}\n\nwaiting callers: {}", cell(&stats["waiters"]))
}
