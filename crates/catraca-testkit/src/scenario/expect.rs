//! Expectations: the part of an answer that a step cares about.
//!
//! Every name is checked against the verb's answer when the file is read. Must not compare.

use catraca_core::time::Time;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::names;
use super::node::{Desk, Node, integer};
use super::schema::{Field, Shape};

/// Stands for a value that is null or not there, since TOML has no null.
pub(super) const NULL: &str = "null";
/// Stands for any value but null.
pub(super) const ANY: &str = "any";

/// Reads what is expected of an answer with these fields.
pub(super) fn expected(desk: &mut Desk<'_>, node: Node<'_>, fields: &[Field]) -> Option<Value> {
    let read = table(desk, node, fields);
    if node.value.as_table().is_some_and(|table| table.is_empty()) {
        let message = "nothing is expected, so the step cannot fail".to_owned();
        let fix = match fields.first() {
            Some((name, _)) => format!("name what the answer must have, such as `{name}`"),
            None => "remove it: this verb answers nothing".to_owned(),
        };
        desk.error("expects-nothing", node.place, message, fix);
        return None;
    }
    read
}

fn value(desk: &mut Desk<'_>, node: Node<'_>, shape: Shape) -> Option<Value> {
    if matches!(node.value.as_str(), Some(NULL | ANY)) {
        return plain(desk, node);
    }
    match shape {
        Shape::Plain => plain(desk, node),
        Shape::Word(words) => word(desk, node, words),
        Shape::Open => open(desk, node),
        Shape::Table(fields) => table(desk, node, fields),
        Shape::Tables(fields) => {
            let items = node.items(desk, "a list of tables")?;
            let read: Vec<_> = items.into_iter().map(|item| table(desk, item, fields)).collect();
            read.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
    }
}

fn table(desk: &mut Desk<'_>, node: Node<'_>, fields: &[Field]) -> Option<Value> {
    let known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let wanted = format!("a table with some of: {}", known.join(", "));
    let mut read = Some(Map::new());
    for (place, name, node) in node.entries(desk, &wanted)? {
        let Some((_, shape)) = fields.iter().find(|(known, _)| *known == name) else {
            let message = format!("the answer has no field `{name}`");
            desk.error("unknown-field", place, message, names::suggest(name, &known));
            continue;
        };
        let value = value(desk, node, *shape);
        read = read.zip(value).map(|(read, value)| with(read, name, value));
    }
    read.map(Value::Object)
}

fn word(desk: &mut Desk<'_>, node: Node<'_>, words: &[&str]) -> Option<Value> {
    let text = node.text(desk, &format!("one of: {}", words.join(", ")))?;
    if !words.contains(&text) {
        let message = format!("no answer ever says `{}` here", text.escape_debug());
        desk.error("unknown-word", node.place, message, names::suggest(text, words));
        return None;
    }
    Some(Value::from(text))
}

fn open(desk: &mut Desk<'_>, node: Node<'_>) -> Option<Value> {
    let mut read = Some(Map::new());
    for (_, name, node) in node.entries(desk, "a table")? {
        let value = plain(desk, node);
        read = read.zip(value).map(|(read, value)| with(read, name, value));
    }
    read.map(Value::Object)
}

fn with(mut map: Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    map.insert(name.to_owned(), value);
    map
}

fn plain(desk: &mut Desk<'_>, node: Node<'_>) -> Option<Value> {
    match node.value {
        DeValue::Array(_) | DeValue::Table(_) => {
            node.refuse(desk, "a plain value, \"null\" or \"any\"")
        }
        DeValue::Datetime(datetime) => {
            let text = datetime.to_string();
            let instant = Time::parse_rfc3339(&text).map_or(text, Time::to_rfc3339);
            Some(Value::String(instant))
        }
        _ => json(desk, node),
    }
}

/// Any value as JSON: bodies of answers, and plain expectations.
pub(super) fn json(desk: &mut Desk<'_>, node: Node<'_>) -> Option<Value> {
    Some(match node.value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(_) => {
            let read = integer(node.value);
            return read.map(Value::from).or_else(|| node.refuse(desk, "a number of 64 bits"));
        }
        DeValue::Float(float) => {
            let read = float.as_str().parse::<f64>().ok();
            return read.map(Value::from).or_else(|| node.refuse(desk, "a number"));
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(_) => {
            let items = node.items(desk, "a list")?;
            let read: Vec<_> = items.into_iter().map(|item| json(desk, item)).collect();
            Value::Array(read.into_iter().collect::<Option<_>>()?)
        }
        DeValue::Table(_) => {
            let entries = node.entries(desk, "a table")?.into_iter();
            let read = entries.map(|(_, name, node)| Some((name.to_owned(), json(desk, node)?)));
            Value::Object(read.collect::<Vec<_>>().into_iter().collect::<Option<_>>()?)
        }
    })
}
