//! What several calls refuse alike stands once, and is referred to: the document stays readable.
//!
//! Must not change what a reader who follows the references sees.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Moves refusals that more than one call has to the components.
pub fn gather(document: &mut Value) {
    let mut names = named(&document["paths"]);
    names.retain(|_, (count, _)| *count > 1);
    for answers in answers(&mut document["paths"]) {
        for (_, answer) in answers.iter_mut() {
            if let Some((_, name)) = names.get(&answer.to_string()) {
                *answer = json!({ "$ref": format!("#/components/responses/{name}") });
            }
        }
    }
    let shared = names.into_iter().filter_map(|(text, (_, name))| {
        let answer: Value = serde_json::from_str(&text).ok()?;
        Some((name, answer))
    });
    document["components"]["responses"] = Value::Object(shared.collect::<Map<_, _>>());
}

/// Every refusal by its text: how many calls have it, and its name.
fn named(paths: &Value) -> BTreeMap<String, (usize, String)> {
    let mut names: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut paths = paths.clone();
    for answers in answers(&mut paths) {
        for (status, answer) in answers.iter().filter(|(status, _)| status.as_str() >= "400") {
            let entry = names.entry(answer.to_string()).or_insert_with(|| {
                let number = numbers.entry(status.clone()).or_default();
                *number += 1;
                (0, format!("Refused{status}.{number}"))
            });
            entry.0 += 1;
        }
    }
    names
}

fn answers(paths: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let paths = paths.as_object_mut().into_iter().flat_map(Map::values_mut);
    let calls = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    calls.filter_map(|call| call["responses"].as_object_mut())
}
