//! Rewrites the schemas of schemars in the forms that generators of clients understand.
//!
//! The meaning stays the same. `cargo xtask test clients` runs the generators.

use serde_json::{Map, Value, json};

/// Rewrites this schema and all schemas in it.
pub fn simplify(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            simplify_properties(schema);
            replace_constants(schema);
            replace_integer_format(schema);
            schema.values_mut().for_each(simplify);
        }
        Value::Array(list) => list.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// A property of any type is `true` in JSON Schema; generators accept only its equivalent `{}`.
/// openapi-typescript makes a property with a `default` required, also in requests.
fn simplify_properties(schema: &mut Map<String, Value>) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        if *property == Value::Bool(true) {
            *property = json!({});
        }
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
    }
}

/// An enumeration with a description of each word is a `oneOf` of constants, of which oapi-codegen
/// makes an opaque union. As an `enum`, its description lists the words.
fn replace_constants(schema: &mut Map<String, Value>) {
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let words: Option<Vec<Value>> =
        choices.and_then(|all| all.iter().map(|choice| choice.get("const").cloned()).collect());
    let Some(words) = words else { return };
    let mut paragraphs = vec![text(schema.get("description")).to_owned()];
    for choice in choices.into_iter().flatten() {
        let word = text(choice.get("const"));
        paragraphs.push(format!("`{word}`: {}", text(choice.get("description"))));
    }
    let description = paragraphs.join("\n\n");
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words.into());
    schema.insert("description".to_owned(), description.into());
}

/// OpenAPI registers `int32` and `int64`, and generators make 64-bit integers of the latter only.
/// Every number of the API fits: it is below 2^53. `minimum` says which are not negative.
fn replace_integer_format(schema: &mut Map<String, Value>) {
    let is_integer = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "integer"),
        one => one.is_some_and(|one| one == "integer"),
    };
    if is_integer {
        let is_short = matches!(text(schema.get("format")), "int32" | "uint8" | "uint16");
        let format = if is_short { "int32" } else { "int64" };
        schema.insert("format".to_owned(), format.into());
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_its_meaning_in_plain_forms() {
        let mut schema = json!({
            "properties": {
                "any": true,
                "state": { "description": "A state.", "oneOf": [
                    { "const": "on", "description": "Works.", "type": "string" },
                    { "const": "off", "description": "Rests.", "type": "string" },
                ] },
                "count": { "type": ["integer", "null"], "format": "uint", "minimum": 0 },
                "status": { "type": "integer", "format": "uint16", "default": 200 },
                "one": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            },
            "additionalProperties": true,
        });
        simplify(&mut schema);
        let expected = json!({
            "properties": {
                "any": {},
                "state": {
                    "description": "A state.\n\n`on`: Works.\n\n`off`: Rests.",
                    "type": "string", "enum": ["on", "off"],
                },
                "count": { "type": ["integer", "null"], "format": "int64", "minimum": 0 },
                "status": { "type": "integer", "format": "int32" },
                "one": { "oneOf": [
                    { "type": "string" }, { "type": "integer", "format": "int64" },
                ] },
            },
            "additionalProperties": true,
        });
        assert_eq!(schema, expected);
    }
}
