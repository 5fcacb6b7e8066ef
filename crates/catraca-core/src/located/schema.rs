//! Declarations of tables: the name, type, default and meaning of every field.
//!
//! A reader gets the known fields from here, so a field that is not declared cannot be read.

use crate::time::Span;

/// A table with declared fields.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// What the table is in messages, such as `policy` or `store section`.
    pub name: &'static str,
    /// Its fields, in the order in which suggestions list them.
    pub fields: &'static [FieldSchema],
}

/// One field of a table.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema {
    /// Its name.
    pub name: &'static str,
    /// The values that it accepts.
    pub value: ValueSchema,
    /// Its value if it is left out.
    pub default: DefaultValue,
    /// When a running program applies a new value.
    pub effect: Effect,
    /// Its meaning, in one line of Markdown.
    pub about: &'static str,
}

/// When a running program applies the new value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At once.
    Live,
    /// After a restart.
    Restart,
    /// At once, but after a restart if the field is added or removed.
    RestartIfAdded,
}

/// The value of a field that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The field is required.
    Required,
    /// There is no value; the text describes what happens then, and may be empty.
    Absent(&'static str),
    /// A text.
    Text(&'static str),
    /// A whole number.
    Integer(i64),
    /// A boolean.
    Flag(bool),
    /// A list without items.
    EmptyList,
}

/// The values that a field accepts.
#[derive(Clone, Copy, Debug)]
pub enum ValueSchema {
    /// Any text.
    Text,
    /// A text of this form, which the words describe.
    Pattern {
        /// A regular expression in the dialect of JSON Schema.
        pattern: &'static str,
        /// A description for people.
        words: &'static str,
    },
    /// One of these keywords. A function, so that a reader and its schema share one list.
    Word(fn() -> Vec<&'static str>),
    /// A text that begins with one of these URL schemes.
    Url(&'static [&'static str]),
    /// A duration in this range. [`Span::FOREVER`] as the longest accepts `forever`.
    Duration {
        /// The shortest.
        least: Span,
        /// The longest.
        most: Span,
    },
    /// A rate such as `10 per 15m`.
    Rate,
    /// A percentage such as `20%`.
    Percent,
    /// `true` or `false`.
    Flag,
    /// A whole number in this range.
    Integer {
        /// The smallest.
        least: i64,
        /// The largest.
        most: i64,
    },
    /// A date with a time, as a text or in TOML's own notation.
    Instant,
    /// A list.
    List {
        /// Its items.
        of: &'static ValueSchema,
        /// The most items.
        most: usize,
    },
    /// A table with declared fields.
    Table(&'static TableSchema),
    /// A table with arbitrary keys.
    Map(&'static ValueSchema),
    /// Any of these.
    AnyOf(&'static [ValueSchema]),
}

impl TableSchema {
    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// The declaration of a field.
    pub fn field(&self, name: &str) -> Option<&'static FieldSchema> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl FieldSchema {
    /// An optional field without a default, which a running server applies at once.
    pub const fn new(name: &'static str, value: ValueSchema, about: &'static str) -> Self {
        Self { name, value, default: DefaultValue::Absent(""), effect: Effect::Live, about }
    }

    /// The same field with a default.
    #[must_use]
    pub const fn or(self, default: DefaultValue) -> Self {
        Self { default, ..self }
    }

    /// The same field, required.
    #[must_use]
    pub const fn require(self) -> Self {
        self.or(DefaultValue::Required)
    }

    /// The same field, whose new value takes effect after a restart.
    #[must_use]
    pub const fn after_restart(self) -> Self {
        Self { effect: Effect::Restart, ..self }
    }
}

impl ValueSchema {
    /// A duration from one microsecond to `most`.
    pub const fn duration_up_to(most: Span) -> Self {
        Self::Duration { least: Span::from_micros(1), most }
    }

    /// A finite duration, at least this long.
    pub const fn duration_from(least: Span) -> Self {
        Self::Duration { least, most: LONGEST }
    }

    /// A finite duration above zero.
    pub const DURATION: Self = Self::duration_from(Span::from_micros(1));
    /// A duration above zero, or `forever`.
    pub const DURATION_OR_FOREVER: Self = Self::duration_up_to(Span::FOREVER);
}

/// Several lists of fields as one; `N` must be the sum of their lengths.
pub const fn join<const N: usize>(lists: &[&[FieldSchema]]) -> [FieldSchema; N] {
    let mut all = [lists[0][0]; N];
    let mut length = 0;
    let mut list = 0;
    while list < lists.len() {
        let mut field = 0;
        while field < lists[list].len() {
            all[length] = lists[list][field];
            length += 1;
            field += 1;
        }
        list += 1;
    }
    assert!(length == N, "not the sum of the lengths");
    all
}

/// The longest duration that is not `forever`.
const LONGEST: Span = Span::from_micros(Span::FOREVER.micros() - 1);

/// The keywords of a list of keywords with their values.
pub fn words<T>(pairs: &[(&'static str, T)]) -> Vec<&'static str> {
    pairs.iter().map(|(word, _)| *word).collect()
}
