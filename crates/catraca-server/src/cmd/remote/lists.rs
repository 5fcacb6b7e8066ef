//! `catraca blocklist` and `catraca allowlist`: lists, adds, imports and removes entries.

mod entry_subject;
mod import;

use anyhow::{Result, bail};
use hyper::http::Method;
use serde_json::{Value, json};

use super::format::{cell, id, instant, namespace_or_all, next_page_hint, rows};
use super::{pages, show, text};
use crate::args::{ListEntryArgs, ListsArgs, ListsVerb, Output};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{count_noun, sanitize};

use entry_subject::EntrySubject;

/// One of the two lists, and its path in the API.
#[derive(Clone, Copy)]
struct ListEndpoint {
    name: &'static str,
    path: &'static str,
}

const BLOCKLIST: ListEndpoint = ListEndpoint { name: "blocklist", path: "/v1/blocklist" };

/// Runs a verb on the blocklist.
pub fn blocklist(args: &ListsArgs) -> Result<Exit> {
    run(args, BLOCKLIST)
}

/// Adds entries, each with the line of the file that it comes from, to the blocklist. If the server
/// refuses one, or one is `wrong`, none is added.
pub(in crate::cmd) fn blocklist_entries(
    client: &Client,
    output: Output,
    file: &str,
    entries: Vec<(usize, Value)>,
    wrong: Vec<(usize, String)>,
) -> Result<Exit> {
    import::send(
        client,
        output,
        BLOCKLIST,
        &import::ParsedEntries { file, entries, twice: 0, wrong },
    )
}

/// Runs a verb on the allowlist.
pub fn allowlist(args: &ListsArgs) -> Result<Exit> {
    run(args, ListEndpoint { name: "allowlist", path: "/v1/allowlist" })
}

fn run(args: &ListsArgs, list: ListEndpoint) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        ListsVerb::List { namespace, paging } => {
            let only = [("namespace", namespace.as_deref())];
            show(output, &pages(&client, list.path, &only, paging, "entries")?, list_text)?;
        }
        ListsVerb::Add { what, terms } => {
            let entries = parse_all(what)?.iter().map(|what| entry(what, terms)).collect();
            show(output, &client.post(list.path, &Value::Array(entries))?, added_text)?;
        }
        ListsVerb::Remove { what, namespace, why } => {
            let terms = [("namespace", text(namespace)), ("why", text(why))];
            remove(&client, output, list, what, &terms)?;
        }
        ListsVerb::Import { file, terms } => {
            return import::run(&client, output, list, file, terms);
        }
    }
    Ok(Exit::Yes)
}

/// Parses all entries, or returns one error with all invalid ones.
fn parse_all(words: &[String]) -> Result<Vec<EntrySubject>> {
    let read: Vec<Result<EntrySubject, String>> =
        words.iter().map(|word| EntrySubject::parse(word)).collect();
    let wrong = words.iter().zip(&read).filter_map(|(word, read)| {
        read.as_ref().err().map(|why| format!("  {:?}: {why}", sanitize(word)))
    });
    let wrong: Vec<String> = wrong.collect();
    if !wrong.is_empty() {
        let entries = count_noun(wrong.len(), "entry is", "entries are");
        bail!("{entries} invalid, and nothing was sent:\n{}", wrong.join("\n"));
    }
    Ok(read.into_iter().flatten().collect())
}

/// The JSON object of a new entry.
fn entry(what: &EntrySubject, terms: &ListEntryArgs) -> Value {
    let terms = [
        ("namespace", text(&terms.namespace)),
        ("for", text(&terms.r#for)),
        ("until", text(&terms.until)),
        ("reason", text(&terms.reason)),
        ("why", text(&terms.why)),
    ];
    with_terms(what, &terms)
}

/// The JSON object of an entry with the terms that have a value.
fn with_terms(what: &EntrySubject, terms: &[(&str, Option<Value>)]) -> Value {
    let mut entry = what.json();
    for (name, value) in terms {
        if let Some(value) = value {
            entry[*name] = value.clone();
        }
    }
    entry
}

fn list_text(page: &Value) -> String {
    let heads = ["id", "namespace", "entry", "until", "reason", "by", "since"];
    let none = "No entry was added at run time.";
    let mut text = rows(&heads, &[0], &page["entries"], none, |row| {
        vec![
            id(&row["id"]),
            namespace_or_all(&row["namespace"]),
            subject_text(row),
            instant(&row["until"]),
            cell(&row["reason"]),
            cell(&row["by"]),
            instant(&row["at"]),
        ]
    });
    if let Some(fixed) = page["catalog_entries"].as_u64().filter(|fixed| *fixed > 0) {
        let fixed = count_noun(usize::try_from(fixed).unwrap_or(usize::MAX), "entry", "entries");
        text += &format!("\n\nand {fixed} in the catalog, which can only be changed there");
    }
    text + &next_page_hint(page)
}

fn subject_text(row: &Value) -> String {
    match row["range"].as_str() {
        Some(range) => sanitize(range),
        None => format!("{}={}", cell(&row["attribute"]), cell(&row["value"])),
    }
}

fn added_text(reply: &Value) -> String {
    let heads = ["namespace", "entry", "until", "reason", "before"];
    rows(&heads, &[], &reply["entries"], "No entry was added.", |row| {
        let before = match &row["before"] {
            Value::Null => "new".to_owned(),
            before => format!("until {}", instant(&before["until"])),
        };
        vec![
            namespace_or_all(&row["namespace"]),
            subject_text(row),
            instant(&row["until"]),
            cell(&row["reason"]),
            before,
        ]
    })
}

/// Removes entry by entry, and prints each: after a failure, the output shows what was done.
fn remove(
    client: &Client,
    output: Output,
    list: ListEndpoint,
    words: &[String],
    terms: &[(&str, Option<Value>)],
) -> Result<()> {
    for what in parse_all(words)? {
        let body = with_terms(&what, terms);
        let reply = client.send(Method::DELETE, list.path, Some(&body))?;
        show(output, &reply, |reply| {
            format!("{} is no longer on the {}", subject_text(&reply["before"]), list.name)
        })?;
    }
    Ok(())
}

/// The JSON result of an import.
fn import_json(
    list: ListEndpoint,
    read: usize,
    twice: usize,
    fresh: usize,
    durable: bool,
) -> Value {
    let changed = read - fresh;
    json!({
        "list": list.name, "entries": read, "new": fresh, "changed": changed,
        "duplicates": twice, "durable": durable,
    })
}
