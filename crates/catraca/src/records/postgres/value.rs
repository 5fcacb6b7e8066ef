//! Values on their way to the server, each with the type that the server is told.
//!
//! The server takes no U+0000 in a text, so calls that bring one are refused. Should one arrive all
//! the same, it is replaced by U+2400: a record that is always refused would stop the queue. Must
//! not be read back.

use tokio_postgres::types::{ToSql, Type};

/// One value of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Flag(bool),
}

impl Value {
    pub(super) fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Int(value) => (value, Type::INT8),
            Self::Text(value) => (value, Type::TEXT),
            Self::Bytes(value) => (value, Type::BYTEA),
            Self::Flag(value) => (value, Type::BOOL),
        }
    }
}

/// A text as the server takes it.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(clean(value)))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::from(value.as_str())
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(clean))
    }
}

impl From<[u8; 16]> for Value {
    fn from(value: [u8; 16]) -> Self {
        Self::Bytes(Some(value.into()))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

/// The values of one statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        Vec::from([$($crate::records::postgres::value::Value::from($value)),*])
    };
}

pub(super) use values;
