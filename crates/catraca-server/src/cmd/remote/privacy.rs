//! `catraca privacy`: exports or erases the data stored about a person.

use anyhow::Result;
use serde_json::Value;

use super::format::{cell, id, instant, namespace_or_all, rows, scope_hint};
use super::{object, show, text};
use crate::args::{PrivacyArgs, PrivacyVerb};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::sanitize;

/// Runs the verb.
pub fn run(args: &PrivacyArgs) -> Result<Exit> {
    let (path, about, why, words): (_, _, _, fn(&Value) -> String) = match &args.verb {
        PrivacyVerb::Export { about, why } => ("/v1/privacy/export", about, why, export_text),
        PrivacyVerb::Erase { about, why, .. } => ("/v1/privacy/erase", about, why, erase_text),
    };
    let body = object([
        ("attribute", Some(about.0.as_str().into())),
        ("value", Some(about.1.as_str().into())),
        ("why", text(why)),
    ]);
    show(args.remote.output, &Client::new(&args.remote)?.post(path, &body)?, words)?;
    Ok(Exit::Yes)
}

fn export_text(reply: &Value) -> String {
    let blocks = rows(
        &["block", "namespace", "policy", "since", "until", "reason"],
        &[0],
        &reply["blocks"],
        "No blocks are stored.",
        |row| {
            vec![
                id(&row["id"]),
                cell(&row["namespace"]),
                cell(&row["policy"]),
                instant(&row["since"]),
                instant(&row["until"]),
                cell(&row["reason"]),
            ]
        },
    );
    let heads = ["list", "namespace", "until", "reason"];
    let lists = rows(&heads, &[], &reply["lists"], "Not on a list.", |row| {
        vec![
            cell(&row["list"]),
            namespace_or_all(&row["namespace"]),
            instant(&row["until"]),
            cell(&row["reason"]),
        ]
    });
    let heads = ["at", "by", "act", "namespace", "why"];
    let acts = rows(&heads, &[], &reply["acts"], "No acts.", |row| {
        vec![
            instant(&row["at"]),
            cell(&row["by"]),
            cell(&row["act"]),
            cell(&row["namespace"]),
            cell(&row["why"]),
        ]
    });
    let mut facts = format!("facts: {}", cell(&reply["facts"]));
    for (namespace, own) in reply["namespace_facts"].as_object().into_iter().flatten() {
        facts += &format!("\nfacts in {}: {}", sanitize(namespace), cell(own));
    }
    let counters = cell(&reply["counters"]);
    let scope = scope_hint(reply);
    format!("{blocks}\n\n{lists}\n\n{facts}\n\n{acts}\n\n{counters}{scope}")
}

fn erase_text(reply: &Value) -> String {
    let erased = cell(&reply["erased"]);
    let retained = cell(&reply["retained"]);
    let counters = cell(&reply["counters"]);
    let mut text = format!("erased:   {erased}\nretained: {retained}\n{counters}");
    let mut counts = reply["retained"].as_object().into_iter().flat_map(|counts| counts.values());
    if counts.any(|count| count.as_u64() > Some(0)) {
        text += "\nwhat is retained is still active: release the blocks, remove the list entries \
                 and reset the debts of this value, then erase again";
    }
    text
}
