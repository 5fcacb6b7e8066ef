//! Examples of bodies, assembled from the examples of the fields in a schema.
//!
//! A type may have an example of its own instead.

use serde_json::{Map, Value};

use super::resolve_ref;
use crate::http::bodies::schema_values;

/// The example of a schema of the document.
pub fn example_of(schema: &Value, document: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return resolve_ref(document, reference)
            .map_or(Value::Null, |found| example_of(found, document));
    }
    if let Some(given) = schema["examples"].get(0) {
        return given.clone();
    }
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            // An optional field is null in examples, unless it has an example of its own.
            let is_optional = choices.iter().any(|one| one["type"] == "null");
            let first = choices.first().filter(|_| !is_optional);
            return first.map_or(Value::Null, |first| example_of(first, document));
        }
    }
    example_of_type(schema, document)
}

fn example_of_type(schema: &Value, document: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => example_object(schema, document),
        Some("array") => Value::Array(vec![example_of(&schema["items"], document)]),
        Some("string") if schema["format"] == "date-time" => schema_values::NOON.into(),
        Some("string") => "text".into(),
        Some("integer" | "number") => schema["minimum"].as_i64().unwrap_or(1).into(),
        Some("boolean") => true.into(),
        // Also a type that allows null and has no example.
        _ => Value::Null,
    }
}

/// An object with the fields that are required or have an example.
fn example_object(schema: &Value, document: &Value) -> Value {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
    };
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none).iter();
    let has_example = |field: &Value| {
        let named = field["$ref"].as_str().and_then(|name| resolve_ref(document, name));
        named.unwrap_or(field).get("examples").is_some()
    };
    let fields = fields.filter(|(name, field)| required(name) || has_example(field));
    Value::Object(fields.map(|(name, field)| (name.clone(), example_of(field, document))).collect())
}
