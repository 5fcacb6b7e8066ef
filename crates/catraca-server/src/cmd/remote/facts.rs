//! `catraca facts`: categories, plans, known tokens.

use anyhow::Result;
use axum::http::Method;
use serde_json::Value;

use super::words::{cell, moment, more, rows};
use super::{object, pages, show, subject, text};
use crate::args::{Facts, FactsVerb};
use crate::client::Client;
use crate::exit::Exit;

/// Does what was asked.
pub fn run(args: &Facts) -> Result<Exit> {
    let client = Client::new(&args.remote)?;
    let reply = match &args.verb {
        FactsVerb::List { paging } => {
            let page = pages(&client, "/v1/facts", &[], paging, "facts")?;
            show(args.remote.output, &page, listed)?;
            return Ok(Exit::Yes);
        }
        FactsVerb::Get { about } => client.get(&path(about))?,
        FactsVerb::Set { about, facts, why } => {
            let body = object([("facts", Some(subject(facts)?)), ("why", text(why))]);
            client.send(Method::PUT, &path(about), Some(&body))?
        }
        FactsVerb::Remove { about, why } => {
            let body = object([("why", text(why))]);
            client.send(Method::DELETE, &path(about), Some(&body))?
        }
    };
    show(args.remote.output, &reply, words)?;
    Ok(Exit::Yes)
}

fn listed(page: &Value) -> String {
    let heads = ["attribute", "value", "name", "fact", "by", "since"];
    let text = rows((&heads, &[]), &page["facts"], "No fact was stated at run time.", |row| {
        let texts = ["attribute", "value", "name", "fact", "by"].map(|field| cell(&row[field]));
        texts.into_iter().chain([moment(&row["at"])]).collect()
    });
    text + &more(page)
}

fn path((attribute, value): &(String, String)) -> String {
    format!("/v1/facts/{}/{}", piece(attribute), piece(value))
}

/// A piece of a path: a query's encoding, but for the blank, which is a plus only there.
pub fn piece(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

fn words(reply: &Value) -> String {
    match reply.get("after") {
        None => cell(&reply["facts"]),
        Some(after) => format!("before: {}\nafter:  {}", cell(&reply["before"]), cell(after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_path_is_one_piece() {
        assert_eq!(piece("a b/c+d?é"), "a%20b%2Fc%2Bd%3F%C3%A9");
    }
}
