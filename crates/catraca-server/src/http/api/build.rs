//! The document itself: every row of the table joined with its entry.
//!
//! Must be the same on every run, and must leave nothing out: a row without an entry, or an entry
//! without a row, is found by a test.

mod answers;
mod parts;
mod shared;

use std::sync::OnceLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::super::roles::{Access, ROLES, ROWS, Role, Row};
use super::{Entry, Group, Takes, calls, example, shapes};

const DEFINITIONS: &str = "/components/schemas";

/// What OpenAPI lets a path take.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

const GROUPS: [(Group, &str, &str); 8] = [
    (Group::Decide, "Decide", "May this caller pass now, what does it cost, and what came of it."),
    (Group::States, "Bucket states", "What buckets hold."),
    (Group::Locks, "Locks and slots", "Leases on names and on ranges of time, with fences."),
    (Group::Catalog, "Catalog", "The policies in force, their modes, and what is known of values."),
    (Group::Operate, "Operate", "Blocks, the blocklist, the allowlist, and reset."),
    (Group::Look, "Look", "Totals, the audit, and the live feed."),
    (Group::Privacy, "Privacy", "What is kept of somebody."),
    (Group::About, "About", "What the server says of itself."),
];

const INTRODUCTION: &str = "One turnstile for any API: may this caller pass now, what does it \
    cost, and what happens when they misbehave? A denial is a decision like any other and is \
    answered with 200; errors are problem+json, each with a `code` that stays and a `type` that \
    is a page about it. Unknown fields are refused.";

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| Builder::new().build())
}

/// The entry of a row's method.
fn entry(row: &Row, method: &str) -> Option<&'static Entry> {
    let method = if row.methods.is_empty() { "ANY" } else { method };
    calls::all().find(|entry| entry.request.split_once(' ') == Some((method, row.path)))
}

/// The methods of a row, as the document lists them.
fn methods(row: &'static Row) -> &'static [&'static str] {
    if row.methods.is_empty() { &METHODS } else { row.methods }
}

/// What is read and what is sent have contracts of their own: a field that may be left out of the
/// one is always there in the other.
struct Builder {
    read: SchemaGenerator,
    sent: SchemaGenerator,
}

impl Builder {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = DEFINITIONS.into();
                settings.meta_schema = None;
            })
        };
        let read = settings().for_deserialize().into_generator();
        let sent = settings().for_serialize().into_generator();
        Self { read, sent }
    }

    fn build(mut self) -> Value {
        let mut paths = Map::new();
        for row in &ROWS {
            for method in methods(row) {
                let Some(entry) = entry(row, method) else { continue };
                let operation = self.operation(row, entry, method);
                paths.entry(row.template()).or_insert_with(|| json!({}))
                    [method.to_ascii_lowercase()] = operation;
            }
        }
        self.sent.subschema_for::<shapes::Problem>();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Catraca",
                "version": env!("CARGO_PKG_VERSION"),
                "description": INTRODUCTION,
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "tags": GROUPS.map(|(_, name, about)| json!({ "name": name, "description": about })),
            "paths": paths,
            "components": {
                "securitySchemes": security_schemes(),
                "examples": answers::examples(),
                "schemas": self.schemas(),
            },
        });
        shared::gather(&mut document);
        with_examples(document)
    }

    fn operation(&mut self, row: &Row, entry: &Entry, method: &str) -> Value {
        let mut operation = json!({
            "operationId": named(row, entry, method),
            "tags": [group(entry.group)],
            "summary": entry.summary,
            "description": described(row, entry),
            "security": security(row),
            "parameters": parts::parameters(row, entry),
        });
        let taken = match entry.takes {
            Takes::Nothing => None,
            Takes::Body(of) => Some((of(&mut self.read), true)),
            Takes::Maybe(of) => Some((of(&mut self.read), false)),
        };
        if let Some((schema, required)) = taken {
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "required": required, "content": content });
        }
        operation["responses"] = answers::all(&mut self.sent, row, entry);
        operation
    }

    /// Every schema by its name, those that are sent closed: what is not here is not sent.
    fn schemas(mut self) -> Value {
        let mut all = self.read.take_definitions(true);
        for (name, mut schema) in self.sent.take_definitions(true) {
            if schema.get("properties").is_some() {
                schema["additionalProperties"] = false.into();
            }
            all.insert(name, schema);
        }
        let mut all = Value::Object(all);
        unwrap_lines(&mut all);
        all
    }
}

fn named(row: &Row, entry: &Entry, method: &str) -> String {
    let any = row.methods.is_empty().then(|| format!("_{}", method.to_ascii_lowercase()));
    format!("{}{}", entry.name, any.unwrap_or_default())
}

fn group(group: Group) -> &'static str {
    GROUPS.iter().find(|(other, ..)| *other == group).map_or("", |(_, name, _)| name)
}

fn described(row: &Row, entry: &Entry) -> String {
    let who = match role(row) {
        _ if row.access == Access::Metrics => {
            "Needs a key of role `read`, or none with `[auth] metrics = \"open\"`.".to_owned()
        }
        None => "Needs no key.".to_owned(),
        Some(role) => format!("Needs a key of role `{role}` or a greater one."),
    };
    if entry.about.is_empty() { who } else { format!("{}\n\n{who}", entry.about) }
}

/// The least role that a row needs.
fn role(row: &Row) -> Option<&'static str> {
    let least = match row.access {
        Access::Open => return None,
        Access::Metrics => Role::Read,
        Access::Least(least) => least,
    };
    ROLES.iter().find(|(_, role)| *role == least).map(|(name, _)| *name)
}

fn security(row: &Row) -> Value {
    role(row).map_or(json!([]), |role| json!([{ "bearer": [role] }, { "own": [role] }]))
}

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of `catraca keygen`. Its role is `read`, `check` or `admin`, \
                            each with all that those before it may. A server without keys \
                            listens on loopback alone and asks for none.",
        },
        "own": {
            "type": "apiKey",
            "in": "header",
            "name": "Catraca-Key",
            "description": "The same key, where `Authorization` is that of the request asked \
                            about.",
        },
    })
}

/// Lines of a doc comment are one text.
fn unwrap_lines(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            map.values_mut().for_each(unwrap_lines);
        }
        Value::Array(list) => list.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}

/// Every body gets an example, made of its schema.
fn with_examples(mut document: Value) -> Value {
    let whole = document.clone();
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    let calls = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for call in calls {
        if let Some(body) = call.get_mut("requestBody") {
            exemplify(body, &whole);
        }
        let answers = call["responses"].as_object_mut().into_iter().flat_map(Map::values_mut);
        answers.for_each(|answer| exemplify(answer, &whole));
    }
    document
}

fn exemplify(body: &mut Value, whole: &Value) {
    let kinds = body.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, media) in kinds.filter(|(kind, _)| kind.as_str() == "application/json") {
        media["example"] = example::of(&media["schema"], whole);
    }
}

#[cfg(test)]
mod tests;
