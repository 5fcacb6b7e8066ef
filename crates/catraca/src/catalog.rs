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

/// The policies and gates of a program, validated.
///
/// ```
/// use catraca::Catalog;
///
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '10 per 15m'")?;
/// assert_eq!(catalog.policies.len(), 1);
/// let error = Catalog::parse("[policy.login]\n by = ['ip']\n windw = '10 per 15m'").unwrap_err();
/// assert!(error.to_string().contains("windw"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::catalog::Catalog;
/// The mistakes of a catalog that a program builds.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::Catalog;
/// use catraca::catalog::Policy;
///
/// let no_key = Policy::new("login").window(10, Duration::from_secs(60));
/// let error = Catalog::builder().policy(no_key).build().unwrap_err();
/// assert_eq!((&*error.mistakes[0].section, error.mistakes[0].code), ("policy `login`", "no-key"));
/// ```
///
pub use catraca_core::catalog::build::BuildError;
/// A `[policy.NAME]` of a catalog that a program builds.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::catalog::{Catalog, Policy};
///
/// let minute = Duration::from_secs(60);
/// let login = Policy::new("login").by(["ip"]).window(10, 15 * minute).block(30 * minute);
/// let catalog = Catalog::builder().policy(login).build()?;
/// assert_eq!(&*catalog.policies[0].name, "login");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::catalog::build::PolicyBuilder as Policy;
pub use catraca_core::catalog::build::{
    AttributeBuilder as Attribute, BanBuilder as Ban, BlockLength, BuildMistake, CatalogBuilder,
    Escalation, GateMapBuilder as GateMap, ListEntryBuilder as ListEntry,
    LockKindBuilder as LockKind, PartsCostBuilder as PartsCost, RouteBuilder as Route,
    TierBuilder as Tier, WatchBuilder as Watch,
};
pub use catraca_core::catalog::{AttributeKind, EncodedSlash, Language, PathCase};
pub use catraca_core::lock::{Durability, VersionPolicy};
pub use catraca_core::policy::{Mode, OnFailure, OnMissing};
pub use catraca_core::price::Price;
pub use catraca_core::rate::Percent;
