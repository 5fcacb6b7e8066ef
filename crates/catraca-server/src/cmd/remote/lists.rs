//! `catraca blocklist` and `catraca allowlist`.

mod import;
mod what;

use anyhow::{Result, bail};
use axum::http::Method;
use serde_json::{Value, json};

use super::words::{cell, id, moment, more, rows};
use super::{pages, show, text};
use crate::args::{Lists, ListsVerb, Output, Terms};
use crate::client::Client;
use crate::exit::Exit;
use crate::render::{counted, plain};

use what::What;

/// One of the two lists.
#[derive(Clone, Copy)]
struct List {
    name: &'static str,
    path: &'static str,
}

/// Does what was asked to the blocklist.
pub fn blocklist(args: &Lists) -> Result<Exit> {
    run(args, List { name: "blocklist", path: "/v1/blocklist" })
}

/// Does what was asked to the allowlist.
pub fn allowlist(args: &Lists) -> Result<Exit> {
    run(args, List { name: "allowlist", path: "/v1/allowlist" })
}

fn run(args: &Lists, list: List) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let output = args.remote.output;
    match &args.verb {
        ListsVerb::List { paging } => {
            show(output, &pages(&client, list.path, &[], paging, "entries")?, listed)?;
        }
        ListsVerb::Add { what, terms } => {
            let entries = read_all(what)?.iter().map(|what| entry(what, terms)).collect();
            show(output, &client.post(list.path, &Value::Array(entries))?, added)?;
        }
        ListsVerb::Remove { what, why } => remove(&client, output, list, what, why)?,
        ListsVerb::Import { file, terms } => {
            return import::run(&client, output, list, file, terms);
        }
    }
    Ok(Exit::Yes)
}

/// Every word, or all that is wrong with them.
fn read_all(words: &[String]) -> Result<Vec<What>> {
    let read: Vec<Result<What, String>> = words.iter().map(|word| What::read(word)).collect();
    let wrong = words.iter().zip(&read).filter_map(|(word, read)| {
        read.as_ref().err().map(|why| format!("  {:?}: {why}", plain(word)))
    });
    let wrong: Vec<String> = wrong.collect();
    if !wrong.is_empty() {
        let entries = counted(wrong.len(), "entry is", "entries are");
        bail!("{entries} wrong, and nothing was sent:\n{}", wrong.join("\n"));
    }
    Ok(read.into_iter().flatten().collect())
}

/// An entry as the server takes it.
fn entry(what: &What, terms: &Terms) -> Value {
    let mut entry = what.json();
    let terms = [
        ("for", text(&terms.r#for)),
        ("until", text(&terms.until)),
        ("reason", text(&terms.reason)),
        ("why", text(&terms.why)),
    ];
    for (name, value) in terms {
        if let Some(value) = value {
            entry[name] = value;
        }
    }
    entry
}

fn listed(page: &Value) -> String {
    let heads = ["id", "entry", "until", "reason", "by", "since"];
    let none = "No entry was made at run time.";
    let mut text = rows((&heads, &[0]), &page["entries"], none, |row| {
        vec![
            id(&row["id"]),
            whom(row),
            moment(&row["until"]),
            cell(&row["reason"]),
            cell(&row["by"]),
            moment(&row["at"]),
        ]
    });
    if let Some(fixed) = page["catalog_entries"].as_u64().filter(|fixed| *fixed > 0) {
        let fixed = counted(usize::try_from(fixed).unwrap_or(usize::MAX), "entry", "entries");
        text += &format!("\n\nand {fixed} of the catalog, to be changed there");
    }
    text + &more(page)
}

fn whom(row: &Value) -> String {
    match row["range"].as_str() {
        Some(range) => plain(range),
        None => format!("{}={}", cell(&row["attribute"]), cell(&row["value"])),
    }
}

fn added(reply: &Value) -> String {
    let heads = ["entry", "until", "reason", "before"];
    rows((&heads, &[]), &reply["entries"], "Nothing was put in.", |row| {
        let before = match &row["before"] {
            Value::Null => "new".to_owned(),
            before => format!("until {}", moment(&before["until"])),
        };
        vec![whom(row), moment(&row["until"]), cell(&row["reason"]), before]
    })
}

/// One call per entry; what was taken out before a failure has been told by then.
fn remove(
    client: &Client,
    output: Output,
    list: List,
    words: &[String],
    why: &Option<String>,
) -> Result<()> {
    for what in read_all(words)? {
        let mut body = what.json();
        if let (Some(why), Some(body)) = (text(why), body.as_object_mut()) {
            body.insert("why".to_owned(), why);
        }
        let reply = client.send(Method::DELETE, list.path, Some(&body))?;
        show(output, &reply, |reply| {
            format!("{} is no longer on the {}", whom(&reply["before"]), list.name)
        })?;
    }
    Ok(())
}

/// A summary of an import.
fn imported(list: List, read: usize, twice: usize, fresh: usize, durable: bool) -> Value {
    let changed = read - fresh;
    json!({
        "list": list.name, "entries": read, "new": fresh, "changed": changed,
        "duplicates": twice, "durable": durable,
    })
}
