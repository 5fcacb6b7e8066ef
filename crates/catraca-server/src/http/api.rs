//! The API's description: one OpenAPI 3.1 document made of the table of roles, the types that are
//! read and sent, and one entry here per call.
//!
//! `calls` says of each call what no type says; `build` joins it with the table; `codes` holds what
//! can go wrong; `page` shows all of it to people. Must not describe what the server does not do:
//! tests hold rows, routes and entries equal, and the checked-in copy equal to what is served.

mod build;
mod calls;
mod codes;
mod example;
mod shapes;

use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

pub use build::document;
#[cfg(test)]
pub use shapes::Decision;

pub use codes::{Code, all as codes, code};

/// The schema of a type.
type Of = fn(&mut SchemaGenerator) -> Schema;

/// What there is to say of a call besides its row.
struct Entry {
    /// The method and the path of its row; `ANY` where the row takes every method.
    request: &'static str,
    /// A name for programs.
    name: &'static str,
    group: Group,
    /// One line.
    summary: &'static str,
    /// What one line cannot say.
    about: &'static str,
    query: &'static [Asked],
    takes: Takes,
    gives: &'static [Given],
    /// The codes of what can go wrong, in groups, besides what the row itself brings.
    problems: &'static [&'static [&'static str]],
}

/// What a call is for; the order is that of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Decide,
    States,
    Locks,
    Catalog,
    Operate,
    Look,
    Privacy,
    About,
}

/// A parameter of the query.
struct Asked {
    name: &'static str,
    about: &'static str,
    kind: Kind,
}

/// What a parameter of the query holds.
enum Kind {
    Text(&'static str),
    Number(i64),
    Instant,
    Words(&'static [&'static str]),
}

/// What a call takes as its body.
enum Takes {
    Nothing,
    /// An object, or whatever the schema says.
    Body(Of),
    /// One that may be left out.
    Maybe(Of),
}

/// What a call answers when all is well, or when it denies.
struct Given {
    /// The status, or a range such as `4XX`.
    status: &'static str,
    about: &'static str,
    /// The media type and its schema; none is an empty body.
    body: Option<(&'static str, Of)>,
    /// Names of headers, as `build` describes them.
    headers: &'static [&'static str],
}

const fn json(of: Of) -> Given {
    Given { status: "200", about: "Done.", body: Some(("application/json", of)), headers: &[] }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The document as it is served and checked in.
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = serde_json::to_string_pretty(document()).unwrap_or_default();
        text.push('\n');
        text
    })
}

/// An answer as the description of its type has it: nothing lost, nothing new.
#[cfg(test)]
pub fn described<T>(answer: &str) -> serde_json::Result<Value>
where
    T: serde::de::DeserializeOwned + serde::Serialize,
{
    serde_json::to_value(serde_json::from_str::<T>(answer)?)
}

/// A value of the document, by its JSON pointer.
fn pointed<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    document.pointer(reference.strip_prefix('#')?)
}
