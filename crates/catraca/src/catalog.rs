//! What a program needs to build a catalog in code.
//!
//! The parts have the names that they have in a catalog file. See [`Catalog::builder`].
//!
//! ```
//! use std::time::Duration;
//!
//! use catraca::Catalog;
//! use catraca::catalog::{Escalation, Policy, Tier};
//!
//! let minute = Duration::from_secs(60);
//! let day = 1_440 * minute;
//! let longer_each_time =
//!     Escalation { first: 30 * minute, factor: 2, max: day, forget: 7 * day };
//! let catalog = Catalog::builder()
//!     .policy(Policy::new("login").by(["ip"]).window(10, 15 * minute).block(longer_each_time))
//!     .policy(
//!         Policy::new("api")
//!             .by(["tenant"])
//!             .bucket(100, 10, minute)
//!             .tier(Tier::when("tenant", ["acme"]).bucket(1_000, 100, minute)),
//!     )
//!     .gate("login-by-api", ["login", "api"])
//!     .build()?;
//! # assert_eq!(catalog.policies.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use catraca_core::catalog::build::{
    AttributeBuilder as Attribute, BanBuilder as Ban, BlockLength, BuildError, BuildMistake,
    CatalogBuilder, Escalation, GateMapBuilder as GateMap, ListEntryBuilder as ListEntry,
    LockKindBuilder as LockKind, PartsCostBuilder as PartsCost, PolicyBuilder as Policy,
    RouteBuilder as Route, TierBuilder as Tier, WatchBuilder as Watch,
};
pub use catraca_core::catalog::{AttributeKind, Catalog, EncodedSlash, Language, PathCase};
pub use catraca_core::lock::{Durability, VersionPolicy};
pub use catraca_core::policy::{Mode, OnFailure, OnMissing};
pub use catraca_core::price::Price;
pub use catraca_core::rate::Percent;
