//! Catraca in process: may this caller pass now, what does it cost, and what happens when they
//! misbehave.
//!
//! ```
//! use std::time::Duration;
//!
//! use catraca::{Catalog, Check, Engine};
//!
//! let catalog = Catalog::parse(r#"
//!     [policy.login]
//!     by     = ["ip"]
//!     window = "2 per 1m"
//!     block  = "15m"
//! "#)?;
//! let engine = Engine::new(catalog);
//! let check = Check::new("login", [("ip", "198.51.100.7")]);
//! assert!(engine.check(&check)?.allowed);
//! assert!(engine.check(&check)?.allowed);
//! let denied = engine.check(&check)?;
//! assert!(!denied.allowed);
//! assert_eq!(denied.reason.as_str(), "over_limit");
//! assert_eq!(denied.retry_after(), Some(Duration::from_secs(15 * 60)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A denial is a value; an [`Error`] means an invalid call or a failing store. Tests use
//! [`ManualClock`] and never sleep.
//!
//! Policies come from a file ([`load`](load::load)), a text ([`Catalog::parse`]) or code
//! ([`Catalog::builder`]). A gate that is checked often is looked up once ([`Engine::gate`]).
//!
//! # Features
//!
//! Without features: limits, blocks, lists, tiers and snapshots, in memory.
//!
//! - `settle`: what happens after a check: costs that depend on the outcome, credits, `inflight`,
//!   `watch`.
//! - `cel`: `ban` rules, whose conditions are written in CEL. Includes `settle`.
//! - `locks`: locks and slots.
//! - `shared`: `App`, the async operations over a store that several nodes share.
//! - `redis`, `postgres-store`: that store in Redis, or in PostgreSQL.
//! - `records`, `postgres`: durable records in SQLite, or in PostgreSQL too.
//! - `tower`, `axum`: a layer for services of tower, and the address of the peer from axum.
//! - `client`: a client of a server, with the same operations and with locks.
//! - `http`: decisions as HTTP responses, for servers of your own.
//! - `json`, `schema`: the bodies of the HTTP API, and their JSON Schemas.
//! - `full`: everything.
//!
//! A catalog that needs a feature which is not enabled is refused; the error names the feature.

// docs.rs builds with nightly and shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "shared")]
pub mod app;
pub mod catalog;
#[cfg(feature = "client")]
pub mod client;
pub mod clock;
pub mod engine;
pub mod error;
pub mod event;
pub mod explain;
#[cfg(all(feature = "http", any(feature = "cel", feature = "tower")))]
pub mod http_outcome;
#[cfg(feature = "http")]
pub mod http_request;
#[cfg(feature = "http")]
pub mod http_response;
#[cfg(feature = "json")]
pub mod json;
pub mod limiter;
pub mod load;
#[cfg(feature = "locks")]
pub mod locks;
pub mod memory;
#[cfg(feature = "postgres-store")]
pub mod postgres;
#[cfg(feature = "records")]
pub mod records;
#[cfg(feature = "redis")]
pub mod redis;
mod rule_set;
pub mod settlement;
#[cfg(feature = "shared")]
pub mod shared;
pub mod store;
#[cfg(feature = "tower")]
pub mod tower;
pub mod url;

/// The README's program is compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So is that of the package.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;

/// The programs of the library guide, too.
#[cfg(all(doctest, feature = "cel"))]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Guide;

/// And those of the guide of the tower layer.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/guide/tower.md")]
struct TowerGuide;

/// The programs of the clients guide, too.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../docs/guide/clients.md")]
struct ClientsGuide;

#[cfg(feature = "shared")]
pub use app::{App, AppError};
pub use catalog::{BuildError, Catalog, CatalogBuilder, Policy};
pub use catraca_core as core;
pub use catraca_core::cell::block::BlockProposal;
pub use catraca_core::decision::{Decision, DecisionRow, Reason, WindowQuota};
pub use catraca_core::digest::Secret;
pub use catraca_core::outcome::Outcome;
pub use catraca_core::refusal::Refusal;
pub use catraca_core::request::Check;
pub use catraca_core::subject::{AttributeValue, Subject};
// For the programs of this workspace: users of the library pass and get the types of std.
#[doc(hidden)]
pub use catraca_core::time::{Span, Time};
#[cfg(feature = "client")]
pub use client::{Client, ClientError, FailMode};
pub use clock::{Clock, ManualClock, SystemClock};
pub use engine::{
    BucketObservation, Builder, CheckMode, CheckRef, Credit, Engine, GateError, GateHandle, Settle,
};
pub use error::Error;
pub use event::Event;
pub use limiter::Limiter;
pub use load::{Includes, LoadError, environment, load, load_sections, load_with};
#[cfg(feature = "locks")]
pub use locks::{Lock, LockError, LockRequest, LockService, Locks};
pub use memory::{Memory, MemoryOptions};
#[cfg(feature = "shared")]
pub use shared::SharedOptions;
