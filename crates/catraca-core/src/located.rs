//! TOML with locations: reads a text into values that know where they are, and collects every
//! error of a file with its line, column and fix.
//!
//! The readers of the catalog are built on it, and so are those of the programs that own sections
//! of a catalog, such as the server. A table is declared once as a [`TableSchema`]; the reader, the
//! suggestions for misspelt fields, the JSON Schema and the tables of the guide come from it.
//! Must not do I/O, and must not know what a section means.

pub mod diagnostic;
pub mod names;
mod node;
mod report;
pub mod scalar;
pub mod schema;
pub mod syntax_recovery;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use node::{FieldResult, LocatedKey, Node, TableFields, entries};
pub use report::{DIAGNOSTICS_MAX, Report, SourceFile, SourceLocation};
pub use schema::{DefaultValue, Effect, FieldSchema, TableSchema, ValueSchema};
