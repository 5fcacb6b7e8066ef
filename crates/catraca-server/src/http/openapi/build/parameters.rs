//! The `parameters` of an operation: those of its path and of its query.

use catraca::records::PAGE_MAX;
use serde_json::{Value, json};

use crate::http::bodies::schema_values;
use crate::http::endpoint::{Endpoint, ParameterType, QueryParameter};

/// Every path parameter of the table of endpoints: name, description and example.
const PATH_PARAMETERS: [(&str, &str, &str); 9] = [
    ("policy", "The policy's name.", "lookups"),
    ("name", "The policy's name.", "login"),
    ("attribute", "The attribute's name.", "participant"),
    ("value", "The real value.", "12345678"),
    ("id", "The block's id.", "7"),
    ("fence", "The fence of the lease.", "1769860800000000"),
    ("code", "The error's code.", "bad-json"),
    ("gate", "The gate's name.", "login"),
    ("rest", "The client's path, which may contain slashes.", "api/orders/7"),
];

/// The parameters of an operation.
pub fn parameters(endpoint: &Endpoint) -> Value {
    let template = endpoint.template();
    let path = template.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some(path_parameter(name))
    });
    path.chain(endpoint.docs.query.iter().map(query_parameter)).collect()
}

fn path_parameter(name: &str) -> Value {
    let known = PATH_PARAMETERS.iter().find(|(own, ..)| *own == name);
    let (_, description, example) = known.copied().unwrap_or((name, "", ""));
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": { "type": "string", "minLength": 1 }, "example": example,
    })
}

fn query_parameter(parameter: &QueryParameter) -> Value {
    let (schema, example) = match parameter.kind {
        ParameterType::Text(example) => {
            (json!({ "type": "string" }), Some(example).filter(|text| !text.is_empty()).into())
        }
        ParameterType::Number(example) => {
            (json!({ "type": "integer", "format": "int64", "minimum": 0 }), example.into())
        }
        ParameterType::PageSize => {
            (json!({ "type": "integer", "minimum": 1, "maximum": PAGE_MAX }), 50.into())
        }
        ParameterType::Instant => {
            (json!({ "type": "string", "format": "date-time" }), schema_values::NOON.into())
        }
        ParameterType::OneOf(words) => (json!({ "type": "string", "enum": words }), Value::Null),
    };
    let mut value = json!({
        "name": parameter.name, "in": "query", "description": parameter.description,
        "schema": schema,
    });
    if !example.is_null() {
        value["example"] = example;
    }
    value
}
