//! Builds the document from the table of endpoints. The result is the same on every run.

mod parameters;
mod plain_schemas;
mod responses;
mod shared_responses;

use std::sync::OnceLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::example;
use crate::http::bodies::problem::ProblemBody;
use crate::http::endpoint::{
    ANY_METHOD, Access, Endpoint, LISTED_METHODS, OperationTag, ROLES, RequestBody, Role,
};
use crate::http::table::endpoints;

/// Where schemas refer to one another.
const DEFINITIONS: &str = "/components/schemas";

/// The name and the description of every tag, in the order of the document.
const TAGS: [(OperationTag, &str, &str); 8] = [
    (OperationTag::Decide, "Decide", "Whether a request may pass now, its cost, and credits."),
    (OperationTag::States, "Bucket states", "Balances of token buckets."),
    (OperationTag::Locks, "Locks and slots", "Leases on names and on ranges of time, with fences."),
    (OperationTag::Catalog, "Catalog", "The policies in use, their modes, and facts about values."),
    (
        OperationTag::BlocksAndLists,
        "Blocks and lists",
        "Blocks, the blocklist, the allowlist, and reset.",
    ),
    (OperationTag::Reports, "Reports", "Totals, the audit, and the live feed."),
    (OperationTag::Privacy, "Privacy", "Export and erasure of the records about an identifier."),
    (OperationTag::Server, "Server", "Health, metrics and documentation of the server."),
];

const INTRODUCTION: &str = "One turnstile for any API: may this caller pass now, what does it \
    cost, and what happens when they misbehave? A denial is a decision, not an error, and its \
    status is 200; errors are problem+json, each with a stable `code` and a `type` that links to \
    a page about it. Unknown fields are refused.";

/// The document, built once.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| DocumentBuilder::new().build())
}

/// The methods of an endpoint, as the document lists them.
fn methods(endpoint: &'static Endpoint) -> &'static [&'static str] {
    match endpoint.method {
        ANY_METHOD => &LISTED_METHODS,
        _ => std::slice::from_ref(&endpoint.method),
    }
}

/// Request and response bodies have separate schema generators: a field with a default is optional
/// in a request, and always present in a response.
struct DocumentBuilder {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl DocumentBuilder {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = DEFINITIONS.into();
                settings.meta_schema = None;
            })
        };
        let requests = settings().for_deserialize().into_generator();
        let responses = settings().for_serialize().into_generator();
        Self { requests, responses }
    }

    fn build(mut self) -> Value {
        let mut paths = Map::new();
        for endpoint in endpoints() {
            for method in methods(endpoint) {
                let operation = self.operation(endpoint, method);
                paths.entry(endpoint.template()).or_insert_with(|| json!({}))
                    [method.to_ascii_lowercase()] = operation;
            }
        }
        // Included even if no operation refers to it.
        self.responses.subschema_for::<ProblemBody<'static>>();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Catraca",
                "version": env!("CARGO_PKG_VERSION"),
                "description": INTRODUCTION,
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "tags": TAGS.map(|(_, name, text)| json!({ "name": name, "description": text })),
            "paths": paths,
            "components": {
                "securitySchemes": security_schemes(),
                "examples": responses::examples(),
                "schemas": self.schemas(),
            },
        });
        shared_responses::extract(&mut document);
        with_examples(document)
    }

    fn operation(&mut self, endpoint: &Endpoint, method: &str) -> Value {
        let docs = &endpoint.docs;
        let mut operation = json!({
            "operationId": operation_id(endpoint, method),
            "tags": [tag_name(docs.tag)],
            "summary": docs.summary,
            "description": description(endpoint),
            "security": security(endpoint),
            "parameters": parameters::parameters(endpoint),
        });
        let body = match endpoint.body {
            RequestBody::Empty => None,
            RequestBody::Required(schema_of) => Some((schema_of(&mut self.requests), true)),
            RequestBody::Optional(schema_of) => Some((schema_of(&mut self.requests), false)),
        };
        if let Some((schema, required)) = body {
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "required": required, "content": content });
        }
        operation["responses"] = responses::all(&mut self.responses, endpoint);
        operation
    }

    /// Every schema by its name. Those of responses are closed: no other field is ever sent.
    fn schemas(mut self) -> Value {
        let mut all = self.requests.take_definitions(true);
        for (name, mut schema) in self.responses.take_definitions(true) {
            if schema.get("properties").is_some() {
                schema["additionalProperties"] = false.into();
            }
            all.insert(name, schema);
        }
        let mut all = Value::Object(all);
        join_lines(&mut all);
        plain_schemas::simplify(&mut all);
        all
    }
}

