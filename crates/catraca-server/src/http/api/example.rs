//! Examples made of schemas: each field says its own, and the whole is put together here.
//!
//! A type may give an example of its own instead. Must give the same for the same schema.

use serde_json::{Map, Value};

use super::super::words;
use super::pointed;

/// An example of a schema of the document.
pub fn of(schema: &Value, document: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return pointed(document, reference).map_or(Value::Null, |found| of(found, document));
    }
    if let Some(given) = schema["examples"].get(0).or_else(|| schema.get("const")) {
        return given.clone();
    }
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let null = choices.iter().any(|one| one["type"] == "null");
            let first = choices.first().filter(|_| !null);
            return first.map_or(Value::Null, |first| of(first, document));
        }
    }
    typed(schema, document)
}

fn typed(schema: &Value, document: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => object(schema, document),
        Some("array") => Value::Array(vec![of(&schema["items"], document)]),
        Some("string") if schema["format"] == "date-time" => words::NOON.into(),
        Some("string") => "text".into(),
        Some("integer" | "number") => schema["minimum"].as_i64().unwrap_or(1).into(),
        Some("boolean") => true.into(),
        // Also what may be null and says nothing else.
        _ => Value::Null,
    }
}

/// What must be there, and what has an example.
fn object(schema: &Value, document: &Value) -> Value {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
    };
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none).iter();
    let says = |field: &Value| {
        let named = field["$ref"].as_str().and_then(|name| pointed(document, name));
        named.unwrap_or(field).get("examples").is_some()
    };
    let fields = fields.filter(|(name, field)| required(name) || says(field));
    Value::Object(fields.map(|(name, field)| (name.clone(), of(field, document))).collect())
}
