//! Compiles and runs the programs of the migration guide, with tower_governor as it is published:
//! `cargo test --doc --manifest-path bench/layer/Cargo.toml`.

/// They are the documentation of this type.
// Blocks in other languages have tags such as `go,file=before.go`, which rustdoc cannot parse.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)]
#[doc = include_str!("../../../docs/guide/migrate.md")]
pub struct MigrationGuide;
