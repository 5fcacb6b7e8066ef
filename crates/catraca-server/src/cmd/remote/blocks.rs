//! `catraca blocks`: lists and adds blocks, and shows their history.

mod release;

use anyhow::Result;
use serde_json::Value;

use release::Release;

use super::format::{cell, id, instant, next_page_hint, rows};
use super::{object, pages, show, subject, text, warn_incomplete};
use crate::args::{BlockSelector, BlocksArgs, BlocksVerb, Output, PagingArgs};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{eprint_line, sanitize};

/// Runs the verb.
pub fn run(args: &BlocksArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        BlocksVerb::List { about, policy, namespace, origin, reason, state, paging } => {
            let about = about.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
            let parameters = [
                ("attribute", about.map(|(name, _)| name)),
                ("value", about.map(|(_, value)| value)),
                ("policy", policy.as_deref()),
                ("namespace", namespace.as_deref()),
                ("origin", origin.as_deref()),
                ("reason", reason.as_deref()),
                ("state", state.as_deref()),
            ];
            let none = match state.as_deref() {
                None | Some("active") if parameters[1].1.is_some() => NO_BLOCKS_OF_A_CALLER,
                None | Some("active") => "There are no active blocks.",
                Some(_) => "There are no such blocks.",
            };
            let reply = pages(&client, PATH, &parameters, paging, "blocks")?;
            show(output, &reply, |page| list_text(page, none))?;
        }
        BlocksVerb::Add { policy, subject: who, namespace, r#for, reason, why } => {
            let order = object([
                ("namespace", text(namespace)),
                ("policy", Some(policy.as_str().into())),
                ("subject", Some(subject(who)?)),
                ("for", Some(r#for.as_str().into())),
                ("reason", text(reason)),
                ("why", text(why)),
            ]);
            show(output, &client.post(PATH, &order)?, added_text)?;
        }
        BlocksVerb::Release { which, policy, namespace, only, yes, reset, why } => {
            let filters =
                BlockFilters { policy: policy.as_deref(), namespace: namespace.as_deref() };
            let how = Release { only: *only, asks: !*only && !*yes, reset: *reset, why };
            return release::run(&client, output, which, filters, how);
        }
        BlocksVerb::History { which, policy, namespace, paging } => {
            let filters =
                BlockFilters { policy: policy.as_deref(), namespace: namespace.as_deref() };
            return history(&client, output, which, filters, paging);
        }
    }
    Ok(Exit::Yes)
}

const PATH: &str = "/v1/blocks";
/// A caller can be denied without a block.
const NO_BLOCKS_OF_A_CALLER: &str = "There are no active blocks. `catraca inspect` shows whether \
                                     a limit or a list denies this caller.";

/// Which blocks of a subject are meant.
#[derive(Clone, Copy)]
struct BlockFilters<'a> {
    policy: Option<&'a str>,
    namespace: Option<&'a str>,
}

fn list_text(page: &Value, none: &str) -> String {
    let heads = [
        "id",
        "namespace",
        "policy",
        "subject",
        "until",
        "level",
        "origin",
        "reason",
        "by",
        "since",
    ];
    let table = rows(&heads, &[], &page["blocks"], none, |row| {
        vec![
            id(&row["id"]),
            cell(&row["namespace"]),
            cell(&row["policy"]),
            subjects_text(row),
            end_text(row),
            cell(&row["level"]),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
            instant(&row["since"]),
        ]
    });
    table + &next_page_hint(page)
}

/// The subject of a block, and those of the other members of its ban.
fn subjects_text(row: &Value) -> String {
    let members = row["members"].as_array().into_iter().flatten();
    let members = members.map(|member| format!(", {}", cell(&member["subject"])));
    cell(&row["subject"]) + &members.collect::<String>()
}

/// The end of a block; one that has ended, or that denies no request, is marked.
fn end_text(row: &Value) -> String {
    let until = instant(&row["until"]);
    if row["standing"] == false {
        format!("{until} (ended)")
    } else if row["orphaned"].is_string() {
        format!("{until} (orphaned)")
    } else if let Some(mode @ ("off" | "shadow")) = row["mode"].as_str() {
        format!("{until} (mode {mode})")
    } else {
        until
    }
}

fn added_text(reply: &Value) -> String {
    let heads = ["id", "namespace", "policy", "subject", "until", "changed"];
    rows(&heads, &[], &reply["blocks"], "No key was blocked.", |row| {
        let changed =
            if row["changed"] == true { "yes" } else { "no: an existing block ends later" };
        vec![
            id(&row["id"]),
            cell(&row["namespace"]),
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
    filters: BlockFilters<'_>,
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
        ("policy", filters.policy),
        ("namespace", filters.namespace),
        ("state", Some("all")),
    ];
    let page = pages(client, PATH, &parameters, paging, "blocks")?.json;
    let ids: Vec<&str> =
        page["blocks"].as_array().into_iter().flatten().filter_map(id_of).collect();
    for id in &ids {
        let reply = client.get(&format!("{PATH}/{id}"))?;
        show(output, &reply, |block| history_text(block) + "\n\n")?;
    }
    warn_incomplete(&page);
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
        subjects_text(block),
        cell(&block["policy"]),
        instant(&block["until"])
    );
    let heads = ["at", "act", "until", "level", "origin", "reason", "by"];
    let table = rows(&heads, &[], &block["history"], "It has no events.", |row| {
        vec![
            instant(&row["at"]),
            cell(&row["act"]),
            instant(&row["until"]),
            cell(&row["level"]),
            cell(&row["origin"]),
            cell(&row["reason"]),
            cell(&row["by"]),
        ]
    });
    format!("{head}\n\n{table}")
}
