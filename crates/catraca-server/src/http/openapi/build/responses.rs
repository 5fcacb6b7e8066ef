//! The `responses` of an operation: successes, denials, and every error code.
//!
//! Error codes come from the endpoint (keys, roles, hosts), the connection, the request body and
//! the operation itself; the status of a code is that in `docs/errors.md`.

use std::collections::BTreeMap;

use hyper::http::StatusCode;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::http::bodies::error_codes::{self, ErrorCode, find_error_code};
use crate::http::bodies::problem::{self, ProblemBody};
use crate::http::endpoint::{Access, Endpoint, HostCheck, Reach, RequestBody, ResponseSpec, Role};

/// Errors of any request, before it is routed.
const CONNECTION: &[&str] = &["bad-head", "head-too-large", "too-many-connections"];
/// Errors of a request body.
const BODY: &[&str] = &[
    "bad-json",
    "bad-field",
    "broken-body",
    "body-too-large",
    "repeated-header",
    "not-json",
    "encoded-body",
    "body-timeout",
];

/// The responses of an operation, by status.
pub fn all(generator: &mut SchemaGenerator, endpoint: &Endpoint) -> Value {
    let mut responses: BTreeMap<String, ResponseBuilder> = BTreeMap::new();
    for spec in endpoint.docs.responses {
        responses.entry(spec.status.to_owned()).or_default().add(generator, spec);
    }
    for code in error_codes_of(endpoint) {
        responses.entry(code.status.to_string()).or_default().codes.push(code);
    }
    let responses = responses.into_iter().map(|(status, response)| {
        let response = response.build(generator, &status);
        (status, response)
    });
    Value::Object(responses.collect::<Map<_, _>>())
}

/// Every error code of an operation, sorted by name.
fn error_codes_of(endpoint: &Endpoint) -> Vec<&'static ErrorCode> {
    let mut names: Vec<&str> = endpoint.docs.error_codes.concat();
    names.extend(CONNECTION);
    if !matches!(endpoint.body, RequestBody::Empty) {
        names.extend(BODY);
    }
    let least = match endpoint.rights.access {
        Access::Open => None,
        Access::Metrics => Some(Role::Read),
        Access::Least(least) => Some(least),
    };
    if let Some(least) = least {
        names.extend(["no-key", "unknown-key", "internal", "answer-timeout"]);
        names.extend(Some("role-too-low").filter(|_| least != Role::Read));
        names.extend(
            Some("namespace-bound-key").filter(|_| endpoint.rights.reach == Reach::Catalog),
        );
    }
    names.extend(Some("bad-query").filter(|_| endpoint.checks_query()));
    if endpoint.rights.host != HostCheck::Never {
        names.extend(["host-not-allowed", "origin-not-allowed"]);
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(find_error_code).collect()
}

/// The response of one status, of which an operation may have several kinds.
#[derive(Default)]
struct ResponseBuilder {
    descriptions: Vec<&'static str>,
    /// Schemas of the body by media type.
    bodies: BTreeMap<&'static str, Vec<Value>>,
    headers: Map<String, Value>,
    codes: Vec<&'static ErrorCode>,
}

impl ResponseBuilder {
    fn add(&mut self, generator: &mut SchemaGenerator, spec: &ResponseSpec) {
        self.descriptions.extend(Some(spec.description).filter(|text| !text.is_empty()));
        if let Some((media_type, schema_of)) = spec.body {
            self.bodies.entry(media_type).or_default().push(schema_of(generator).into());
        }
        self.headers.extend(spec.headers.iter().flat_map(|name| headers(name)));
    }

