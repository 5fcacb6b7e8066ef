//! Compiles and runs the programs of the migration guide, with tower_governor as it is published:
//! `cargo test --doc --manifest-path bench/layer/Cargo.toml`.

/// They are the documentation of this type.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/migrate.md")]
pub struct MigrationGuide;
