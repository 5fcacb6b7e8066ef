//! The operations of the API, in the order of the table of endpoints, and the parts they share.
//!
//! To add an operation: an endpoint in `roles`, a route, and an `OperationSpec` here; then
//! `cargo xtask openapi`.

mod decisions;
mod lock_operations;
mod operator_acts;
mod reports;
mod service_info;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{OperationSpec, ParameterType, QueryParameter};

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static OperationSpec> {
    [
        decisions::OPERATIONS,
        lock_operations::OPERATIONS,
        operator_acts::OPERATIONS,
        reports::OPERATIONS,
        service_info::OPERATIONS,
    ]
    .into_iter()
    .flatten()
}

/// Errors of a subject.
const SUBJECT_ERRORS: &[&str] =
    &["bad-attribute", "attribute-too-long", "reserved-attribute", "fixed-attribute"];
/// Errors of a subject that a policy counts.
const COUNTED_ERRORS: &[&str] = &["missing-attribute", "no-tier", "store-failed"];
/// Errors of one value of an attribute.
const VALUE_ERRORS: &[&str] = &["bad-attribute", "attribute-too-long"];
/// Errors of acts that are recorded.
const RECORDS_ERRORS: &[&str] = &["no-records", "records-failed"];
const QUERY_ERRORS: &[&str] = &["bad-query", "bad-text"];
const PATH_ERRORS: &[&str] = &["bad-path"];

const AFTER: QueryParameter = QueryParameter {
    name: "after",
    description: "The `next` of the previous page.",
    kind: ParameterType::Text(""),
};
const LIMIT: QueryParameter = QueryParameter {
    name: "limit",
    description: "The maximum number of rows.",
    kind: ParameterType::Number(50),
};

/// One object, or a list of them.
fn one_or_many<T: JsonSchema, const MAX: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({
        "oneOf": [one.clone(), { "type": "array", "items": one, "maxItems": MAX }],
    })
}