    fn build(mut self, generator: &mut SchemaGenerator, status: &str) -> Value {
        let mut examples = Map::new();
        if !self.codes.is_empty() {
            let names: Vec<&str> = self.codes.iter().map(|code| code.name).collect();
            let problem = generator.subschema_for::<ProblemBody<'static>>();
            let schema = json!({
                "allOf": [problem], "properties": { "code": { "type": "string", "enum": names } },
            });
            self.bodies.entry(problem::PROBLEM_JSON).or_default().push(schema);
            examples = self.codes.iter().map(|code| example_ref(code)).collect();
        }
        let mut response = json!({ "description": self.description() });
        for (media_type, schemas) in self.bodies {
            let schema = match <[Value; 1]>::try_from(schemas) {
                Ok([schema]) => schema,
                Err(schemas) => json!({ "anyOf": schemas }),
            };
            response["content"][media_type]["schema"] = schema;
        }
        if !examples.is_empty() {
            response["content"][problem::PROBLEM_JSON]["examples"] = Value::Object(examples);
        }
        if status == "401" {
            self.headers.extend(headers("WWW-Authenticate"));
        }
        if !self.headers.is_empty() {
            response["headers"] = Value::Object(self.headers);
        }
        response
    }

    fn description(&self) -> String {
        let texts = self.descriptions.iter().map(|text| (*text).to_owned());
        let codes = self.codes.iter().map(|code| format!("`{}`: {}", code.name, code.summary));
        texts.chain(codes).collect::<Vec<_>>().join("\n\n")
    }
}

/// An example problem of every error code.
pub fn examples() -> Value {
    Value::Object(error_codes::all_error_codes().iter().map(example_problem).collect())
}

fn example_ref(code: &ErrorCode) -> (String, Value) {
    let reference = format!("#/components/examples/{}", code.name);
    (code.name.to_owned(), json!({ "$ref": reference }))
}

fn example_problem(code: &ErrorCode) -> (String, Value) {
    let status = StatusCode::from_u16(code.status).unwrap_or_default();
    let problem = problem::Problem::new(status, code.name, code.summary);
    let value: Value = serde_json::from_slice(&problem.to_json()).unwrap_or_default();
    (code.name.to_owned(), json!({ "value": value }))
}

/// Descriptions of a header, or of all headers that match a name such as `X-Lock-*`.
fn headers(name: &str) -> Vec<(String, Value)> {
    let header = |name: &str, description: &str, kind: &str| {
        let mut schema = json!({ "type": kind });
        if kind == "integer" {
            schema["format"] = "int64".into();
        }
        (name.to_owned(), json!({ "description": description, "schema": schema }))
    };
    match name {
        "RateLimit-Policy" => vec![header(
            name,
            "The limits in effect, as a structured field with an item per policy, attribute of \
             `each` and window: `q` units per `w` seconds.",
            "string",
        )],
        "RateLimit" => vec![header(
            name,
            "What remains of them: `r` units, and more in `t` seconds.",
            "string",
        )],
        "Retry-After" => {
            vec![header(name, "Whole seconds; absent if the request will never pass.", "integer")]
        }
        "Catraca-Ticket" => vec![header(
            name,
            "The ticket to settle the check with; absent if there is nothing to settle.",
            "string",
        )],
        "X-Lock-*" => vec![
            header(
                "X-Lock-Version",
                "The version that the client sent, or else the fence.",
                "integer",
            ),
            header("X-Lock-Fence", "The fence of the lease.", "integer"),
            header("X-Lock-Expires", "Epoch milliseconds; absent for a confirmed slot.", "integer"),
        ],
        "Catraca-Degraded" => vec![header(
            name,
            "`?1` if it was decided without the store, or with counters that several keys share.",
            "string",
        )],
        "X-RateLimit-*" => vec![
            header(
                "X-RateLimit-Limit",
                "With `[server] x_ratelimit = true`: of the first listed window if allowed, of \
                 the one that denies if not.",
                "integer",
            ),
            header("X-RateLimit-Remaining", "With `[server] x_ratelimit = true`.", "integer"),
            header("X-RateLimit-Reset", "Epoch seconds; with the same setting.", "integer"),
        ],
        _ => vec![header(name, "How to authenticate.", "string")],
    }
}
