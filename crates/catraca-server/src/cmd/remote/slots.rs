//! `catraca slots`: what is free, holding, confirming, moving and giving back.

use anyhow::Result;
use serde_json::{Value, json};

use super::locks::about;
use super::words::{cell, id, moment, rows};
use super::{object, query, show, text};
use crate::args::{Slots, SlotsVerb};
use crate::client::Client;
use crate::exit::Exit;

/// Does what was asked.
pub fn run(args: &Slots) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        SlotsVerb::List { calendar, range, min_length_ms } => {
            let min_length = min_length_ms.map(|millis| millis.to_string());
            let asked = [
                ("calendar", Some(calendar.as_str())),
                ("from", Some(range.from.as_str())),
                ("to", Some(range.to.as_str())),
                ("tenant", args.tenant.as_deref()),
                ("min_length_ms", min_length.as_deref()),
            ];
            show(output, &client.get(&query("/v1/slots", &asked))?, seen)?;
        }
        SlotsVerb::Hold { calendar, range, ttl_ms } => {
            let body = object([
                ("tenant", text(&args.tenant)),
                ("calendars", Some(json!(calendar))),
                ("start", Some(range.from.as_str().into())),
                ("end", Some(range.to.as_str().into())),
                ("ttl_ms", ttl_ms.map(Value::from)),
            ]);
            show(output, &client.post("/v1/slots/hold", &body)?, held)?;
        }
        SlotsVerb::Confirm { lease, reacquire_if_free } => {
            let body = json!({ "lease_id": lease, "reacquire_if_free": reacquire_if_free });
            let reply = client.post("/v1/slots/confirm", &body)?;
            show(output, &reply, |slot| format!("confirmed {}", about(slot)))?;
        }
        SlotsVerb::Move { lease, range } => {
            let body = json!({ "lease_id": lease, "start": range.from, "end": range.to });
            let reply = client.post("/v1/slots/move", &body)?;
            show(output, &reply, |slot| format!("moved to {}", about(slot)))?;
        }
        SlotsVerb::Cancel { lease } => {
            let reply = client.post("/v1/slots/cancel", &json!({ "lease_id": lease }))?;
            show(output, &reply, |ended| cell(&ended["outcome"]))?;
            return Ok(if reply.json["released"] == true { Exit::Yes } else { Exit::No });
        }
    }
    Ok(Exit::Yes)
}

fn held(grant: &Value) -> String {
    let until = moment(&grant["expires_at"]);
    format!("held {} until {until}\nlease {}", about(grant), cell(&grant["lease_id"]))
}

fn seen(calendar: &Value) -> String {
    let free = rows((&["free from", "to"], &[]), &calendar["free"], "Nothing is free.", |row| {
        vec![moment(&row["start"]), moment(&row["end"])]
    });
    let heads = ["busy from", "to", "state", "fence"];
    let busy = rows((&heads, &[3]), &calendar["busy"], "Nothing is taken.", |row| {
        vec![moment(&row["start"]), moment(&row["end"]), cell(&row["state"]), id(&row["fence"])]
    });
    format!("{free}\n\n{busy}")
}
