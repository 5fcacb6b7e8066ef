//! `catraca privacy`: all that is known of somebody, to hand out or to erase.

use anyhow::Result;
use serde_json::Value;

use super::words::{cell, id, moment, rows};
use super::{object, show, text};
use crate::args::{Privacy, PrivacyVerb};
use crate::client::Client;
use crate::exit::Exit;

/// Does what was asked.
pub fn run(args: &Privacy) -> Result<Exit> {
    let (path, about, why, words): (_, _, _, fn(&Value) -> String) = match &args.verb {
        PrivacyVerb::Export { about, why } => ("/v1/privacy/export", about, why, exported),
        PrivacyVerb::Erase { about, why, .. } => ("/v1/privacy/erase", about, why, erased),
    };
    let body = object([
        ("attribute", Some(about.0.as_str().into())),
        ("value", Some(about.1.as_str().into())),
        ("why", text(why)),
    ]);
    show(args.remote.output, &Client::new(&args.remote)?.post(path, &body)?, words)?;
    Ok(Exit::Yes)
}

fn exported(reply: &Value) -> String {
    let blocks = rows(
        (&["block", "policy", "since", "until", "reason"], &[0]),
        &reply["blocks"],
        "No block is kept.",
        |row| {
            vec![
                id(&row["id"]),
                cell(&row["policy"]),
                moment(&row["since"]),
                moment(&row["until"]),
                cell(&row["reason"]),
            ]
        },
    );
    let lists = rows((&["list", "until", "reason"], &[]), &reply["lists"], "On no list.", |row| {
        vec![cell(&row["list"]), moment(&row["until"]), cell(&row["reason"])]
    });
    let acts = rows((&["at", "by", "act", "why"], &[]), &reply["acts"], "No act.", |row| {
        vec![moment(&row["at"]), cell(&row["by"]), cell(&row["act"]), cell(&row["why"])]
    });
    let (facts, counters) = (cell(&reply["facts"]), cell(&reply["counters"]));
    format!("{blocks}\n\n{lists}\n\nfacts: {facts}\n\n{acts}\n\n{counters}")
}

fn erased(reply: &Value) -> String {
    format!(
        "erased:   {}\nretained: {}, which still protect somebody\n{}",
        cell(&reply["erased"]),
        cell(&reply["retained"]),
        cell(&reply["counters"])
    )
}
