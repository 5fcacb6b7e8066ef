//! Parses the expectations of steps: the fields of an answer and their expected values.
//!
//! Every field name is checked against the answer of the verb, see `schema`.

use catraca_core::time::Time;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::located::{DiagnosticSink, Node, integer};
use super::schema::{Field, FieldType};
use super::suggestions;

/// Expects a field that is null or absent; TOML has no null.
pub(super) const NULL: &str = "null";
/// Expects any value but null.
pub(super) const ANY: &str = "any";

/// Reads the expectation of an answer that has these fields.
pub(super) fn read_expectation(
    diagnostics: &mut DiagnosticSink<'_>,
    node: Node<'_>,
    fields: &[Field],
) -> Option<Value> {
    let read = table(diagnostics, node, fields);
    if node.value.as_table().is_some_and(|table| table.is_empty()) {
        let message = "nothing is expected, so the step cannot fail".to_owned();
        let fix = match fields.first() {
            Some((name, _)) => format!("name what the answer must have, such as `{name}`"),
            None => "remove it: the answer of this verb has no fields".to_owned(),
        };
        diagnostics.error("expects-nothing", node.position, message, fix);
        return None;
    }
    read
}

fn value(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>, shape: FieldType) -> Option<Value> {
    // `"null"` and `"any"` are valid for every type, tables included.
    if matches!(node.value.as_str(), Some(NULL | ANY)) {
        return plain(diagnostics, node);
    }
    match shape {
        FieldType::Plain => plain(diagnostics, node),
        FieldType::Word(words) => word(diagnostics, node, words),
        FieldType::Open => open(diagnostics, node),
        FieldType::Table(fields) => table(diagnostics, node, fields),
        FieldType::Tables(fields) => {
            let items = node.items(diagnostics, "a list of tables")?;
            let read: Vec<_> =
                items.into_iter().map(|item| table(diagnostics, item, fields)).collect();
            read.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
    }
}

fn table(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>, fields: &[Field]) -> Option<Value> {
    let known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let wanted = format!("a table with some of: {}", known.join(", "));
    let mut read = Some(Map::new());
    for (position, name, node) in node.entries(diagnostics, &wanted)? {
        let Some((_, shape)) = fields.iter().find(|(known, _)| *known == name) else {
            let message = format!("the answer has no field `{name}`");
            diagnostics.error(
                "unknown-field",
                position,
                message,
                suggestions::suggest(name, &known),
            );
            continue;
        };
        let value = value(diagnostics, node, *shape);
        read = read.zip(value).map(|(read, value)| with(read, name, value));
    }
    read.map(Value::Object)
}

fn word(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>, words: &[&str]) -> Option<Value> {
    let text = node.text(diagnostics, &format!("one of: {}", words.join(", ")))?;
    if !words.contains(&text) {
        let message = format!("`{}` is not a possible value of this field", text.escape_debug());
        diagnostics.error(
            "unknown-word",
            node.position,
            message,
            suggestions::suggest(text, words),
        );
        return None;
    }
    Some(Value::from(text))
}

fn open(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>) -> Option<Value> {
    let mut read = Some(Map::new());
    for (_, name, node) in node.entries(diagnostics, "a table")? {
        let value = plain(diagnostics, node);
        read = read.zip(value).map(|(read, value)| with(read, name, value));
    }
    read.map(Value::Object)
}

fn with(mut map: Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    map.insert(name.to_owned(), value);
    map
}

fn plain(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>) -> Option<Value> {
    match node.value {
        DeValue::Array(_) | DeValue::Table(_) => {
            node.refuse(diagnostics, "a plain value, \"null\" or \"any\"")
        }
        DeValue::Datetime(datetime) => {
            let text = datetime.to_string();
            let instant = Time::parse_rfc3339(&text).map_or(text, Time::to_rfc3339);
            Some(Value::String(instant))
        }
        _ => json(diagnostics, node),
    }
}

/// Any TOML value as JSON: the bodies of outcomes, and plain expectations.
pub(super) fn json(diagnostics: &mut DiagnosticSink<'_>, node: Node<'_>) -> Option<Value> {
    Some(match node.value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(_) => {
            let read = integer(node.value);
            return read
                .map(Value::from)
                .or_else(|| node.refuse(diagnostics, "a number of 64 bits"));
        }
        DeValue::Float(float) => {
            let read = float.as_str().parse::<f64>().ok();
            return read.map(Value::from).or_else(|| node.refuse(diagnostics, "a number"));
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(_) => {
            let items = node.items(diagnostics, "a list")?;
            let read: Vec<_> = items.into_iter().map(|item| json(diagnostics, item)).collect();
            Value::Array(read.into_iter().collect::<Option<_>>()?)
        }
        DeValue::Table(_) => {
            let entries = node.entries(diagnostics, "a table")?.into_iter();
            let read =
                entries.map(|(_, name, node)| Some((name.to_owned(), json(diagnostics, node)?)));
            Value::Object(read.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
        }
    })
}
