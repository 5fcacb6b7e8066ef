//! The catalog's reader against texts: good ones, every kind of bad one, and broken bytes.
//!
//! Each file of `fixtures/catalog/codes` is named after the code it must give, and beside it lies
//! all
//! that is said about it. `CATRACA_BLESS=1` writes those files again, for a reader to judge.

// A test may fail where it stands, and fixtures are files.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "catalog/codes.rs"]
mod codes;
#[path = "catalog/good.rs"]
mod good;
#[path = "catalog/located.rs"]
mod located;
#[path = "catalog/page.rs"]
mod page;
#[path = "catalog/robust.rs"]
mod robust;
#[path = "catalog/support.rs"]
mod support;
#[path = "catalog/variables.rs"]
mod variables;
