//! The configuration of the server, read from the sections of the catalog about the process.
//!
//! Each section is read once into a type; an invalid field is an error that names it and a fix.
//! Nothing is opened here but password files.

mod denial_format;
mod reloadable;
mod retention;
mod section;
mod settings;
mod shared_store_config;
mod storage_config;
mod tls_files;

pub use denial_format::DenialFormat;
pub use reloadable::ReloadableConfig;
pub use settings::{ConnectionTimeouts, Settings};
pub use shared_store_config::SharedStoreConfig;
pub use storage_config::{StorageConfig, memory_of};
pub use tls_files::TlsFiles;
