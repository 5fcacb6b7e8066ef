//! Parses the expectations of steps: the fields of an answer and their expected values.
//!
//! Every field name is checked against the answer of the verb, see `schema`.

use catraca_core::located::{Node, Report, names};
use catraca_core::time::Time;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::fields::text;
use super::schema::{Field, FieldType};

/// Expects a field that is null or absent; TOML has no null.
pub(super) const NULL: &str = "null";
/// Expects any value but null.
pub(super) const ANY: &str = "any";
const NO_FIELDS: &str = "remove it: the answer of this verb has no fields";

/// Reads the expectation of an answer that has these fields.
pub(super) fn read_expectation(
    report: &mut Report,
    node: Node<'_>,
    fields: &[Field],
) -> Option<Value> {
    let read = table(report, node, fields);
    if node.value.as_table().is_some_and(|table| table.is_empty()) {
        let message = "nothing is expected, so the step cannot fail";
        let fix = match fields.first() {
            Some((name, _)) => format!("name what the answer must have, such as `{name}`"),
            None => NO_FIELDS.to_owned(),
        };
        report.error("expects-nothing", node.location, message, fix);
        return None;
    }
    read
}

fn value(report: &mut Report, node: Node<'_>, shape: FieldType) -> Option<Value> {
    // `"null"` and `"any"` are valid for every type, tables included.
    if matches!(node.value.as_str(), Some(NULL | ANY)) {
        return plain(report, node);
    }
    match shape {
        FieldType::Plain => plain(report, node),
        FieldType::Word(words) => word(report, node, words),
        FieldType::Open => open(report, node),
        FieldType::Table(fields) => table(report, node, fields),
        FieldType::Tables(fields) => {
            let items = node.items(report, "a list of tables")?;
            let read: Vec<_> = items.into_iter().map(|item| table(report, item, fields)).collect();
            read.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
    }
}

fn table(report: &mut Report, node: Node<'_>, fields: &[Field]) -> Option<Value> {
    let known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let wanted = format!("a table with some of: {}", known.join(", "));
    let mut read = Some(Map::new());
    for (key, node) in node.entries(report, &wanted)? {
        let name = key.text;
        let Some((_, shape)) = fields.iter().find(|(known, _)| *known == name) else {
            let message = format!("the answer has no field `{name}`");
            let fix = match known.is_empty() {
                true => NO_FIELDS.to_owned(),
                false => names::suggest(report, name, &known),
            };
            report.error("unknown-field", key.location, message, fix);
            continue;
        };
        let value = value(report, node, *shape);
        read = read.zip(value).map(|(read, value)| with(read, name, value));
    }
    read.map(Value::Object)
}

fn word(report: &mut Report, node: Node<'_>, words: &[&str]) -> Option<Value> {
    let text = text(report, node, &format!("one of: {}", words.join(", ")))?;
    if !words.contains(&text) {
        let message = format!("`{}` is not a possible value of this field", text.escape_debug());
        let fix = names::suggest(report, text, words);
        report.error("unknown-word", node.location, message, fix);
        return None;
    }
    Some(Value::from(text))
}

fn open(report: &mut Report, node: Node<'_>) -> Option<Value> {
    let mut read = Some(Map::new());
    for (key, node) in node.entries(report, "a table")? {
        let value = plain(report, node);
        read = read.zip(value).map(|(read, value)| with(read, key.text, value));
    }
    read.map(Value::Object)
}

fn with(mut map: Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    map.insert(name.to_owned(), value);
    map
}

fn plain(report: &mut Report, node: Node<'_>) -> Option<Value> {
    match node.value {
        DeValue::Array(_) | DeValue::Table(_) => {
            node.report_wrong_type(report, "a plain value, \"null\" or \"any\"")
        }
        DeValue::Datetime(datetime) => {
            let text = datetime.to_string();
            let instant = Time::parse_rfc3339(&text).map_or(text, Time::to_rfc3339);
            Some(Value::String(instant))
        }
        _ => json(report, node),
    }
}

/// Any TOML value as JSON: the bodies of outcomes, and plain expectations.
pub(super) fn json(report: &mut Report, node: Node<'_>) -> Option<Value> {
    Some(match node.value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(_) => {
            return node.integer(report, "a number of 64 bits").map(Value::from);
        }
        DeValue::Float(float) => {
            let read = float.as_str().parse::<f64>().ok();
            return read.map(Value::from).or_else(|| node.report_wrong_type(report, "a number"));
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(_) => {
            let items = node.items(report, "a list")?;
            let read: Vec<_> = items.into_iter().map(|item| json(report, item)).collect();
            Value::Array(read.into_iter().collect::<Option<_>>()?)
        }
        DeValue::Table(_) => {
            let entries = node.entries(report, "a table")?.into_iter();
            let read = entries.map(|(key, node)| Some((key.text.to_owned(), json(report, node)?)));
            Value::Object(read.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
        }
    })
}
