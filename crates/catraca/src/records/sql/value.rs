//! Parameters and columns of statements, as every dialect has them.

use std::borrow::Cow;

use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};

use crate::records::database::DatabaseResult;
use crate::records::error::DatabaseError;

/// One parameter of a statement. NULL has a type too: a server needs it.
#[derive(Clone, Debug)]
pub(in crate::records) enum Value<'v> {
    Int(Option<i64>),
    Text(Option<Cow<'v, str>>),
    Bytes(Option<Vec<u8>>),
    Flag(bool),
}

impl Value<'_> {
    /// The value, independent of what it borrows.
    pub fn to_owned(&self) -> Value<'static> {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Text(value) => Value::Text(value.clone().map(|text| text.into_owned().into())),
            Self::Bytes(value) => Value::Bytes(value.clone()),
            Self::Flag(value) => Value::Flag(*value),
        }
    }
}

/// The text with U+0000 replaced by U+2400. Calls with one are refused earlier; if one arrives here
/// anyway, PostgreSQL, whose texts cannot hold it, would reject the record as a whole.
fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{2400}").into() } else { text.into() }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<Time> for Value<'_> {
    fn from(value: Time) -> Self {
        Self::Int(Some(value.micros()))
    }
}

impl From<Span> for Value<'_> {
    fn from(value: Span) -> Self {
        Self::Int(Some(value.micros()))
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(value: &'v str) -> Self {
        Self::Text(Some(replace_nul(value)))
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(value: &'v String) -> Self {
        Self::from(value.as_str())
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(value: Option<&'v str>) -> Self {
        Self::Text(value.map(replace_nul))
    }
}

impl From<Key> for Value<'_> {
    fn from(value: Key) -> Self {
        Self::Bytes(Some(value.to_bytes().into()))
    }
}

impl From<Option<Key>> for Value<'_> {
    fn from(value: Option<Key>) -> Self {
        Self::Bytes(value.map(|key| key.to_bytes().into()))
    }
}

impl From<[u8; 16]> for Value<'_> {
    fn from(value: [u8; 16]) -> Self {
        Self::Bytes(Some(value.into()))
    }
}

impl From<Option<Vec<u8>>> for Value<'_> {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

/// The parameters of one statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        [$($crate::records::sql::value::Value::from($value)),*]
    };
}

pub(in crate::records) use values;

/// One column of a row. Dialects without a type for flags have them as numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::records) enum Column<'r> {
    Null,
    Int(i64),
    Text(&'r str),
    Bytes(&'r [u8]),
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "SQLite has no such type"))]
    Flag(bool),
}

/// A row of a query.
pub(in crate::records) trait SqlRow {
    fn column(&self, index: usize) -> DatabaseResult<Column<'_>>;
}

impl dyn SqlRow + '_ {
    /// Reads a column. One of another type, or with an impossible value, is an error.
    pub fn get<'r, T: FromColumn<'r>>(&'r self, index: usize) -> DatabaseResult<T> {
        T::from_column(self.column(index)?)
            .ok_or_else(|| DatabaseError::Bad(format!("a row has an invalid column {index}")))
    }
}

/// The error of a row with an impossible value.
pub(in crate::records) fn invalid_column(what: &str) -> DatabaseError {
    DatabaseError::Bad(format!("a row has an invalid {what}"))
}

/// A type that a column can have.
pub(in crate::records) trait FromColumn<'r>: Sized {
    fn from_column(column: Column<'r>) -> Option<Self>;
}

impl<'r, T: FromColumn<'r>> FromColumn<'r> for Option<T> {
    fn from_column(column: Column<'r>) -> Option<Self> {
        match column {
            Column::Null => Some(None),
            column => T::from_column(column).map(Some),
        }
    }
}

impl<'r> FromColumn<'r> for i64 {
    fn from_column(column: Column<'r>) -> Option<Self> {
        if let Column::Int(number) = column { Some(number) } else { None }
    }
}

impl<'r> FromColumn<'r> for u64 {
    fn from_column(column: Column<'r>) -> Option<Self> {
        i64::from_column(column)?.try_into().ok()
    }
}

impl<'r> FromColumn<'r> for u32 {
    fn from_column(column: Column<'r>) -> Option<Self> {
        i64::from_column(column)?.try_into().ok()
    }
}

impl<'r> FromColumn<'r> for u16 {
    fn from_column(column: Column<'r>) -> Option<Self> {
        i64::from_column(column)?.try_into().ok()
    }
}

impl<'r> FromColumn<'r> for Time {
    fn from_column(column: Column<'r>) -> Option<Self> {
        i64::from_column(column).map(Time::from_micros)
    }
}

impl<'r> FromColumn<'r> for Span {
    fn from_column(column: Column<'r>) -> Option<Self> {
        i64::from_column(column).map(Span::from_micros)
    }
}

impl<'r> FromColumn<'r> for bool {
    fn from_column(column: Column<'r>) -> Option<Self> {
        match column {
            Column::Flag(flag) => Some(flag),
            Column::Int(number) => Some(number != 0),
            _ => None,
        }
    }
}

impl<'r> FromColumn<'r> for &'r str {
    fn from_column(column: Column<'r>) -> Option<Self> {
        if let Column::Text(text) = column { Some(text) } else { None }
    }
}

impl<'r> FromColumn<'r> for String {
    fn from_column(column: Column<'r>) -> Option<Self> {
        <&str>::from_column(column).map(str::to_owned)
    }
}

impl<'r> FromColumn<'r> for &'r [u8] {
    fn from_column(column: Column<'r>) -> Option<Self> {
        if let Column::Bytes(bytes) = column { Some(bytes) } else { None }
    }
}

impl<'r> FromColumn<'r> for Vec<u8> {
    fn from_column(column: Column<'r>) -> Option<Self> {
        <&[u8]>::from_column(column).map(<[u8]>::to_vec)
    }
}

impl<'r> FromColumn<'r> for Key {
    fn from_column(column: Column<'r>) -> Option<Self> {
        <&[u8]>::from_column(column)?.try_into().ok().map(Key::from_bytes)
    }
}
