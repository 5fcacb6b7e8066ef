//! Parses the verbs that callers use: check, peek, settle and credit.
//!
//! Bounds are not checked here: a scenario may test that the engine refuses a value.

use catraca::Outcome;
use catraca_core::located::{Node, names};
use catraca_core::request::DEFAULT_NAMESPACE;
use serde_json::Value;

use super::super::expectation::json;
use super::super::fields::{Fields, pairs, text};
use super::super::parse::Reader;
use super::{CheckReference, CheckStep, CreditStep, Pairs, SettleStep};

const SUBJECT: &str = "{ ip = \"198.51.100.7\" }";

/// Reads a check or a peek; only a check may have an `outcome`.
pub(super) fn check(reader: &mut Reader<'_>, node: Node<'_>, settles: bool) -> Option<CheckStep> {
    let known = ["gate", "subject", "cost", "ref", "lists", "namespace", "outcome"];
    // `outcome` is the last of the names.
    let known = if settles { &known[..] } else { &known[..6] };
    let fields = Fields::read(&mut reader.report, node, "check", known)?;
    let gate = fields.text(&mut reader.report, "gate", "\"login\"");
    let subject = subject(reader, &fields);
    let cost = cost(reader, &fields);
    let reference = fields.text_or(&mut reader.report, "ref");
    let lists = match fields.get("lists") {
        Some(node) => node.flag(&mut reader.report),
        None => Some(true),
    };
    let namespace = namespace(reader, &fields);
    let outcome = match fields.get("outcome") {
        Some(node) => outcome(reader, node).map(Some),
        None => Some(None),
    };
    Some(CheckStep {
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
pub(super) fn settle(reader: &mut Reader<'_>, node: Node<'_>) -> Option<SettleStep> {
    let known = ["ticket", "ref", "subject", "outcome", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "settle", &known)?;
    let check = check_reference(reader, &fields);
    let node = fields.need(&mut reader.report, "outcome", "{ status = 404 }");
    let outcome = node.and_then(|node| outcome(reader, node));
    let namespace = namespace(reader, &fields);
    Some(SettleStep { namespace: namespace?, check: check?, outcome: outcome? })
}

fn check_reference(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<CheckReference> {
    match (fields.get("ticket"), fields.get("ref"), fields.get("subject")) {
        (Some(node), None, None) => saved_name(reader, node).map(CheckReference::SavedTicket),
        (None, Some(node), Some(_)) => {
            let reference = text(&mut reader.report, node, "a reference such as \"E1\"");
            let subject = subject(reader, fields);
            Some(CheckReference::Reference(reference?.to_owned(), subject?))
        }
        _ => {
            let message = "a settle needs exactly one check";
            let fix = format!("write ticket = \"name\", or ref = \"E1\" with subject = {SUBJECT}");
            reader.report.error("which-check", fields.location, message, fix);
            None
        }
    }
}

/// The name of a ticket that an earlier step saved.
fn saved_name(reader: &mut Reader<'_>, node: Node<'_>) -> Option<String> {
    let name = text(&mut reader.report, node, "the name that `as` gave a ticket")?;
    if !reader.saved_tickets.iter().any(|saved| saved == name) {
        let known: Vec<&str> = reader.saved_tickets.iter().map(String::as_str).collect();
        let message = format!("no earlier step saves a ticket as `{name}`");
        let fix = match known.is_empty() {
            true => format!("add as = \"{name}\" to the step of the check"),
            false => names::suggest(&reader.report, name, &known),
        };
        reader.report.error("unknown-ticket", node.location, message, fix);
        return None;
    }
    Some(name.to_owned())
}

/// Reads a credit.
pub(super) fn credit(reader: &mut Reader<'_>, node: Node<'_>) -> Option<CreditStep> {
    let known = ["ref", "event", "subject", "namespace"];
    let fields = Fields::read(&mut reader.report, node, "credit", &known)?;
    let reference = fields.text(&mut reader.report, "ref", "\"E1\"");
    let event = fields.text(&mut reader.report, "event", "\"payment\"");
    let subject = subject(reader, &fields);
    let namespace = namespace(reader, &fields);
    Some(CreditStep {
        namespace: namespace?,
        reference: reference?,
        event: event?,
        subject: subject?,
    })
}

/// The subject of a call.
pub(super) fn subject(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Pairs> {
    let node = fields.need(&mut reader.report, "subject", SUBJECT)?;
    pairs(&mut reader.report, node, &format!("attributes such as {SUBJECT}"))
}

/// The namespace, or the default one.
pub(super) fn namespace(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let given = fields.text_or(&mut reader.report, "namespace")?;
    Some(given.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()))
}

/// A cost; the engine refuses one that is out of bounds.
fn cost(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<i64>> {
    let Some(node) = fields.get("cost") else { return Some(None) };
    node.integer(&mut reader.report, "a whole number").map(Some)
}

fn outcome(reader: &mut Reader<'_>, node: Node<'_>) -> Option<Outcome> {
    let known = ["status", "body", "json", "headers", "cost"];
    let fields = Fields::read(&mut reader.report, node, "outcome", &known)?;
    let status = match fields.get("status") {
        Some(node) => status(reader, node).map(Some),
        None => Some(None),
    };
    let body = body(reader, &fields);
    let headers = match fields.get("headers") {
        Some(node) => pairs(&mut reader.report, node, "headers such as { retry-after = \"30\" }"),
        None => Some(Vec::new()),
    };
    let cost = cost(reader, &fields);
    let headers = headers?.into_iter().map(|(name, value)| (name.to_lowercase(), value));
    let headers = headers.collect();
    Some(Outcome { status: status?, body: body?, headers, cost: cost?, ..Outcome::default() })
}

fn status(reader: &mut Reader<'_>, node: Node<'_>) -> Option<u16> {
    let read = node.integer(&mut reader.report, "a status such as 404")?;
    let status = u16::try_from(read).ok();
    if status.is_none() {
        let message = format!("`{read}` is not a status");
        reader.report.error("wrong-type", node.location, message, "write a status such as 404");
    }
    status
}

/// A body as a TOML table, or as JSON text, which can contain null.
fn body(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Value> {
    match (fields.get("body"), fields.get("json")) {
        (Some(node), None) => json(&mut reader.report, node),
        (None, Some(node)) => {
            let text = text(&mut reader.report, node, "JSON in quotes")?;
            let read = serde_json::from_str(text);
            read.map_err(|error| {
                let message = format!("not JSON: {error}");
                let fix = "write JSON such as '{\"reject_id\": null}'";
                reader.report.error("bad-json", node.location, message, fix);
            })
            .ok()
        }
        (Some(_), Some(node)) => {
            let message = "`json` beside `body`";
            let fix = "keep one: both are the body";
            reader.report.error("two-bodies", node.location, message, fix);
            None
        }
        (None, None) => Some(Value::Null),
    }
}
