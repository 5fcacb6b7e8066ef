//! The configuration of the server, read from the sections of the catalog about the process.
//!
//! Each section is read once into a type; an invalid field is an error that names it and a fix.

pub mod reloadable;
pub mod settings;

pub use reloadable::ReloadableConfig;
pub use settings::{ConnectionTimeouts, Settings};
