//! The sections of a catalog, and the types of values that several of them share.
//!
//! The fields of each section are declared beside its reader.

use super::attribute::ATTRIBUTE;
use super::bounds::{FILES_MAX, ROUTES_MAX};
use super::gate::{GATE, UNLISTED};
use super::lists::{ALLOWLIST, BLOCKLIST};
use super::locks::LOCKS;
use super::network::{LANGUAGES, NETWORK};
use super::policy_schema::POLICY;
use super::route::ROUTE;
use super::settle_section::SETTLE;
use crate::limit::EXACT_MAX;
use crate::located::names::NAME_PATTERN;
use crate::located::schema::words;
use crate::located::{DefaultValue, FieldSchema, TableSchema, ValueSchema};

/// A name of a policy, a gate or an attribute.
pub(super) const NAME: ValueSchema =
    ValueSchema::Pattern { pattern: NAME_PATTERN, words: "a name" };
/// Names, or one of them.
pub(super) const NAMES: ValueSchema =
    ValueSchema::AnyOf(&[NAME, ValueSchema::List { of: &NAME, most: usize::MAX }]);
/// A whole number above zero.
pub(super) const COUNT: ValueSchema = ValueSchema::Integer { least: 1, most: EXACT_MAX - 1 };

/// The sections that influence decisions. Those that configure a process are declared by their
/// owners.
pub static CATALOG: TableSchema = TableSchema {
    name: "catalog",
    fields: &[
        FieldSchema::new("policy", ValueSchema::Map(&ValueSchema::Table(&POLICY)), "the policies"),
        FieldSchema::new(
            "gate",
            ValueSchema::Map(&ValueSchema::Table(&GATE)),
            "policies that are passed together",
        ),
        FieldSchema::new(
            "route",
            ValueSchema::List { of: &ValueSchema::Table(&ROUTE), most: ROUTES_MAX },
            "which gate an HTTP request passes; the first route that matches applies",
        ),
        FieldSchema::new(
            "attribute",
            ValueSchema::Map(&ValueSchema::Table(&ATTRIBUTE)),
            "how the values of attributes are normalised and shown",
        ),
        FieldSchema::new(
            "facts",
            ValueSchema::Map(&ValueSchema::Map(&ValueSchema::Map(&ValueSchema::Text))),
            "facts about values of attributes: `[facts.ATTRIBUTE.\"VALUE\"]`",
        ),
        FieldSchema::new(
            "allowlist",
            ValueSchema::List { of: &ValueSchema::Table(&ALLOWLIST), most: usize::MAX },
            "callers that always pass",
        ),
        FieldSchema::new(
            "blocklist",
            ValueSchema::List { of: &ValueSchema::Table(&BLOCKLIST), most: usize::MAX },
            "callers that never pass",
        ),
        FieldSchema::new(
            "network",
            ValueSchema::Table(&NETWORK),
            "how addresses and paths are interpreted",
        ),
        FieldSchema::new(
            "default",
            NAME,
            "the policy for gates that the catalog does not declare and for requests that no route \
             matches; see below",
        )
        .or(DefaultValue::Absent("none: an unknown gate is an error")),
        FieldSchema::new(
            "unlisted",
            ValueSchema::Word(|| words(&UNLISTED)),
            "who decides for a gate that the catalog does not declare: `default`, the policy of \
             that name; `deny`: the check is refused with 404 (`unknown-gate`), and `default` is \
             only for requests that no route matches",
        )
        .or(DefaultValue::Text("default")),
        FieldSchema::new(
            "include",
            ValueSchema::AnyOf(&[
                ValueSchema::Text,
                ValueSchema::List { of: &ValueSchema::Text, most: FILES_MAX - 1 },
            ]),
            "other files to read, relative to the catalog's folder; the content of a file comes \
             before the content of the files it includes: regular files called `*.toml`, 64 files, \
             4 levels, 4 MiB in total",
        ),
        FieldSchema::new(
            "language",
            ValueSchema::Word(|| words(&LANGUAGES)),
            "the language of durations in messages",
        )
        .or(DefaultValue::Text("en")),
        FieldSchema::new("locks", ValueSchema::Table(&LOCKS), "how long leases last"),
        FieldSchema::new(
            "settle",
            ValueSchema::Table(&SETTLE),
            "how much of an outcome ban rules read",
        ),
    ],
};