/// The `operationId`; the operations of an endpoint that accepts any method end in the method.
fn operation_id(endpoint: &Endpoint, method: &str) -> String {
    let is_any = endpoint.method == ANY_METHOD;
    let suffix = is_any.then(|| format!("_{}", method.to_ascii_lowercase()));
    format!("{}{}", endpoint.docs.name, suffix.unwrap_or_default())
}

fn tag_name(tag: OperationTag) -> &'static str {
    TAGS.iter().find(|(other, ..)| *other == tag).map_or("", |(_, name, _)| name)
}

/// The description of an operation, ending in the role that it needs.
fn description(endpoint: &Endpoint) -> String {
    let who = match role(endpoint) {
        _ if endpoint.rights.access == Access::Metrics => {
            "Needs a key of role `read`, or none with `[auth] metrics = \"open\"`.".to_owned()
        }
        None => "Needs no key.".to_owned(),
        Some("read") => "Needs a key of any role.".to_owned(),
        Some("admin") => "Needs a key of role `admin`.".to_owned(),
        Some(role) => format!("Needs a key of role `{role}` or `admin`."),
    };
    let text = endpoint.docs.description;
    if text.is_empty() { who } else { format!("{text}\n\n{who}") }
}

/// The lowest role that an endpoint needs.
fn role(endpoint: &Endpoint) -> Option<&'static str> {
    let least = match endpoint.rights.access {
        Access::Open => return None,
        Access::Metrics => Role::Read,
        Access::Least(least) => least,
    };
    ROLES.iter().find(|(_, role)| *role == least).map(|(name, _)| *name)
}

fn security(endpoint: &Endpoint) -> Value {
    role(endpoint).map_or(json!([]), |role| json!([{ "bearer": [role] }, { "own": [role] }]))
}

fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of `catraca keygen`. Its role is `read`, `check`, `support` or \
                            `admin`; every role may read, and `admin` may do everything. A \
                            server without keys listens only on loopback and needs none.",
        },
        "own": {
            "type": "apiKey",
            "in": "header",
            "name": "Catraca-Key",
            "description": "The same key, for proxies that send their client's `Authorization` \
                            unchanged.",
        },
    })
}

/// Joins the lines of doc comments in descriptions.
fn join_lines(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            map.values_mut().for_each(join_lines);
        }
        Value::Array(list) => list.iter_mut().for_each(join_lines),
        _ => {}
    }
}

/// Adds an example, made from its schema, to every JSON body.
fn with_examples(mut document: Value) -> Value {
    // References of schemas are resolved in a copy, because the document itself is changed.
    let whole = document.clone();
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    let operations = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations {
        if let Some(body) = operation.get_mut("requestBody") {
            add_example(body, &whole);
        }
        let responses = operation["responses"].as_object_mut().into_iter();
        let responses = responses.flat_map(Map::values_mut);
        responses.for_each(|response| add_example(response, &whole));
    }
    document
}

fn add_example(body: &mut Value, whole: &Value) {
    let content = body.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, media) in content.filter(|(media_type, _)| media_type.as_str() == "application/json") {
        media["example"] = example::example_of(&media["schema"], whole);
    }
}

#[cfg(test)]
mod tests;
