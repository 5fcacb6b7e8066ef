//! The commands that need no server: arguments and files in, output and exit code out.
//!
//! Each test has its own directory, and simulations run in virtual time.

#[path = "../../../catraca-core/tests/catalog/codes.rs"]
mod codes;
mod config_schema;
mod diagnostics_page;
mod explain;
mod guide_tables;
mod help;
mod helpers;
mod import;
mod init;
mod lint;
mod policies;
mod process_sections;
mod scenario;
mod simulate;
mod start_errors;
mod test_dir;
mod types;
