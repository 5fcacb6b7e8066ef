//! The answers of a call: what it gives, and every way in which it can refuse.
//!
//! Refusals come from the row (keys, roles, hosts), from the body, from the connection and from
//! the entry; each is a code, and its status is that of the code. Must name every code.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::super::super::problem;
use super::super::super::roles::{Access, HostCheck, Reach, Role, Row};
use super::super::{Code, Entry, Given, Takes, code, codes, shapes};

/// What can happen to any request, before anybody looks at it.
const CONNECTION: &[&str] = &["bad-head", "head-too-large", "too-many-connections"];
/// What can be wrong with a body.
const BODY: &[&str] = &[
    "bad-json",
    "bad-field",
    "broken-body",
    "body-too-large",
    "not-json",
    "encoded-body",
    "body-timeout",
];

/// Every answer by its status.
pub fn all(sent: &mut SchemaGenerator, row: &Row, entry: &Entry) -> Value {
    let mut answers: BTreeMap<String, Answer> = BTreeMap::new();
    for given in entry.gives {
        answers.entry(given.status.to_owned()).or_default().give(sent, given);
    }
    for code in refusals(row, entry) {
        answers.entry(code.status.to_string()).or_default().codes.push(code);
    }
    let answers = answers.into_iter().map(|(status, answer)| {
        let answer = answer.render(sent, &status);
        (status, answer)
    });
    Value::Object(answers.collect::<Map<_, _>>())
}

/// Every code that a call can answer with, in the order of the document of codes.
fn refusals(row: &Row, entry: &Entry) -> Vec<&'static Code> {
    let mut names: Vec<&str> = entry.problems.concat();
    names.extend(CONNECTION);
    if !matches!(entry.takes, Takes::Nothing) {
        names.extend(BODY);
    }
    let least = match row.access {
        Access::Open => None,
        Access::Metrics => Some(Role::Read),
        Access::Least(least) => Some(least),
    };
    if let Some(least) = least {
        names.extend(["no-key", "unknown-key", "internal"]);
        names.extend(Some("role-too-low").filter(|_| least > Role::Read));
        names.extend(Some("namespace-bound-key").filter(|_| row.reach == Reach::Catalog));
    }
    if row.host != HostCheck::Never {
        names.extend(["host-not-allowed", "origin-not-allowed"]);
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(code).collect()
}

#[derive(Default)]
struct Answer {
    about: Vec<&'static str>,
    /// Schemas by media type.
    bodies: BTreeMap<&'static str, Vec<Value>>,
    headers: Map<String, Value>,
    codes: Vec<&'static Code>,
}

impl Answer {
    fn give(&mut self, sent: &mut SchemaGenerator, given: &Given) {
        self.about.extend(Some(given.about).filter(|about| !about.is_empty()));
        if let Some((kind, of)) = given.body {
            self.bodies.entry(kind).or_default().push(of(sent).into());
        }
        self.headers.extend(given.headers.iter().flat_map(|name| headers(name)));
    }

    fn render(mut self, sent: &mut SchemaGenerator, status: &str) -> Value {
        let mut examples = Map::new();
        if !self.codes.is_empty() {
            let names: Vec<&str> = self.codes.iter().map(|code| code.name).collect();
            let problem = sent.subschema_for::<shapes::Problem>();
            let schema = json!({
                "allOf": [problem], "properties": { "code": { "enum": names } },
            });
            self.bodies.entry(problem::KIND).or_default().push(schema);
            examples = self.codes.iter().map(|code| referred(code)).collect();
        }
        let mut answer = json!({ "description": self.description() });
        for (kind, schemas) in self.bodies {
            let schema = match <[Value; 1]>::try_from(schemas) {
                Ok([schema]) => schema,
                Err(schemas) => json!({ "anyOf": schemas }),
            };
            answer["content"][kind]["schema"] = schema;
        }
        if !examples.is_empty() {
            answer["content"][problem::KIND]["examples"] = Value::Object(examples);
        }
        if status == "401" {
            self.headers.extend(headers("WWW-Authenticate"));
        }
        if !self.headers.is_empty() {
            answer["headers"] = Value::Object(self.headers);
        }
        answer
    }

    fn description(&self) -> String {
        let given = self.about.iter().map(|about| (*about).to_owned());
        let codes = self.codes.iter().map(|code| format!("`{}`: {}", code.name, code.what));
        given.chain(codes).collect::<Vec<_>>().join("\n\n")
    }
}

/// Every problem as an example, by its code.
pub fn examples() -> Value {
    Value::Object(codes::all().iter().map(shown).collect())
}

fn referred(code: &Code) -> (String, Value) {
    let reference = format!("#/components/examples/{}", code.name);
    (code.name.to_owned(), json!({ "$ref": reference }))
}

fn shown(code: &Code) -> (String, Value) {
    let status = StatusCode::from_u16(code.status).unwrap_or_default();
    let problem = problem::Problem::new(status, code.name, code.what);
    let value: Value = serde_json::from_slice(&problem.to_json()).unwrap_or_default();
    (code.name.to_owned(), json!({ "value": value }))
}

/// Headers by a name, or by what several have in common.
fn headers(name: &str) -> Vec<(String, Value)> {
    let header = |name: &str, about: &str, kind: &str| {
        (name.to_owned(), json!({ "description": about, "schema": { "type": kind } }))
    };
    match name {
        "RateLimit-Policy" => vec![header(
            name,
            "The limits in force, as a structured field: `q` units per `w` seconds.",
            "string",
        )],
        "RateLimit" => vec![header(
            name,
            "What is left of them: `r` units, and more in `t` seconds.",
            "string",
        )],
        "Retry-After" => {
            vec![header(name, "Whole seconds; absent if it will never pass.", "integer")]
        }
        "Catraca-Ticket" => vec![header(
            name,
            "Settles the check; absent where no outcome changes anything.",
            "string",
        )],
        "X-Lock-*" => vec![
            header("X-Lock-Version", "The caller's own number, or the fence.", "integer"),
            header("X-Lock-Fence", "The number of the lease.", "integer"),
            header("X-Lock-Expires", "Epoch milliseconds; absent once it is confirmed.", "integer"),
        ],
        "Catraca-Degraded" => vec![header(
            name,
            "`?1` if it was decided without the store, or with cells that several keys share.",
            "string",
        )],
        "X-RateLimit-*" => vec![
            header("X-RateLimit-Limit", "With `[server] x_ratelimit = true`.", "integer"),
            header("X-RateLimit-Remaining", "With `[server] x_ratelimit = true`.", "integer"),
            header("X-RateLimit-Reset", "Epoch seconds; with the same setting.", "integer"),
        ],
        _ => vec![header(name, "Which key is wanted.", "string")],
    }
}
