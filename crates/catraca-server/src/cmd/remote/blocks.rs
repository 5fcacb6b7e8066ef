//! `catraca blocks`: lists, adds and releases blocks.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hyper::http::Method;
use serde_json::Value;

use super::format::{cell, id, instant, next_page_hint, rows};
use super::{object, pages, show, subject, text};
use crate::args::{BlockSelector, BlocksArgs, BlocksVerb, Output, PagingArgs};
use crate::client::{Client, Reply};
use crate::exit::Exit;
use crate::render::{eprint_line, sanitize};

/// Runs the verb.
pub fn run(args: &BlocksArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        BlocksVerb::List { about, policy, namespace, origin, state, paging } => {
            let about = about.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
            let parameters = [
                ("attribute", about.map(|(name, _)| name)),
                ("value", about.map(|(_, value)| value)),
                ("policy", policy.as_deref()),
                ("namespace", namespace.as_deref()),
                ("origin", origin.as_deref()),
                ("state", state.as_deref()),
            ];
            let none = match state.as_deref() {
                None | Some("active") => "There are no active blocks.",
                Some(_) => "There are no such blocks.",
            };
            let reply = pages(&client, PATH, &parameters, paging, "blocks")?;
            show(output, &reply, |page| list_text(page, none))?;
        }
        BlocksVerb::Add { policy, subject: who, r#for, reason, why } => {
            let order = object([
                ("policy", Some(policy.as_str().into())),
                ("subject", Some(subject(who)?)),
                ("for", Some(r#for.as_str().into())),
                ("reason", text(reason)),
                ("why", text(why)),
            ]);
            show(output, &client.post(PATH, &order)?, added_text)?;
        }
        BlocksVerb::Release { which, policy, why } => {
            return release(&client, output, which, policy.as_deref(), why);
        }
        BlocksVerb::History { which, policy, paging } => {
            return history(&client, output, which, policy.as_deref(), paging);
        }
    }
    Ok(Exit::Yes)
}

const PATH: &str = "/v1/blocks";

fn list_text(page: &Value, none: &str) -> String {
    let heads = ["id", "policy", "subject", "until", "origin", "reason", "by", "since"];
    let table = rows(&heads, &[], &page["blocks"], none, |row| {
        vec![
            id(&row["id"]),
            cell(&row["policy"]),
            cell(&row["subject"]),
            end_text(row),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
            instant(&row["since"]),
        ]
    });
    table + &next_page_hint(page)
}

/// The end of a block; an ended one is marked.
fn end_text(row: &Value) -> String {
    let until = instant(&row["until"]);
    if row["standing"] == false { format!("{until} (ended)") } else { until }
}

fn added_text(reply: &Value) -> String {
    let heads = ["id", "policy", "subject", "until", "changed"];
    rows(&heads, &[], &reply["blocks"], "No key was blocked.", |row| {
        let changed =
            if row["changed"] == true { "yes" } else { "no: an existing block ends later" };
        vec![
            id(&row["id"]),
            cell(&row["policy"]),
            cell(&row["subject"]),
            instant(&row["until"]),
            changed.to_owned(),
        ]
    })
}

/// Shows one block, or block by block those of a page.
fn history(
    client: &Client,
    output: Output,
    which: &BlockSelector,
    policy: Option<&str>,
    paging: &PagingArgs,
) -> Result<Exit> {
    let (name, value) = match which {
        BlockSelector::Id(id) => {
            show(output, &client.get(&format!("{PATH}/{id}"))?, history_text)?;
            return Ok(Exit::Yes);
        }
        BlockSelector::About(name, value) => (name, value),
    };
    let parameters = [
        ("attribute", Some(name.as_str())),
        ("value", Some(value.as_str())),
        ("policy", policy),
        ("state", Some("all")),
    ];
    let page = pages(client, PATH, &parameters, paging, "blocks")?.json;
    let ids: Vec<&str> =
        page["blocks"].as_array().into_iter().flatten().filter_map(id_of).collect();
    for id in &ids {
        let reply = client.get(&format!("{PATH}/{id}"))?;
        show(output, &reply, |block| history_text(block) + "\n\n")?;
    }
    if ids.is_empty() {
        eprint_line(format_args!("catraca: the history has no block of this {}", sanitize(name)));
        return Ok(Exit::No);
    }
    if let Some(next) = page["next"].as_str() {
        eprint_line(format_args!("more: --after {}, or --all", sanitize(next)));
    }
    Ok(Exit::Yes)
}

fn id_of(row: &Value) -> Option<&str> {
    row["id"].as_str()
}

fn history_text(block: &Value) -> String {
    let state = if block["standing"] == true { "active until" } else { "ended at" };
    let head = format!(
        "block {}: {} of {}, {state} {}",
        id(&block["id"]),
        cell(&block["subject"]),
        cell(&block["policy"]),
        instant(&block["until"])
    );
    let heads = ["at", "act", "until", "origin", "reason", "by"];
    let table = rows(&heads, &[], &block["history"], "It has no events.", |row| {
        vec![
            instant(&row["at"]),
            cell(&row["act"]),
            instant(&row["until"]),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
        ]
    });
    format!("{head}\n\n{table}")
}

/// Releases block by block, and prints each: after a failure, the output shows what was done.
fn release(
    client: &Client,
    output: Output,
    which: &[BlockSelector],
    policy: Option<&str>,
    why: &Option<String>,
) -> Result<Exit> {
    let by_id = which.iter().all(|which| matches!(which, BlockSelector::Id(_)));
    if by_id && policy.is_some() {
        bail!("--policy is for ATTRIBUTE=VALUE only; a block's id needs no policy");
    }
    let (ids, about) = split_selectors(which)?;
    let found = matching_blocks(client, &about, policy)?;
    for id in ids.iter().chain(&found) {
        let body = object([("why", text(why))]);
        let reply = client.send(Method::DELETE, &format!("{PATH}/{id}"), Some(&body))?;
        show(output, &reply, released_text)?;
    }
    if about.is_empty() || !found.is_empty() {
        return Ok(Exit::Yes);
    }
    let names: Vec<&str> = about.iter().map(|(name, _)| *name).collect();
    eprint_line(format_args!(
        "catraca: no active block matches this {}",
        sanitize(&names.join(" and "))
    ));
    Ok(Exit::No)
}

/// Splits the selectors into block ids and the attributes of one caller.
#[expect(clippy::type_complexity, reason = "two lists")]
fn split_selectors(which: &[BlockSelector]) -> Result<(Vec<String>, Vec<(&str, &str)>)> {
    let mut ids = Vec::new();
    let mut about = Vec::<(&str, &str)>::new();
    for selector in which {
        match selector {
            BlockSelector::Id(id) => ids.push(id.clone()),
            BlockSelector::About(name, _) if about.iter().any(|(known, _)| known == name) => {
                bail!("{} is given twice; release one caller at a time", sanitize(name));
            }
            BlockSelector::About(name, value) => about.push((name, value)),
        }
    }
    Ok((ids, about))
}

/// The ids of the active blocks of one caller: blocks whose subject has at least one of the given
/// attributes, and no other value for any of them.
fn matching_blocks(
    client: &Client,
    about: &[(&str, &str)],
    policy: Option<&str>,
) -> Result<Vec<String>> {
    let lists = about.iter().map(|attribute| blocks_with(client, *attribute, policy));
    let lists = lists.collect::<Result<Vec<BTreeMap<String, Value>>>>()?;
    // A block fits if each given attribute is missing in its subject, or matches there.
    let fits = |id: &String, row: &Value| {
        let mut each = about.iter().zip(&lists);
        each.all(|((name, _), list)| row["subject"].get(*name).is_none() || list.contains_key(id))
    };
    let all: BTreeMap<&String, &Value> = lists.iter().flatten().collect();
    Ok(all.into_iter().filter(|(id, row)| fits(id, row)).map(|(id, _)| id.clone()).collect())
}

/// The active blocks with one attribute value. The server compares the values, because a private
/// one is shown as a pseudonym only.
fn blocks_with(
    client: &Client,
    about: (&str, &str),
    policy: Option<&str>,
) -> Result<BTreeMap<String, Value>> {
    let parameters = [("attribute", Some(about.0)), ("value", Some(about.1)), ("policy", policy)];
    let all = PagingArgs { limit: None, after: None, all: true };
    let Reply { json, .. } = pages(client, PATH, &parameters, &all, "blocks")?;
    let rows = json["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(rows.iter().filter_map(|row| Some((id_of(row)?.to_owned(), row.clone()))).collect())
}

fn released_text(reply: &Value) -> String {
    let block = &reply["block"];
    let mut text = format!(
        "released {} from {} (block {})",
        cell(&block["subject"]),
        cell(&block["policy"]),
        id(&block["id"])
    );
    if block["origin"] == "excess" {
        text +=
            "\nits counters and its escalation level are unchanged; `catraca reset` clears both";
    }
    text
}
