//! The OpenAPI 3.1 document, generated from the table of endpoints, the types of bodies, and one
//! `OperationSpec` per operation.
//!
//! `operations` holds what neither the table nor a type states; `build` joins all of it;
//! `error_codes` reads `docs/errors.md`; `schemas` describes bodies that are written by hand. Tests
//! keep endpoints and operations equal, and `docs/openapi.json` equal to the served document.

mod build;
mod example;
mod operations;
mod schemas;

use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

pub use build::document;
#[cfg(test)]
pub use schemas::Decision;

/// Generates the schema of a type.
type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// An operation: its part of the document that the table of endpoints does not contain.
struct OperationSpec {
    /// The method and the path of its endpoint; `ANY` if the endpoint accepts every method.
    request: &'static str,
    /// The `operationId`.
    name: &'static str,
    tag: OperationTag,
    /// One line, without a full stop.
    summary: &'static str,
    /// Further sentences; may be empty.
    description: &'static str,
    query: &'static [QueryParameter],
    request_body: RequestBodySpec,
    responses: &'static [ResponseSpec],
    /// Error codes, in groups, besides those of authentication, the connection and the body.
    error_codes: &'static [&'static [&'static str]],
}

/// The tag of an operation; the document lists operations in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationTag {
    Decide,
    States,
    Locks,
    Catalog,
    BlocksAndLists,
    Reports,
    Privacy,
    Server,
}

/// A parameter of the query.
struct QueryParameter {
    name: &'static str,
    description: &'static str,
    kind: ParameterType,
}

/// The type of a query parameter, with an example.
enum ParameterType {
    Text(&'static str),
    Number(i64),
    Instant,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// The body of a request.
enum RequestBodySpec {
    /// No body.
    Empty,
    /// Must be sent.
    Required(SchemaFn),
    /// May be left out.
    Optional(SchemaFn),
}

/// A response other than an error: a success or a denial.
struct ResponseSpec {
    /// The status, or a range such as `4XX`.
    status: &'static str,
    description: &'static str,
    /// The media type and the schema of the body; `None` if it is empty.
    body: Option<(&'static str, SchemaFn)>,
    /// Names of headers; `build/responses` describes them.
    headers: &'static [&'static str],
}

/// A 200 with a JSON body.
const fn ok_json(schema: SchemaFn) -> ResponseSpec {
    ResponseSpec {
        status: "200",
        description: "Done.",
        body: Some(("application/json", schema)),
        headers: &[],
    }
}

/// The schema of `T`, as a reference to its definition.
fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The document as pretty-printed JSON, as it is served and checked in.
pub fn document_text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = serde_json::to_string_pretty(document()).unwrap_or_default();
        text.push('\n');
        text
    })
}

/// Parses a response as `T` and serialises it again; tests compare the result with the response.
#[cfg(test)]
pub fn reserialize<T>(response: &str) -> serde_json::Result<Value>
where
    T: serde::de::DeserializeOwned + serde::Serialize,
{
    serde_json::to_value(serde_json::from_str::<T>(response)?)
}

/// The value that a `$ref` such as `#/components/schemas/Block` points to.
fn resolve_ref<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    document.pointer(reference.strip_prefix('#')?)
}
