//! Tables of a catalog in memory, and how they are written as TOML.

use std::fmt::{self, Write};

use crate::time::Span;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Flag(bool),
    List(Vec<Value>),
    Table(Table),
}

/// The fields of a table, in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub fields: Vec<(String, Value)>,
}

impl Table {
    /// Sets a field; an earlier value is replaced.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.fields.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    /// Adds an item to a field that is a list.
    pub fn push(&mut self, name: &str, item: impl Into<Value>) {
        let item = item.into();
        match self.fields.iter_mut().find(|(own, _)| own == name) {
            Some((_, Value::List(items))) => items.push(item),
            _ => self.set(name, Value::List(vec![item])),
        }
    }

    /// Adds an entry to a field that is a table.
    pub fn set_entry(&mut self, name: &str, key: &str, value: impl Into<Value>) {
        if let Some((_, Value::Table(table))) = self.fields.iter_mut().find(|(own, _)| own == name)
        {
            return table.set(key, value);
        }
        let mut table = Self::default();
        table.set(key, value);
        self.set(name, table);
    }

    /// Adds an entry to a table that is a field of a table.
    pub fn set_nested(&mut self, name: &str, field: &str, key: &str, value: impl Into<Value>) {
        let mut inner = match self.fields.iter().find(|(own, _)| own == name) {
            Some((_, Value::Table(table))) => table.clone(),
            _ => Self::default(),
        };
        inner.set_entry(field, key, value);
        self.set(name, inner);
    }
}

/// A rate as it is written in a catalog.
pub(super) fn rate(amount: i64, per: Span) -> String {
    format!("{amount} per {per}")
}

/// The keyword of a value.
pub(super) fn keyword<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let found = words.iter().find(|(_, own)| own == value);
    found.map_or("", |(word, _)| word)
}

/// The texts of an iterator as a list.
pub(super) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::List(texts.into_iter().map(|text| Value::Text(text.into())).collect())
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Self {
        Self::Text(span.to_string())
    }
}

impl From<Table> for Value {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write_text(f, text),
            Self::Integer(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
                }
                f.write_char(']')
            }
            Self::Table(table) => {
                f.write_str("{ ")?;
                for (at, (name, value)) in table.fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{} = {value}", TomlKey(name))?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// A key of a table, in quotes if it needs them.
pub(super) struct TomlKey<'a>(pub &'a str);

impl fmt::Display for TomlKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !self.0.is_empty() && self.0.bytes().all(is_bare) {
            return f.write_str(self.0);
        }
        write_quoted(f, self.0)
    }
}

/// A text in quotes. `${` is escaped, because the reader would take it for a variable.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write_quoted(f, &text.replace("${", "$${"))
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
