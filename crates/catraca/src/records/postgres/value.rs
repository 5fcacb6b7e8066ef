//! Statement parameters with their PostgreSQL types.
//!
//! PostgreSQL text cannot hold U+0000, so calls with one are refused earlier. If one arrives here
//! anyway, it is replaced by U+2400: a record that always fails would be rejected as a whole.

use tokio_postgres::types::{ToSql, Type};

/// One parameter of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Flag(bool),
}

impl Value {
    pub(super) fn to_parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Int(value) => (value, Type::INT8),
            Self::Text(value) => (value, Type::TEXT),
            Self::Bytes(value) => (value, Type::BYTEA),
            Self::Flag(value) => (value, Type::BOOL),
        }
    }
}

/// The text with U+0000 replaced.
pub(super) fn replace_nul(text: &str) -> String {
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
        Self::Text(Some(replace_nul(value)))
    }
}

impl From<&String> for Value {
    fn from(value: &String) -> Self {
        Self::from(value.as_str())
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(replace_nul))
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

/// The parameters of one statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        Vec::from([$($crate::records::postgres::value::Value::from($value)),*])
    };
}

pub(super) use values;
