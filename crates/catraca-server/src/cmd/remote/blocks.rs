//! `catraca blocks`: who is blocked, until when, why; and letting them go.

use anyhow::{Result, bail};
use axum::http::Method;
use serde_json::Value;

use super::words::{cell, id, moment, more, rows};
use super::{object, pages, show, subject, text};
use crate::args::{Blocks, BlocksVerb, Output, Paging, Which};
use crate::client::{Client, Reply};
use crate::exit::Exit;
use crate::render::{plain, tell};

/// Does what was asked.
pub fn run(args: &Blocks) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        BlocksVerb::List { about, policy, namespace, origin, paging } => {
            let about = about.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
            let asked = [
                ("attribute", about.map(|(name, _)| name)),
                ("value", about.map(|(_, value)| value)),
                ("policy", policy.as_deref()),
                ("namespace", namespace.as_deref()),
                ("origin", origin.as_deref()),
            ];
            show(output, &pages(&client, PATH, &asked, paging, "blocks")?, listed)?;
        }
        BlocksVerb::Add { policy, subject: who, r#for, reason, why } => {
            let order = object([
                ("policy", Some(policy.as_str().into())),
                ("subject", Some(subject(who)?)),
                ("for", Some(r#for.as_str().into())),
                ("reason", text(reason)),
                ("why", text(why)),
            ]);
            show(output, &client.post(PATH, &order)?, added)?;
        }
        BlocksVerb::Release { which, policy, why } => {
            return release(&client, output, which, policy.as_deref(), why);
        }
        BlocksVerb::History { id } => {
            show(output, &client.get(&format!("{PATH}/{id}"))?, history)?;
        }
    }
    Ok(Exit::Yes)
}

const PATH: &str = "/v1/blocks";

fn listed(page: &Value) -> String {
    let heads = ["id", "policy", "subject", "until", "origin", "reason", "by", "since"];
    let table = rows((&heads, &[0]), &page["blocks"], "Nobody is blocked.", |row| {
        vec![
            id(&row["id"]),
            cell(&row["policy"]),
            cell(&row["subject"]),
            moment(&row["until"]),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
            moment(&row["since"]),
        ]
    });
    table + &more(page)
}

fn added(reply: &Value) -> String {
    let heads = ["id", "policy", "subject", "until", "changed"];
    rows((&heads, &[0]), &reply["blocks"], "Nobody was blocked.", |row| {
        let changed = if row["changed"] == true { "yes" } else { "no: it ends later already" };
        vec![
            id(&row["id"]),
            cell(&row["policy"]),
            cell(&row["subject"]),
            moment(&row["until"]),
            changed.to_owned(),
        ]
    })
}

fn history(block: &Value) -> String {
    let standing = if block["standing"] == true { "stands until" } else { "ended at" };
    let head = format!(
        "block {}: {} of {}, {standing} {}",
        id(&block["id"]),
        cell(&block["subject"]),
        cell(&block["policy"]),
        moment(&block["until"])
    );
    let heads = ["at", "act", "until", "origin", "reason", "by"];
    let table = rows((&heads, &[]), &block["history"], "Nothing happened to it.", |row| {
        vec![
            moment(&row["at"]),
            cell(&row["act"]),
            moment(&row["until"]),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
        ]
    });
    format!("{head}\n\n{table}")
}

/// One call per block; whatever was done before a failure has been told by then.
fn release(
    client: &Client,
    output: Output,
    which: &[Which],
    policy: Option<&str>,
    why: &Option<String>,
) -> Result<Exit> {
    let by_id = which.iter().all(|which| matches!(which, Which::Id(_)));
    if by_id && policy.is_some() {
        bail!("--policy narrows ATTRIBUTE=VALUE; a block's number needs no policy");
    }
    let mut exit = Exit::Yes;
    for one in which {
        let ids = match one {
            Which::Id(id) => vec![*id],
            Which::About(name, value) => standing(client, (name, value), policy)?,
        };
        if ids.is_empty() {
            tell(format_args!(
                "catraca: nobody with this value of {} is blocked",
                plain(name(one))
            ));
            exit = Exit::No;
        }
        for id in ids {
            let body = object([("why", text(why))]);
            let reply = client.send(Method::DELETE, &format!("{PATH}/{id}"), Some(&body))?;
            show(output, &reply, released)?;
        }
    }
    Ok(exit)
}

fn name(which: &Which) -> &str {
    match which {
        Which::Id(_) => "id",
        Which::About(name, _) => name,
    }
}

/// The numbers of all blocks of one caller.
fn standing(client: &Client, about: (&str, &str), policy: Option<&str>) -> Result<Vec<u64>> {
    let asked = [("attribute", Some(about.0)), ("value", Some(about.1)), ("policy", policy)];
    let all = Paging { limit: None, after: None, all: true };
    let Reply { json, .. } = pages(client, PATH, &asked, &all, "blocks")?;
    let rows = json["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(rows.iter().filter_map(|row| row["id"].as_u64()).collect())
}

fn released(reply: &Value) -> String {
    let block = &reply["block"];
    format!(
        "released {} from {} (block {})",
        cell(&block["subject"]),
        cell(&block["policy"]),
        id(&block["id"])
    )
}
