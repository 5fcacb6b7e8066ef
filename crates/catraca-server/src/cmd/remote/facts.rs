//! `catraca facts`: lists, sets and removes the facts that select tiers.

use anyhow::Result;
use hyper::http::Method;
use serde_json::Value;

use super::format::{cell, instant, namespace_or_all, next_page_hint, rows};
use super::{object, pages, query, show, subject, text};
use crate::args::{FactsArgs, FactsVerb};
use crate::client::Client;
use crate::exit::Exit;

/// Runs the verb.
pub fn run(args: &FactsArgs) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let reply = match &args.verb {
        FactsVerb::List { namespace, paging } => {
            let only = [("namespace", namespace.as_deref())];
            let page = pages(&client, "/v1/facts", &only, paging, "facts")?;
            show(args.remote.output, &page, list_text)?;
            return Ok(Exit::Yes);
        }
        FactsVerb::Get { about, namespace } => {
            client.get(&query(&path(about), &[("namespace", namespace.as_deref())]))?
        }
        FactsVerb::Set { about, facts, namespace, why } => {
            let facts = Some(subject(facts)?);
            let namespace = text(namespace);
            let body = object([("facts", facts), ("namespace", namespace), ("why", text(why))]);
            client.send(Method::PUT, &path(about), Some(&body))?
        }
        FactsVerb::Remove { about, namespace, why } => {
            let body = object([("namespace", text(namespace)), ("why", text(why))]);
            client.send(Method::DELETE, &path(about), Some(&body))?
        }
    };
    show(args.remote.output, &reply, facts_text)?;
    Ok(Exit::Yes)
}

fn list_text(page: &Value) -> String {
    let heads = ["namespace", "attribute", "value", "name", "fact", "by", "since"];
    let text = rows(&heads, &[], &page["facts"], "No fact was set at run time.", |row| {
        let texts = ["attribute", "value", "name", "fact", "by"].map(|field| cell(&row[field]));
        let namespace = namespace_or_all(&row["namespace"]);
        std::iter::once(namespace).chain(texts).chain([instant(&row["at"])]).collect()
    });
    text + &next_page_hint(page)
}

fn path((attribute, value): &(String, String)) -> String {
    format!("/v1/facts/{}/{}", path_segment(attribute), path_segment(value))
}

/// Encodes a path segment. Form encoding writes a blank as `+`, which is a plus sign in a path.
pub fn path_segment(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

fn facts_text(reply: &Value) -> String {
    match reply.get("after") {
        None => cell(&reply["facts"]),
        Some(after) => {
            let ignored = reply["ignored"].as_object().into_iter().flatten();
            let warnings = ignored.map(|(namespace, facts)| {
                let namespace = cell(&namespace.as_str().into());
                format!(
                    "\nwarning: facts of the namespace {namespace} that are ignored now, because \
                     they have the same name and are about another attribute: {}",
                    cell(facts)
                )
            });
            let unread = reply["unread"].as_array().into_iter().flatten().map(|name| {
                let name = cell(name);
                format!("\nwarning: nothing in the catalog reads the fact {name}; is it misspelt?")
            });
            let warnings: String = warnings.chain(unread).collect();
            format!("before: {}\nafter:  {}{warnings}", cell(&reply["before"]), cell(after))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_no_separators() {
        assert_eq!(path_segment("a b/c+d?é"), "a%20b%2Fc%2Bd%3F%C3%A9");
    }
}
