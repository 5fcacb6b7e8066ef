//! `section!`: declares a section of the catalog as a type, with one line for each field.
//!
//! The doc comment of a field is its meaning in the schema and in the guide.

use catraca::core::catalog::read::Sections;
use catraca::core::located::{Effect, Report, TableFields, TableSchema};

use super::setting_kind::{SettingContext, SettingKind};

/// A section of the catalog that this server reads.
pub trait Section: Clone + PartialEq + Sized {
    /// Its name.
    const NAME: &'static str;
    /// Its fields.
    const SCHEMA: &'static TableSchema;

    /// Reads the fields; `None` if one of them is invalid.
    fn read(
        context: &SettingContext<'_>,
        report: &mut Report,
        fields: &TableFields<'_>,
    ) -> Option<Self>;

    /// The fields whose values differ from those at the start, and take effect after a restart.
    fn fields_awaiting_restart(&self, started: &Self) -> Vec<&'static str>;

    /// The fields whose values differ from those before a reload.
    fn changed_fields(&self, before: &Self) -> Vec<&'static str>;
}

/// Whether a change from `before` to `after` takes effect after a restart.
pub fn needs_restart<K: SettingKind>(effect: Effect, before: &K::Value, after: &K::Value) -> bool {
    match effect {
        Effect::Live => false,
        Effect::Restart => before != after,
        Effect::RestartIfAdded => K::is_present(before) != K::is_present(after),
    }
}

/// A section as read, with the locations of its fields.
pub struct SectionReading<'t, S> {
    /// The locations; without entries if the catalog has no such section.
    pub fields: TableFields<'t>,
    /// The values; `None` if one of them is invalid.
    pub section: Option<S>,
}

impl<'t, S: Section> SectionReading<'t, S> {
    /// Reads a section; one that the catalog does not have has the defaults.
    pub fn read(
        context: &SettingContext<'_>,
        report: &mut Report,
        sections: &Sections<'t>,
    ) -> Self {
        let absent = || TableFields::absent(S::SCHEMA);
        let Some((key, node)) = sections.single(report, S::NAME) else {
            let fields = absent();
            let section = S::read(context, report, &fields);
            return Self { fields, section };
        };
        match TableFields::read(report, key.location, node, S::SCHEMA) {
            Some(fields) => {
                let section = S::read(context, report, &fields);
                Self { fields, section }
            }
            None => Self { fields: absent(), section: None },
        }
    }
}

/// Declares the type of a section: `"name" => Type { field: Kind = default, Effect; … }`, and after
/// `also` fields that another reader reads.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        $name:literal => $Section:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident: $Kind:ty = $default:expr, $effect:ident;
            )+
        }
        $(also $extra:expr)?
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Section {
            $(
                $(#[doc = $about])+
                pub $field: <$Kind as $crate::config::setting_kind::SettingKind>::Value,
            )+
        }

        impl $crate::config::section::Section for $Section {
            const NAME: &'static str = $name;
            const SCHEMA: &'static catraca::core::located::TableSchema =
                &catraca::core::located::TableSchema {
                    name: concat!($name, " section"),
                    fields: &[
                        $(
                            catraca::core::located::FieldSchema {
                                name: stringify!($field),
                                value: <$Kind as $crate::config::setting_kind::SettingKind>::SCHEMA,
                                default: $default,
                                effect: catraca::core::located::Effect::$effect,
                                about: concat!($($about),+).trim_ascii(),
                            },
                        )+
                        $($extra,)?
                    ],
                };

            fn read(
                context: &$crate::config::setting_kind::SettingContext<'_>,
                report: &mut catraca::core::located::Report,
                fields: &catraca::core::located::TableFields<'_>,
            ) -> Option<Self> {
                // Every field is read before the first invalid one makes the result `None`.
                let mut schemas = Self::SCHEMA.fields.iter();
                $(
                    let $field = $crate::config::setting_kind::read_field::<$Kind>(
                        context,
                        report,
                        fields,
                        schemas.next()?,
                    );
                )+
                Some(Self { $($field: $field?,)+ })
            }

            fn fields_awaiting_restart(&self, started: &Self) -> Vec<&'static str> {
                let mut fields = Vec::new();
                $(
                    let effect = catraca::core::located::Effect::$effect;
                    let before = &started.$field;
                    let after = &self.$field;
                    if $crate::config::section::needs_restart::<$Kind>(effect, before, after) {
                        fields.push(stringify!($field));
                    }
                )+
                fields
            }

            fn changed_fields(&self, before: &Self) -> Vec<&'static str> {
                let mut fields = Vec::new();
                $(
                    if self.$field != before.$field {
                        fields.push(stringify!($field));
                    }
                )+
                fields
            }
        }
    };
}

pub(super) use section;
