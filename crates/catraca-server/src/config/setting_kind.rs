//! The kinds of settings: how the value of a field is read, and what the schema says about it.
//!
//! A kind is a type without values, so that the declaration of a field names it once.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use catraca::core::catalog::read::AttributeTable;
use catraca::core::located::names::NAME_PATTERN;
use catraca::core::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, ValueSchema, scalar, schema,
};
use catraca::core::policy::Name;
use catraca::core::rate::Percent;
use catraca::core::time::Span;
use toml::de::DeValue;

/// What the readers of some kinds look up.
pub struct SettingContext<'a> {
    /// Normalises the values of attributes.
    pub attributes: &'a AttributeTable,
}

/// A kind of setting.
pub trait SettingKind {
    /// The value of a field of this kind.
    type Value: Clone + Debug + PartialEq;
    /// The texts or numbers that it accepts.
    const SCHEMA: ValueSchema;

    /// Reads a value; reports an invalid one.
    fn read(
        context: &SettingContext<'_>,
        report: &mut Report,
        node: Node<'_>,
    ) -> Option<Self::Value>;

    /// The value of a field that is left out and has no default; only for optional kinds.
    fn absent() -> Option<Self::Value> {
        None
    }

    /// Whether a value was given, or is a default.
    fn is_present(_: &Self::Value) -> bool {
        true
    }
}

/// Reads a field, or its default if the text leaves it out.
pub fn read_field<K: SettingKind>(
    context: &SettingContext<'_>,
    report: &mut Report,
    fields: &TableFields<'_>,
    schema: &FieldSchema,
) -> Option<K::Value> {
    if let Some(node) = fields.get(schema.name) {
        return K::read(context, report, node);
    }
    let number;
    let value = match schema.default {
        DefaultValue::Required | DefaultValue::Absent(_) => return K::absent(),
        DefaultValue::Text(text) => DeValue::String(text.into()),
        DefaultValue::Integer(integer) => {
            number = integer.to_string();
            DeValue::parse(&number).ok()?.into_inner()
        }
        DefaultValue::Flag(flag) => DeValue::Boolean(flag),
        DefaultValue::EmptyList => DeValue::parse("[]").ok()?.into_inner(),
    };
    K::read(context, report, Node { location: fields.location, value: &value })
}

/// A field that may be left out.
pub struct Optional<K>(PhantomData<K>);

impl<K: SettingKind> SettingKind for Optional<K> {
    type Value = Option<K::Value>;
    const SCHEMA: ValueSchema = K::SCHEMA;

    fn read(
        context: &SettingContext<'_>,
        report: &mut Report,
        node: Node<'_>,
    ) -> Option<Self::Value> {
        K::read(context, report, node).map(Some)
    }

    fn absent() -> Option<Self::Value> {
        Some(None)
    }

    fn is_present(value: &Self::Value) -> bool {
        value.is_some()
    }
}

/// `true` or `false`.
pub struct Flag;

impl SettingKind for Flag {
    type Value = bool;
    const SCHEMA: ValueSchema = ValueSchema::Flag;

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<bool> {
        node.flag(report)
    }
}

/// The name of a file, relative to the catalog's folder.
pub struct FileName;

impl SettingKind for FileName {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Text;

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let text = node.text(report, "a text in quotes")?;
        if text.is_empty() {
            let message = "the name of the file is empty";
            report.error(
                "bad-name",
                node.location,
                message,
                "write a name, or leave the field out",
            );
            return None;
        }
        Some(text.to_owned())
    }
}

/// The name of a namespace.
pub struct NamespaceName;

impl SettingKind for NamespaceName {
    type Value = Name;
    const SCHEMA: ValueSchema = ValueSchema::Pattern { pattern: NAME_PATTERN, words: "a name" };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Name> {
        scalar::name(report, node, "namespace")
    }
}

/// A whole number in a range.
pub struct WholeNumber<const LEAST: i64, const MOST: i64>;

impl<const LEAST: i64, const MOST: i64> SettingKind for WholeNumber<LEAST, MOST> {
    type Value = usize;
    const SCHEMA: ValueSchema = ValueSchema::Integer { least: LEAST, most: MOST };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<usize> {
        let number = scalar::between(report, node, LEAST, MOST)?;
        usize::try_from(number).ok()
    }
}

/// A duration in a range of milliseconds.
pub struct Millis<const LEAST: i64, const MOST: i64>;

impl<const LEAST: i64, const MOST: i64> SettingKind for Millis<LEAST, MOST> {
    type Value = Duration;
    const SCHEMA: ValueSchema =
        ValueSchema::Duration { least: Span::from_millis(LEAST), most: Span::from_millis(MOST) };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Duration> {
        let range = Span::from_millis(LEAST)..=Span::from_millis(MOST);
        let span = scalar::duration_or_forever(report, node)?;
        if !range.contains(&span) {
            let message = format!("`{span}` is out of range");
            let fix = format!("write a duration from \"{}\" to \"{}\"", range.start(), range.end());
            report.error("bad-duration", node.location, message, fix);
            return None;
        }
        u64::try_from(span.micros()).ok().map(Duration::from_micros)
    }
}

/// A percentage, which may be zero.
pub struct Share;

impl SettingKind for Share {
    type Value = Percent;
    const SCHEMA: ValueSchema = ValueSchema::Percent;

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Percent> {
        scalar::percent_or_zero(report, node)
    }
}

/// A type whose values have names in the catalog.
pub trait Keyword: Copy + Debug + PartialEq + 'static {
    /// Every value with its name.
    const WORDS: &'static [(&'static str, Self)];
}

/// One of the names of a type.
pub struct Word<T>(PhantomData<T>);

impl<T: Keyword> SettingKind for Word<T> {
    type Value = T;
    const SCHEMA: ValueSchema = ValueSchema::Word(|| schema::words(T::WORDS));

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<T> {
        scalar::keyword(report, node, T::WORDS)
    }
}
