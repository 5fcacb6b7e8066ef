//! The configuration of the server: the sections of the catalog about the process.
//!
//! Each section has a file, in which every field is declared once with its type, default, meaning
//! and whether a new value needs a restart. The reader, the list of settings that await a restart,
//! the JSON Schema and the tables of the guide come from that declaration. Nothing is opened here
//! but password files.

mod allowed_origins;
mod auth_keys;
mod auth_section;
mod codes;
mod cross_checks;
mod dict_section;
mod hold_check;
pub mod json_schema;
mod jwt_section;
mod load;
mod passwords;
mod process;
mod proxy_section;
mod records_section;
mod reloadable;
mod section;
mod server_section;
mod setting_kind;
mod shared_store_config;
mod storage_config;
mod store_section;
mod urls;

pub use allowed_origins::AllowedOrigins;
pub use auth_section::AuthSection;
pub use codes::PROCESS_CODES;
pub use dict_section::{DICT_POLL_GATE, DictSection};
pub use jwt_section::JwtSection;
pub(crate) use load::load_with;
pub use load::{LoadedCatalog, load, parse};
pub use process::{ProcessConfig, ProcessReader};
pub use proxy_section::{ProxySection, ProxyTimeouts};
pub use records_section::RecordsSection;
pub use reloadable::ReloadableConfig;
pub use server_section::{
    ClientAuthFiles, ConnectionTimeouts, DenialFormat, ServerSection, TlsFiles,
};
pub use shared_store_config::SharedStoreConfig;
pub use storage_config::StorageConfig;
pub use store_section::StoreSection;
