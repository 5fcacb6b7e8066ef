//! Tests that the document agrees with the table of endpoints and with itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

const COPY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[test]
fn no_endpoint_and_no_name_is_listed_twice() {
    let mut calls = BTreeSet::new();
    let mut names = BTreeSet::new();
    for endpoint in endpoints() {
        let call = (endpoint.method, endpoint.path);
        assert!(calls.insert(call), "{call:?}");
        assert!(names.insert(endpoint.docs.name), "{}", endpoint.docs.name);
    }
}

#[test]
fn the_checked_in_copy_is_what_is_served() {
    let copy = fs::read_to_string(Path::new(COPY)).unwrap();
    assert!(copy == crate::http::openapi::document_text(), "run `cargo xtask openapi`");
}

#[test]
fn every_code_that_an_operation_names_is_known() {
    for endpoint in endpoints() {
        for code in endpoint.docs.error_codes.concat() {
            assert!(
                crate::http::bodies::error_codes::find_error_code(code).is_some(),
                "{}: {code}",
                endpoint.path
            );
        }
    }
}

fn walk<'v>(value: &'v Value, see: &mut impl FnMut(&'v Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|value| walk(value, see));
        }
        Value::Array(list) => list.iter().for_each(|value| walk(value, see)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves_and_every_schema_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(document, &mut |map| {
        if let Some(Value::String(reference)) = map.get("$ref") {
            assert!(
                crate::http::openapi::resolve_ref(document, reference).is_some(),
                "{reference}"
            );
            if let Some(name) = reference.strip_prefix("#/components/schemas/") {
                used.insert(name.to_owned());
            }
        }
    });
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let known: BTreeSet<String> = schemas.keys().cloned().collect();
    assert_eq!(known, used);
    assert!(known.iter().all(|name| !name.ends_with(|last: char| last.is_ascii_digit())));
}

#[test]
fn request_and_response_schemas_share_no_name() {
    let mut builder = DocumentBuilder::new();
    for endpoint in endpoints() {
        for method in methods(endpoint) {
            builder.operation(endpoint, method);
        }
    }
    let read: BTreeSet<String> = builder.requests.definitions().keys().cloned().collect();
    let sent: BTreeSet<String> = builder.responses.definitions().keys().cloned().collect();
    let both: Vec<&String> = read.intersection(&sent).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn every_operation_has_an_id_a_summary_descriptions_and_examples() {
    let mut names = BTreeSet::new();
    let paths = document()["paths"].as_object().unwrap();
    for (path, calls) in paths {
        for (method, call) in calls.as_object().unwrap() {
            let which = format!("{method} {path}");
            assert!(names.insert(call["operationId"].as_str().unwrap()), "{which}");
            assert!(!call["summary"].as_str().unwrap().ends_with('.'), "{which}");
            assert!(!call["tags"][0].as_str().unwrap().is_empty(), "{which}");
            for (status, response) in call["responses"].as_object().unwrap() {
                let named = response["$ref"].as_str();
                let named = named.and_then(|name| super::super::resolve_ref(document(), name));
                let description = named.unwrap_or(response)["description"].as_str();
                assert!(
                    description.is_some_and(|description| !description.is_empty()),
                    "{which} {status}"
                );
            }
            if let Some(body) = call.get("requestBody") {
                let example = &body["content"]["application/json"]["example"];
                assert!(example.is_object() || example.is_array(), "{which}: {example}");
            }
        }
    }
}
