//! The parameters of a call: pieces of its path, and what its query may say.
//!
//! Must know every piece that a path of the table has.

use serde_json::{Value, json};

use super::super::super::roles::Row;
use super::super::super::words;
use super::super::{Asked, Entry, Kind};

/// Pieces of paths: what they are, and an example.
const PIECES: [(&str, &str, &str); 9] = [
    ("policy", "The policy's name.", "lookups"),
    ("name", "The policy's name.", "login"),
    ("attribute", "The attribute's name.", "participant"),
    ("value", "The real value.", "12345678"),
    ("id", "The block's id.", "7"),
    ("fence", "The lease's number.", "1769860800000000"),
    ("code", "The error's code.", "bad-json"),
    ("gate", "The gate's name.", "login"),
    ("rest", "The client's path, which may contain slashes.", "api/orders/7"),
];

/// Every parameter of a call.
pub fn parameters(row: &Row, entry: &Entry) -> Value {
    let template = row.template();
    let pieces = template.split('/').filter_map(|piece| {
        let name = piece.strip_prefix('{')?.strip_suffix('}')?;
        Some(piece_of(name))
    });
    pieces.chain(entry.query.iter().map(asked)).collect()
}

fn piece_of(name: &str) -> Value {
    let known = PIECES.iter().find(|(own, ..)| *own == name);
    let (_, about, example) = known.copied().unwrap_or((name, "", ""));
    json!({
        "name": name, "in": "path", "required": true, "description": about,
        "schema": { "type": "string", "minLength": 1 }, "example": example,
    })
}

fn asked(asked: &Asked) -> Value {
    let (schema, example) = match asked.kind {
        Kind::Text(example) => {
            (json!({ "type": "string" }), Some(example).filter(|text| !text.is_empty()).into())
        }
        Kind::Number(example) => (json!({ "type": "integer", "minimum": 0 }), example.into()),
        Kind::Instant => (json!({ "type": "string", "format": "date-time" }), words::NOON.into()),
        Kind::Words(words) => (json!({ "type": "string", "enum": words }), Value::Null),
    };
    let mut parameter = json!({
        "name": asked.name, "in": "query", "description": asked.about, "schema": schema,
    });
    if !example.is_null() {
        parameter["example"] = example;
    }
    parameter
}
