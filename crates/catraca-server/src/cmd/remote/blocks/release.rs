//! `catraca blocks release`: ends blocks, with those that the same ban made.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, stdin};

use anyhow::{Context, Result, bail};
use hyper::http::Method;
use serde_json::Value;

use super::super::format::{cell, id};
use super::super::{object, pages, remaining_text, show, text, warn_incomplete};
use super::{BlockFilters, PATH, id_of, subjects_text};
use crate::args::{BlockSelector, Output, PagingArgs};
use crate::client::{Client, Reply};
use crate::exit::Exit;
use crate::render::{eprint_line, sanitize};

/// How to release.
pub struct Release<'a> {
    /// Only the blocks that were named, not the others of the same ban.
    pub only: bool,
    /// Whether to ask before others of the same ban are released, at a terminal.
    pub asks: bool,
    /// Whether the counters are reset too.
    pub reset: bool,
    /// Why, for the audit.
    pub why: &'a Option<String>,
}

/// Releases block by block, and prints each: after a failure, the output shows what was done.
pub fn run(
    client: &Client,
    output: Output,
    which: &[BlockSelector],
    filters: BlockFilters<'_>,
    how: Release<'_>,
) -> Result<Exit> {
    let by_id = which.iter().all(|which| matches!(which, BlockSelector::Id(_)));
    if by_id && (filters.policy.is_some() || filters.namespace.is_some()) {
        bail!("--policy and --namespace are for ATTRIBUTE=VALUE only; a block's id needs neither");
    }
    let (ids, about) = split_selectors(which)?;
    if !about.is_empty() && filters.namespace.is_none() {
        require_one_namespace(client)?;
    }
    let found = matching_blocks(client, &about, filters)?;
    // A release may end several blocks of one ban; those are not released again.
    let mut released = BTreeSet::new();
    let mut are_counters_reset = true;
    for id in ids.iter().chain(&found) {
        if released.contains(id) {
            continue;
        }
        if how.asks && stdin().is_terminal() && !confirm(client, id)? {
            let left = ids.iter().chain(&found).filter(|id| !released.contains(*id));
            print_refusal(released.len(), left);
            return Ok(Exit::No);
        }
        let only = how.only.then_some(true.into());
        let reset = how.reset.then_some(true.into());
        let body = object([("only", only), ("reset_counters", reset), ("why", text(how.why))]);
        let reply = client.send(Method::DELETE, &format!("{PATH}/{id}"), Some(&body))?;
        show(output, &reply, |reply| released_text(reply, how.reset))?;
        if how.reset && reply.json["counters_reset"] != true {
            are_counters_reset = false;
            let note = sanitize(reply.json["note"].as_str().unwrap_or(RESET_FAILED));
            eprint_line(format_args!("catraca: block {}: {note}", sanitize(id)));
        }
        let members = reply.json["members"].as_array().into_iter().flatten();
        released.insert(id.clone());
        released.extend(members.filter_map(id_of).map(str::to_owned));
    }
    if about.is_empty() || !found.is_empty() {
        return Ok(Exit::yes_or(are_counters_reset, Exit::No));
    }
    let names: Vec<&str> = about.iter().map(|(name, _)| *name).collect();
    eprint_line(format_args!(
        "catraca: no active block matches this {}",
        sanitize(&names.join(" and "))
    ));
    Ok(Exit::No)
}

/// Printed if the server does not say why it has not reset the counters.
const RESET_FAILED: &str = "its counters were not reset; `catraca reset` clears them";

/// Prints which blocks stay after the operator has typed `n`, and how many were released before.
fn print_refusal<'i>(released: usize, left: impl Iterator<Item = &'i String>) {
    let only = "--only releases one block alone";
    if released == 0 {
        eprint_line(format_args!("catraca: nothing was released; {only}"));
        return;
    }
    let left: Vec<&str> = left.map(String::as_str).collect();
    eprint_line(format_args!(
        "catraca: the blocks above were released, {released} in all, and these were not: {}; \
         {only}",
        sanitize(&left.join(", "))
    ));
}

/// Lists the other blocks that a release would end, and asks. Without others it does not ask.
fn confirm(client: &Client, id: &str) -> Result<bool> {
    let block = client.get(&format!("{PATH}/{id}"))?.json;
    if block["members"].as_array().is_none_or(Vec::is_empty) {
        return Ok(true);
    }
    eprint_line(format_args!("one act blocks all of these: {}", subjects_text(&block)));
    eprint_line(format_args!("release all of them? [y/N]"));
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Refuses to release by attributes while it is not clear in which namespace.
fn require_one_namespace(client: &Client) -> Result<()> {
    let reply = client.get("/v1/namespaces")?.json;
    let names = &reply["namespaces"];
    if names.as_array().is_some_and(|names| names.len() > 1) {
        bail!("name the namespace with --namespace; there are {}", cell(names));
    }
    Ok(())
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
    filters: BlockFilters<'_>,
) -> Result<Vec<String>> {
    let lists = about.iter().map(|attribute| blocks_with(client, *attribute, filters));
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
    filters: BlockFilters<'_>,
) -> Result<BTreeMap<String, Value>> {
    let parameters = [
        ("attribute", Some(about.0)),
        ("value", Some(about.1)),
        ("policy", filters.policy),
        ("namespace", filters.namespace),
    ];
    let all = PagingArgs { limit: None, after: None, all: true };
    let Reply { json, .. } = pages(client, PATH, &parameters, &all, "blocks")?;
    warn_incomplete(&json);
    let rows = json["blocks"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(rows.iter().filter_map(|row| Some((id_of(row)?.to_owned(), row.clone()))).collect())
}

fn released_text(reply: &Value, asked_for_reset: bool) -> String {
    let block = &reply["block"];
    let mut text = format!(
        "released {} from {} (block {})",
        cell(&block["subject"]),
        cell(&block["policy"]),
        id(&block["id"])
    );
    for member in reply["members"].as_array().into_iter().flatten() {
        text += &format!(
            "\nand {}, which the same act blocked (block {})",
            cell(&member["subject"]),
            id(&member["id"])
        );
    }
    text += &remaining_text(reply);
    if reply["counters_reset"] == true {
        text += "\nits counters and its escalation level are reset";
    } else if block["origin"] == "excess" && !asked_for_reset {
        text += "\nits counters and its escalation level are unchanged, and a full counter blocks \
                 again at the next check; `--reset` clears both";
    }
    text
}
