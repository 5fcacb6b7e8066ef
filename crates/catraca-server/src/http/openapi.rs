//! The OpenAPI 3.1 document, generated from the table of endpoints and the types of bodies.
//!
//! `docs/errors.md` describes the error codes. A test keeps `docs/openapi.json` equal to the served
//! document.

mod build;
mod example;

use std::sync::OnceLock;

use serde_json::Value;

pub use build::document;

/// The document as pretty-printed JSON, as it is served and checked in.
pub fn document_text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = serde_json::to_string_pretty(document()).unwrap_or_default();
        text.push('\n');
        text
    })
}

/// The value that a `$ref` such as `#/components/schemas/Block` points to.
fn resolve_ref<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    document.pointer(reference.strip_prefix('#')?)
}
