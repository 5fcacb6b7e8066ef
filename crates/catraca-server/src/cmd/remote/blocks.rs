//! `catraca blocks`: who is blocked, until when, why; and letting them go.

use std::collections::BTreeMap;

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
    let (ids, about) = asked(which)?;
    let found = standing(client, &about, policy)?;
    for id in ids.iter().chain(&found) {
        let body = object([("why", text(why))]);
        let reply = client.send(Method::DELETE, &format!("{PATH}/{id}"), Some(&body))?;
        show(output, &reply, released)?;
    }
    if about.is_empty() || !found.is_empty() {
        return Ok(Exit::Yes);
    }
    let names: Vec<&str> = about.iter().map(|(name, _)| *name).collect();
    tell(format_args!("catraca: nobody with this {} is blocked", plain(&names.join(" and "))));
    Ok(Exit::No)
}

/// Blocks by their numbers, and one caller by their attributes.
#[expect(clippy::type_complexity, reason = "two lists")]
fn asked(which: &[Which]) -> Result<(Vec<u64>, Vec<(&str, &str)>)> {
    let (mut ids, mut about) = (Vec::new(), Vec::<(&str, &str)>::new());
    for one in which {
        match one {
            Which::Id(id) => ids.push(*id),
            Which::About(name, _) if about.iter().any(|(known, _)| known == name) => {
                bail!("{} is given twice; release one caller at a time", plain(name));
            }
            Which::About(name, value) => about.push((name, value)),
        }
    }
    Ok((ids, about))
}

/// The numbers of all blocks of one caller: those that say something of what is given, and nothing
/// against it.
fn standing(client: &Client, about: &[(&str, &str)], policy: Option<&str>) -> Result<Vec<u64>> {
    let lists = about.iter().map(|one| with(client, *one, policy));
    let lists = lists.collect::<Result<Vec<BTreeMap<u64, Value>>>>()?;
    let fits = |id: &u64, row: &Value| {
        let mut each = about.iter().zip(&lists);
        each.all(|((name, _), list)| row["subject"].get(*name).is_none() || list.contains_key(id))
    };
    let all: BTreeMap<&u64, &Value> = lists.iter().flatten().collect();
    Ok(all.into_iter().filter(|(id, row)| fits(id, row)).map(|(id, _)| *id).collect())
}

/// The blocks with one value of one attribute. The server compares, since it may be private.
fn with(
    client: &Client,
    about: (&str, &str),
    policy: Option<&str>,
) -> Result<BTreeMap<u64, Value>> {
    let asked = [("attribute", Some(about.0)), ("value", Some(about.1)), ("policy", policy)];
    let all = Paging { limit: None, after: None, all: true };
    let Reply { json, .. } = pages(client, PATH, &asked, &all, "blocks")?;
    let rows = json["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(rows.iter().filter_map(|row| Some((row["id"].as_u64()?, row.clone()))).collect())
}

fn released(reply: &Value) -> String {
    let block = &reply["block"];
    let mut said = format!(
        "released {} from {} (block {})",
        cell(&block["subject"]),
        cell(&block["policy"]),
        id(&block["id"])
    );
    if block["origin"] == "excess" {
        said += "\nwhat it counted still counts; `catraca reset` forgets that too";
    }
    said
}
