//! Diagnostics of a catalog: the types of the located reader, with the codes of the catalog.

pub use super::codes::CODES;
pub use crate::located::diagnostic::{Diagnostic, Diagnostics, Severity};
