//! Values of examples, and the schema of an optional mode, for the OpenAPI document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The first instant of examples.
pub const NOON: &str = "2026-01-31T12:00:00Z";
/// The second instant of examples.
pub const EVENING: &str = "2026-01-31T18:00:00Z";

/// The id of a block in examples.
pub const BLOCK_ID: &str = "6495e3a5b8000a3f09c2d4b17";

/// A catalog's revision in examples.
pub const REVISION: &str = "9f2c61d0a7b3e845";

/// The subject of examples.
pub fn example_subject() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("ip", "198.51.100.7")])
}

/// A mode, or null for that of the catalog; a field of this type is required.
pub struct ModeOrNull;

impl JsonSchema for ModeOrNull {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("ModeOrNull")
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "enum": ["enforce", "shadow", "off", null] })
    }
}
