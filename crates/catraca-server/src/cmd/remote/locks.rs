//! `catraca locks`: acquires, renews, lists and releases leases, and prints lock statistics.

use anyhow::{Result, bail};
use hyper::http::Method;
use serde_json::{Value, json};

use super::format::{cell, id, instant, next_page_hint, rows};
use super::{object, pages, query, show, text};
use crate::args::{LeaseOrFence, LocksArgs, LocksVerb};
use crate::client::Client;
use crate::exit::Exit;

const PATH: &str = "/v1/locks";

/// Runs the verb.
pub fn run(args: &LocksArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        LocksVerb::List { namespace, tenant, kind, prefix, paging } => {
            let parameters = [
                ("namespace", namespace.as_deref()),
                ("tenant", tenant.as_deref()),
                ("kind", kind.as_deref()),
                ("prefix", prefix.as_deref()),
            ];
            show(output, &pages(&client, PATH, &parameters, paging, "locks")?, list_text)?;
        }
        LocksVerb::Acquire { kind, key, tenant, ttl_ms, wait_ms, owner } => {
            let body = object([
                ("kind", Some(kind.as_str().into())),
                ("keys", Some(json!(key))),
                ("tenant", text(tenant)),
                ("ttl_ms", ttl_ms.map(Value::from)),
                ("wait_ms", wait_ms.map(Value::from)),
                ("owner_label", text(owner)),
            ]);
            show(output, &client.post("/v1/locks/acquire", &body)?, grant_text)?;
        }
        LocksVerb::Renew { lease, ttl_ms } => {
            let body = object([
                ("lease_id", Some(lease.as_str().into())),
                ("ttl_ms", ttl_ms.map(Value::from)),
            ]);
            let reply = client.post("/v1/locks/renew", &body)?;
            show(output, &reply, |lease| format!("held until {}", instant(&lease["expires_at"])))?;
        }
        LocksVerb::Release { lease: LeaseOrFence::Lease(id), .. } => {
            let reply = client.post("/v1/locks/release", &json!({ "lease_id": id }))?;
            show(output, &reply, |ended| cell(&ended["outcome"]))?;
            return Ok(if reply.json["released"] == true { Exit::Yes } else { Exit::No });
        }
        LocksVerb::Release { lease: LeaseOrFence::Fence(fence), namespace, why, cool_down_ms } => {
            let Some(why) = why else {
                bail!("an operator who ends the lease of another writes --why to the audit");
            };
            let body = object([
                ("reason", Some(why.as_str().into())),
                ("cool_down_ms", cool_down_ms.map(Value::from)),
            ]);
            let path = query(&format!("{PATH}/{fence}"), &[("namespace", namespace.as_deref())]);
            let reply = client.send(Method::DELETE, &path, Some(&body))?;
            show(output, &reply, |lease| format!("ended {}", lease_text(lease)))?;
        }
        LocksVerb::Clear { tenant, namespace, why } => {
            let parameters =
                [("namespace", namespace.as_deref()), ("tenant", Some(tenant.as_str()))];
            let path = query(PATH, &parameters);
            let body = object([("reason", text(why))]);
            let reply = client.send(Method::DELETE, &path, Some(&body))?;
            show(output, &reply, |reply| format!("ended {} leases", cell(&reply["cleared"])))?;
        }
        LocksVerb::Stats { namespace } => {
            let path = query("/v1/stats/locks", &[("namespace", namespace.as_deref())]);
            show(output, &client.get(&path)?, stats_text)?;
        }
    }
    Ok(Exit::Yes)
}

fn grant_text(grant: &Value) -> String {
    let held = format!("held {} until {}", lease_text(grant), instant(&grant["expires_at"]));
    let fence = id(&grant["fence"]);
    format!("{held}\nlease {}\nfence {fence}", cell(&grant["lease_id"]))
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
    let heads =
        ["fence", "namespace", "tenant", "kind", "about", "state", "owner", "since", "until"];
    let table = rows(&heads, &[0], &page["locks"], "There are no active leases.", |row| {
        vec![
            id(&row["fence"]),
            cell(&row["namespace"]),
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
    let heads = [&["namespace", "tenant", "kind"][..], &names[..]].concat();
    let numbers: Vec<usize> = (3..heads.len()).collect();
    let row = |row: &Value| {
        let mut cells = vec![cell(&row["namespace"]), cell(&row["tenant"]), cell(&row["kind"])];
        cells.extend(names.iter().map(|name| cell(&row[*name])));
        cells
    };
    let table = rows(&heads, &numbers, &stats["rows"], "No lock was requested yet.", row);
    format!("{table}\n\nwaiting callers: {}", cell(&stats["waiters"]))
}
