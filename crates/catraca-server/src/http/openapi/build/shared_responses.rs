//! Moves error responses that several operations share to `components/responses`.
//!
//! Without this the document would repeat them for every operation. Resolving the references
//! gives the same document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Replaces every error response of more than one operation by a reference.
pub fn extract(document: &mut Value) {
    let mut names = name_responses(&document["paths"]);
    names.retain(|_, (count, _)| *count > 1);
    for responses in responses_of(&mut document["paths"]) {
        for (_, response) in responses.iter_mut() {
            if let Some((_, name)) = names.get(&response.to_string()) {
                *response = json!({ "$ref": format!("#/components/responses/{name}") });
            }
        }
    }
    let shared = names.into_iter().filter_map(|(text, (_, name))| {
        let response: Value = serde_json::from_str(&text).ok()?;
        Some((name, response))
    });
    document["components"]["responses"] = Value::Object(shared.collect::<Map<_, _>>());
}

/// Every error response by its JSON text: how many operations have it, and its component name.
fn name_responses(paths: &Value) -> BTreeMap<String, (usize, String)> {
    let mut names: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut paths = paths.clone();
    for responses in responses_of(&mut paths) {
        for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
            let entry = names.entry(response.to_string()).or_insert_with(|| {
                let number = numbers.entry(status.clone()).or_default();
                *number += 1;
                (0, format!("Refused{status}.{number}"))
            });
            entry.0 += 1;
        }
    }
    names
}

/// The responses of every operation.
fn responses_of(paths: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let paths = paths.as_object_mut().into_iter().flat_map(Map::values_mut);
    let operations = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    operations.filter_map(|operation| operation["responses"].as_object_mut())
}
