//! One entry per call, in the order of the table; what the calls have in common is here.
//!
//! To add a call: a row in `roles`, a route, and an entry below; then `cargo xtask openapi`. Must
//! not repeat what a row or a type says already.

mod about;
mod decide;
mod desk;
mod locks;
mod look;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Asked, Entry, Kind};

/// Every entry.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    [decide::CALLS, locks::CALLS, desk::CALLS, look::CALLS, about::CALLS].into_iter().flatten()
}

/// A subject can be wrong in these ways.
const SUBJECT: &[&str] =
    &["bad-attribute", "attribute-too-long", "reserved-attribute", "fixed-attribute"];
/// And so when a policy counts it.
const COUNTED: &[&str] = &["missing-attribute", "no-tier", "store-failed"];
/// One value of an attribute can be wrong in these ways.
const VALUE: &[&str] = &["bad-attribute", "attribute-too-long"];
/// Acts that are kept.
const KEPT: &[&str] = &["no-records", "records-failed"];
const QUERY: &[&str] = &["bad-query", "bad-text"];
const PATH: &[&str] = &["bad-path"];

const AFTER: Asked =
    Asked { name: "after", about: "The `next` of the page before.", kind: Kind::Text("") };
const LIMIT: Asked =
    Asked { name: "limit", about: "The most rows to give.", kind: Kind::Number(50) };

/// One object, or a list of them.
fn one_or_many<T: JsonSchema, const MAX: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({
        "oneOf": [one.clone(), { "type": "array", "items": one, "maxItems": MAX }],
    })
}
