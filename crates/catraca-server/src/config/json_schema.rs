//! The JSON Schema of a catalog (draft 2020-12), from the declarations of all its sections.
//!
//! Keywords of our own: `x-order` has the fields of a table in their order, `x-values` describes a
//! pattern and `x-default` a default that is not a value, `x-minimum` and `x-maximum` bound
//! durations, `x-markdown` is a description with its links into the guide, which lead nowhere in an
//! editor, and `x-restart` marks a setting that takes effect after a restart (`"if-added"`: only if
//! it is added or removed). A text may contain variables such as `${NAME}`, which every pattern
//! accepts.

use catraca::core::catalog::read::CATALOG;
use catraca::core::located::names::NAME_PATTERN;
use catraca::core::located::{DefaultValue, Effect, FieldSchema, TableSchema, ValueSchema};
use catraca::core::time::Span;
use serde_json::{Map, Value, json};

use super::process::PROCESS_SECTIONS;

/// Sections whose tables have names of the catalog's author.
const NAMED_SECTIONS: [&str; 3] = ["policy", "gate", "attribute"];
/// Matches a text with a variable, whose value is not known here.
const VARIABLE: &str = r"\$\{";
const DURATION: &str = r"^\s*([0-9]+(d|h|m|s|ms|us|µs))+\s*$";
const DURATION_OR_FOREVER: &str = r"^\s*(forever|([0-9]+(d|h|m|s|ms|us|µs))+)\s*$";
const RATE: &str = r"^\s*[0-9_]+ +per +([0-9]+(d|h|m|s|ms|us|µs))+\s*$";
const PERCENT: &str = r"^\s*[0-9]+([.][0-9]+)?\s*%\s*$";
const INSTANT: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}";

/// The schema of a whole catalog.
pub fn document() -> Value {
    let fields: Vec<FieldSchema> =
        CATALOG.fields.iter().chain(&PROCESS_SECTIONS).copied().collect();
    let mut schema = object(&fields);
    for section in NAMED_SECTIONS {
        if let Some(Value::Object(section)) = schema["properties"].get_mut(section) {
            section.insert("propertyNames".into(), json!({ "pattern": NAME_PATTERN }));
        }
    }
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), "Catraca catalog".into());
    schema.into()
}

fn object(fields: &[FieldSchema]) -> Map<String, Value> {
    let properties: Map<_, _> =
        fields.iter().map(|schema| (schema.name.to_owned(), field(schema))).collect();
    let order: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let is_required = |field: &&FieldSchema| field.default == DefaultValue::Required;
    let required: Vec<&str> = fields.iter().filter(is_required).map(|field| field.name).collect();
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), properties.into());
    object.insert("additionalProperties".into(), false.into());
    object.insert("x-order".into(), order.into());
    if !required.is_empty() {
        object.insert("required".into(), required.into());
    }
    object
}

fn field(field: &FieldSchema) -> Value {
    let mut schema = value(&field.value);
    let description = without_links(field.about);
    if description != field.about {
        schema.insert("x-markdown".into(), field.about.into());
    }
    schema.insert("description".into(), description.into());
    match field.default {
        DefaultValue::Required | DefaultValue::Absent("") => {}
        DefaultValue::Absent(words) => drop(schema.insert("x-default".into(), words.into())),
        DefaultValue::Text(text) => drop(schema.insert("default".into(), text.into())),
        DefaultValue::Integer(number) => drop(schema.insert("default".into(), number.into())),
        DefaultValue::Flag(flag) => drop(schema.insert("default".into(), flag.into())),
        DefaultValue::EmptyList => drop(schema.insert("default".into(), json!([]))),
    }
    match field.effect {
        Effect::Live => {}
        Effect::Restart => drop(schema.insert("x-restart".into(), true.into())),
        Effect::RestartIfAdded => drop(schema.insert("x-restart".into(), "if-added".into())),
    }
    schema.into()
}

/// A text with the words of its Markdown links, and without their targets.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, (_, after))) = link
            .split_once("](")
            .and_then(|(words, target)| Some((words, target.split_once(')')?)))
        else {
            break;
        };
        plain.extend([before, words]);
        rest = after;
    }
    plain + rest
}

fn value(schema: &ValueSchema) -> Map<String, Value> {
    let json = match schema {
        ValueSchema::Text => json!({ "type": "string" }),
        ValueSchema::Pattern { pattern, words } => return text(pattern, words),
        ValueSchema::Word(words) => {
            json!({ "anyOf": [{ "enum": words() }, { "type": "string", "pattern": VARIABLE }] })
        }
        ValueSchema::Url(schemes) => {
            return text(&format!(r"^({})([+][a-z]+)?(:|$)", schemes.join("|")), "a URL");
        }
        ValueSchema::Duration { least, most } => return duration(*least, *most),
        ValueSchema::Rate => return text(RATE, "a rate"),
        ValueSchema::Percent => return text(PERCENT, "a percentage"),
        ValueSchema::Flag => json!({ "type": "boolean" }),
        ValueSchema::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        ValueSchema::Instant => return text(INSTANT, "an instant"),
        ValueSchema::List { of, most } => match *most {
            usize::MAX => json!({ "type": "array", "items": value(of) }),
            most => json!({ "type": "array", "items": value(of), "maxItems": most }),
        },
        ValueSchema::Table(TableSchema { fields, .. }) => return object(fields),
        ValueSchema::Map(of) => json!({ "type": "object", "additionalProperties": value(of) }),
        ValueSchema::AnyOf(all) => json!({ "anyOf": all.iter().map(value).collect::<Vec<_>>() }),
    };
    match json {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// A text that matches a pattern, or has a variable; `words` describe the pattern.
fn text(pattern: &str, words: &str) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), "string".into());
    schema.insert("pattern".into(), format!("{pattern}|{VARIABLE}").into());
    schema.insert("x-values".into(), words.into());
    schema
}

/// A schema cannot compare durations, so their bounds are only stated.
fn duration(least: Span, most: Span) -> Map<String, Value> {
    let mut schema = match most.is_forever() {
        true => text(DURATION_OR_FOREVER, "a duration, or `forever`"),
        false => text(DURATION, "a duration"),
    };
    if least > Span::from_micros(1) {
        schema.insert("x-minimum".into(), least.to_string().into());
    }
    // The longest duration that can be written is no bound that a reader needs.
    if most < Span::from_micros(Span::FOREVER.micros() - 1) {
        schema.insert("x-maximum".into(), most.to_string().into());
    }
    schema
}
