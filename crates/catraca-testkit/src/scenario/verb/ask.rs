//! Reading the verbs that callers use: check, peek, settle, credit.
//!
//! Bounds are the engine's to judge: a scenario may ask for what is refused. Must not judge them.

use catraca::Outcome;
use catraca_core::request::DEFAULT_NAMESPACE;
use serde_json::Value;

use super::super::expect::json;
use super::super::names;
use super::super::node::{Fields, Node};
use super::super::read::Reader;
use super::{Ask, Crediting, Pairs, Settling, Stub};

const SUBJECT: &str = "{ ip = \"198.51.100.7\" }";

/// Reads a check or a peek; only a check can be settled.
pub(super) fn ask(reader: &mut Reader<'_>, node: Node<'_>, settles: bool) -> Option<Ask> {
    let known = ["gate", "subject", "cost", "ref", "lists", "namespace", "outcome"];
    let known = if settles { &known[..] } else { &known[..6] };
    let fields = Fields::read(&mut reader.desk, node, "check", known)?;
    let gate = fields.text(&mut reader.desk, "gate", "\"login\"");
    let subject = subject(reader, &fields);
    let cost = cost(reader, &fields);
    let reference = fields.text_or(&mut reader.desk, "ref");
    let lists = match fields.get("lists") {
        Some(node) => node.flag(&mut reader.desk),
        None => Some(true),
    };
    let namespace = namespace(reader, &fields);
    let outcome = match fields.get("outcome") {
        Some(node) => outcome(reader, node).map(Some),
        None => Some(None),
    };
    Some(Ask {
        namespace: namespace?,
        gate: gate?,
        subject: subject?,
        cost: cost?,
        reference: reference?,
        lists: lists?,
        outcome: outcome?,
    })
}

/// Reads a settle.
pub(super) fn settle(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Settling> {
    let known = ["ticket", "ref", "subject", "outcome", "namespace"];
    let fields = Fields::read(&mut reader.desk, node, "settle", &known)?;
    let stub = stub(reader, &fields);
    let told = fields.need(&mut reader.desk, "outcome", "{ status = 404 }");
    let outcome = told.and_then(|node| outcome(reader, node));
    let namespace = namespace(reader, &fields);
    Some(Settling { namespace: namespace?, stub: stub?, outcome: outcome? })
}

fn stub(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Stub> {
    match (fields.get("ticket"), fields.get("ref"), fields.get("subject")) {
        (Some(node), None, None) => kept(reader, node).map(Stub::Kept),
        (None, Some(node), Some(_)) => {
            let reference = node.text(&mut reader.desk, "a reference such as \"E1\"");
            let subject = subject(reader, fields);
            Some(Stub::Reference(reference?.to_owned(), subject?))
        }
        _ => {
            let message = "a settle names one check".to_owned();
            let fix = format!("write ticket = \"name\", or ref = \"E1\" with subject = {SUBJECT}");
            reader.desk.error("which-check", fields.place, message, fix);
            None
        }
    }
}

/// The name of a ticket that an earlier step has kept.
fn kept(reader: &mut Reader<'_>, node: Node<'_>) -> Option<String> {
    let name = node.text(&mut reader.desk, "the name that `as` gave a ticket")?;
    if !reader.kept.iter().any(|kept| kept == name) {
        let known: Vec<&str> = reader.kept.iter().map(String::as_str).collect();
        let message = format!("no step above keeps a ticket as `{name}`");
        let fix = match known.is_empty() {
            true => format!("add as = \"{name}\" to the step of the check"),
            false => names::suggest(name, &known),
        };
        reader.desk.error("unknown-ticket", node.place, message, fix);
        return None;
    }
    Some(name.to_owned())
}

/// Reads a credit.
pub(super) fn credit(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Crediting> {
    let known = ["ref", "event", "subject", "namespace"];
    let fields = Fields::read(&mut reader.desk, node, "credit", &known)?;
    let reference = fields.text(&mut reader.desk, "ref", "\"E1\"");
    let event = fields.text(&mut reader.desk, "event", "\"payment\"");
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    Some(Crediting {
        namespace: namespace?,
        reference: reference?,
        event: event?,
        subject: subject?,
    })
}

/// Whom a verb is about.
pub(super) fn subject(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Pairs> {
    let node = fields.need(&mut reader.desk, "subject", SUBJECT)?;
    node.texts(&mut reader.desk, &format!("attributes such as {SUBJECT}"))
}

/// The namespace, or the one of callers that have none.
pub(super) fn namespace(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let given = fields.text_or(&mut reader.desk, "namespace")?;
    Some(given.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()))
}

/// A cost, which may be out of bounds: that is for the engine to refuse.
fn cost(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<i64>> {
    let Some(node) = fields.get("cost") else { return Some(None) };
    node.integer(&mut reader.desk, i64::MIN).map(Some)
}

fn outcome(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Outcome> {
    let known = ["status", "body", "json", "headers", "cost"];
    let fields = Fields::read(&mut reader.desk, node, "outcome", &known)?;
    let status = match fields.get("status") {
        Some(node) => status(reader, node).map(Some),
        None => Some(None),
    };
    let body = body(reader, &fields);
    let headers = match fields.get("headers") {
        Some(node) => node.texts(&mut reader.desk, "headers such as { retry-after = \"30\" }"),
        None => Some(Vec::new()),
    };
    let cost = cost(reader, &fields);
    let headers = headers?.into_iter().map(|(name, value)| (name.to_lowercase(), value));
    let headers = headers.collect();
    Some(Outcome { status: status?, body: body?, headers, cost: cost?, ..Outcome::default() })
}

fn status(reader: &mut Reader<'_>, node: Node<'_>) -> Option<u16> {
    let read = node.integer(&mut reader.desk, 0)?;
    let status = u16::try_from(read).ok();
    status.or_else(|| node.refuse(&mut reader.desk, "a status such as 404"))
}

/// A body as a table, or as JSON where null matters.
fn body(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Value> {
    match (fields.get("body"), fields.get("json")) {
        (Some(node), None) => json(&mut reader.desk, node),
        (None, Some(node)) => {
            let text = node.text(&mut reader.desk, "JSON in quotes")?;
            let read = serde_json::from_str(text);
            read.map_err(|error| {
                let message = format!("not JSON: {error}");
                let fix = "write JSON such as '{\"reject_id\": null}'".to_owned();
                reader.desk.error("bad-json", node.place, message, fix);
            })
            .ok()
        }
        (Some(_), Some(node)) => {
            let message = "`json` beside `body`".to_owned();
            let fix = "keep one: both are the body".to_owned();
            reader.desk.error("two-bodies", node.place, message, fix);
            None
        }
        (None, None) => Some(Value::Null),
    }
}
