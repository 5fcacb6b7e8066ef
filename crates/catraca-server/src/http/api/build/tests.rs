//! The document against the table, the entries and itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

const COPY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[test]
fn every_row_has_an_entry_and_every_entry_a_row() {
    let rows = ROWS.iter().flat_map(|row| {
        let any = &["ANY"][..];
        let methods = if row.methods.is_empty() { any } else { row.methods };
        methods.iter().map(|method| format!("{method} {}", row.path))
    });
    let rows: Vec<String> = rows.collect();
    let described: Vec<&str> = calls::all().map(|entry| entry.request).collect();
    let set = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(rows.iter().cloned().collect::<BTreeSet<_>>(), set(&described));
    assert_eq!(rows.len(), described.len(), "something is there twice");
}

#[test]
fn the_checked_in_copy_is_what_is_served() {
    let copy = fs::read_to_string(Path::new(COPY)).unwrap();
    assert!(copy == super::super::text(), "run `cargo xtask openapi`");
}

#[test]
fn every_code_that_an_entry_names_is_known() {
    for entry in calls::all() {
        for code in entry.problems.concat() {
            assert!(super::super::code(code).is_some(), "{}: {code}", entry.request);
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
fn every_reference_leads_somewhere_and_every_schema_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    walk(document, &mut |map| {
        if let Some(Value::String(reference)) = map.get("$ref") {
            assert!(super::super::pointed(document, reference).is_some(), "{reference}");
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
fn what_is_read_and_what_is_sent_share_no_name() {
    let mut builder = Builder::new();
    for row in &ROWS {
        for method in methods(row) {
            builder.operation(row, entry(row, method).unwrap(), method);
        }
    }
    let read: BTreeSet<String> = builder.read.definitions().keys().cloned().collect();
    let sent: BTreeSet<String> = builder.sent.definitions().keys().cloned().collect();
    let both: Vec<&String> = read.intersection(&sent).collect();
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn every_call_says_all_that_a_reader_needs() {
    let mut names = BTreeSet::new();
    let paths = document()["paths"].as_object().unwrap();
    for (path, calls) in paths {
        for (method, call) in calls.as_object().unwrap() {
            let place = format!("{method} {path}");
            assert!(names.insert(call["operationId"].as_str().unwrap()), "{place}");
            assert!(!call["summary"].as_str().unwrap().ends_with('.'), "{place}");
            assert!(!call["tags"][0].as_str().unwrap().is_empty(), "{place}");
            for (status, answer) in call["responses"].as_object().unwrap() {
                let named = answer["$ref"].as_str();
                let named = named.and_then(|name| super::super::pointed(document(), name));
                let about = named.unwrap_or(answer)["description"].as_str();
                assert!(about.is_some_and(|about| !about.is_empty()), "{place} {status}");
            }
            if let Some(body) = call.get("requestBody") {
                let example = &body["content"]["application/json"]["example"];
                assert!(example.is_object(), "{place}: {example}");
            }
        }
    }
}
