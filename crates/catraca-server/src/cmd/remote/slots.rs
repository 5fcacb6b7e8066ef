//! `catraca slots`: lists free time, and holds, confirms, moves and cancels bookings.

use anyhow::Result;
use serde_json::{Value, json};

use super::format::{cell, id, instant, rows};
use super::locks::lease_text;
use super::{object, query, show, text};
use crate::args::{SlotsArgs, SlotsVerb};
use crate::client::Client;
use crate::exit::Exit;

/// Runs the verb.
pub fn run(args: &SlotsArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        SlotsVerb::List { calendar, namespace, range, min_length_ms } => {
            let min_length = min_length_ms.map(|millis| millis.to_string());
            let parameters = [
                ("calendar", Some(calendar.as_str())),
                ("from", Some(range.from.as_str())),
                ("to", Some(range.to.as_str())),
                ("namespace", namespace.as_deref()),
                ("tenant", args.tenant.as_deref()),
                ("min_length_ms", min_length.as_deref()),
            ];
            show(output, &client.get(&query("/v1/slots", &parameters))?, calendar_text)?;
        }
        SlotsVerb::Hold { calendar, range, ttl_ms } => {
            let body = object([
                ("tenant", text(&args.tenant)),
                ("calendars", Some(json!(calendar))),
                ("start", Some(range.from.as_str().into())),
                ("end", Some(range.to.as_str().into())),
                ("ttl_ms", ttl_ms.map(Value::from)),
            ]);
            show(output, &client.post("/v1/slots/hold", &body)?, hold_text)?;
        }
        SlotsVerb::Confirm { lease, reacquire_if_free } => {
            let body = json!({ "lease_id": lease, "reacquire_if_free": reacquire_if_free });
            let reply = client.post("/v1/slots/confirm", &body)?;
            show(output, &reply, |slot| format!("confirmed {}", lease_text(slot)))?;
        }
        SlotsVerb::Move { lease, range } => {
            let body = json!({ "lease_id": lease, "start": range.from, "end": range.to });
            let reply = client.post("/v1/slots/move", &body)?;
            show(output, &reply, |slot| format!("moved to {}", lease_text(slot)))?;
        }
        SlotsVerb::Cancel { lease } => {
            let reply = client.post("/v1/slots/cancel", &json!({ "lease_id": lease }))?;
            show(output, &reply, |ended| cell(&ended["outcome"]))?;
            return Ok(if reply.json["released"] == true { Exit::Yes } else { Exit::No });
        }
    }
    Ok(Exit::Yes)
}

fn hold_text(grant: &Value) -> String {
    let until = instant(&grant["expires_at"]);
    format!("held {} until {until}\nlease {}", lease_text(grant), cell(&grant["lease_id"]))
}

fn calendar_text(calendar: &Value) -> String {
    let free = rows(&["free from", "to"], &[], &calendar["free"], "Nothing is free.", |row| {
        vec![instant(&row["start"]), instant(&row["end"])]
    });
    let heads = ["busy from", "to", "state", "fence"];
    let busy = rows(&heads, &[3], &calendar["busy"], "Nothing is taken.", |row| {
        vec![instant(&row["start"]), instant(&row["end"]), cell(&row["state"]), id(&row["fence"])]
    });
    format!("{free}\n\n{busy}")
}
