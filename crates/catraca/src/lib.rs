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
#[cfg(any(feature = "locks", feature = "records", feature = "shared"))]
pub mod supervise;
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
/// A block that an operator starts, with its reason.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::{BlockProposal, Catalog, Check, Engine, Subject};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?);
/// let subject = Subject::from([("ip", "198.51.100.7")]);
/// let proposal = BlockProposal::by_operator(Duration::from_secs(3_600), Some("abuse"));
/// engine.block("default", "api", &subject, proposal)?;
/// let denied = engine.check(&Check::new("api", subject))?;
/// assert_eq!(denied.reason.as_str(), "blocked");
/// assert!(denied.blocked_until().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::cell::block::BlockProposal;
/// Why a credit gave nothing back.
///
/// ```
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Credit, CreditRejection, Engine, Subject};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?);
/// let subject = Subject::from([("ip", "198.51.100.7")]);
/// let rejected = engine.credit(&Credit::new("never-checked", "payment", &subject))?;
/// assert_eq!(rejected, Err(CreditRejection::Unknown));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::credit_plan::CreditRejection;
/// Whether a caller may pass, and what each policy says about it.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::{Catalog, Check, Engine};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '1 per 1m'")?);
/// let check = Check::new("api", [("ip", "198.51.100.7")]);
/// assert!(engine.check(&check)?.allowed);
/// let denied = engine.check(&check)?;
/// assert_eq!((denied.allowed, denied.reason.as_str()), (false, "over_limit"));
/// assert_eq!((denied.limit, denied.remaining), (Some(1), Some(0)));
/// assert!(denied.retry_after() <= Some(Duration::from_secs(60)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::decision::Decision;
/// What one policy of the gate says.
///
/// ```
/// use catraca::{Catalog, Check, Engine};
///
/// let catalog = Catalog::parse(r#"
///     [policy.per_ip]
///     by     = ["ip"]
///     window = "9 per 1m"
///     [policy.per_user]
///     by     = ["user"]
///     window = "5 per 1m"
///     [gate.login]
///     policies = ["per_ip", "per_user"]
/// "#)?;
/// let engine = Engine::new(catalog);
/// let decision = engine.check(&Check::new("login", [("ip", "198.51.100.7"), ("user", "ana")]))?;
/// let rows: Vec<_> = decision.rows.iter().map(|row| (&*row.policy, row.remaining)).collect();
/// assert_eq!(rows, [("per_ip", Some(8)), ("per_user", Some(4))]);
/// assert_eq!(decision.remaining, Some(4)); // that of the tightest
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::decision::DecisionRow;
/// Why a decision or a row is allowed or denied. The words are the same on every interface.
///
/// ```
/// use catraca::{Catalog, Check, Engine, Reason};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?);
/// let check = Check::new("api", [("ip", "198.51.100.7")]);
/// assert_eq!(engine.check(&check)?.reason, Reason::Ok);
/// let denied = engine.check(&check.cost(10))?;
/// assert_eq!((denied.reason, denied.reason.as_str()), (Reason::TooCostly, "too_costly"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::decision::Reason;
/// The numbers of one of several windows of a policy.
///
/// ```
/// use catraca::{Catalog, Check, Engine};
///
/// let text = "[policy.api]\n by = ['ip']\n window = ['600 per 1m', '100 per 1s']";
/// let engine = Engine::new(Catalog::parse(text)?);
/// let decision = engine.check(&Check::new("api", [("ip", "198.51.100.7")]))?;
/// let windows = decision.rows[0].windows.iter();
/// let numbers = windows.map(|it| (it.window().as_secs(), it.limit, it.remaining));
/// assert_eq!(numbers.collect::<Vec<_>>(), [(60, 600, 599), (1, 100, 99)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::decision::WindowQuota;
/// Makes keys of cells, pseudonyms and tickets that others cannot make. A program that keeps state
/// keeps its secret as well.
///
/// ```
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Check, Engine, Outcome, Secret, Settle};
///
/// let text = "[policy.a]\n by = ['ip']\n window = '9 per 1m'\n cost = { '404' = 2, default = 1 }";
/// let secret = Secret::from_bytes([7; 32]); // in earnest: random, and kept in a file
/// let engine = Engine::builder(Catalog::parse(text)?).secret(secret).build();
/// let other = Engine::new(Catalog::parse(text)?); // has a random secret
///
/// let ticket = engine.check(&Check::new("a", [("ip", "::1")]))?.ticket.unwrap_or_default();
/// let outcome = Outcome::status(404);
/// assert!(other.settle(&Settle::ticket(&ticket, &outcome)).is_err());
/// assert!(engine.settle(&Settle::ticket(&ticket, &outcome)).is_ok());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::digest::Secret;
/// The result of the request that a check admitted, such as its HTTP status.
///
/// ```
/// # #[cfg(feature = "settle")] {
/// use catraca::{Catalog, Check, Engine, Outcome, Settle};
///
/// let catalog = Catalog::parse(r#"
///     [policy.login]
///     by     = ["ip"]
///     window = "10 per 1m"
///     cost   = { "401" = 5, default = 1 }
/// "#)?;
/// let engine = Engine::new(catalog);
/// let check = Check::new("login", [("ip", "198.51.100.7")]);
/// let ticket = engine.check(&check)?.ticket.unwrap_or_default();
/// engine.settle(&Settle::ticket(&ticket, &Outcome::status(401)))?;
/// assert_eq!(engine.peek(&check)?.remaining, Some(5));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::outcome::Outcome;
/// Why a call is invalid. It changed nothing, and never lets a caller pass.
///
/// ```
/// use catraca::{Catalog, Check, Engine, Error, Refusal};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '1 per 1m'")?);
/// let misspelt = engine.check(&Check::new("apii", [("ip", "198.51.100.7")]));
/// assert!(matches!(misspelt, Err(Error::Refused(Refusal::UnknownGate(gate))) if gate == "apii"));
/// let incomplete = engine.check(&Check::new("api", [("user", "ana")]));
/// let Err(Error::Refused(refusal)) = incomplete else { panic!("`ip` is required") };
/// assert!(matches!(refusal, Refusal::MissingAttribute { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::refusal::Refusal;
/// The arguments of a check or a peek.
///
/// ```
/// use catraca::{Catalog, Check, Engine};
///
/// let catalog = Catalog::parse("[policy.export]\n by = ['user']\n window = '100 per 1h'")?;
/// let engine = Engine::new(catalog);
/// let check = Check::new("export", [("user", "ana")]);
/// assert_eq!(engine.check(&check.clone().cost(40))?.remaining, Some(60));
/// assert_eq!(engine.check(&check.namespace("shop"))?.remaining, Some(99)); // another tenant
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub use catraca_core::request::Check;
/// The value of an attribute: a text or an address of std.
///
/// ```
/// use std::net::IpAddr;
///
/// use catraca::{AttributeValue, Subject};
///
/// let address = IpAddr::from([198, 51, 100, 7]);
/// let by_peer = Subject::new().with("ip", AttributeValue::from(address));
/// assert_eq!(by_peer.get("ip"), Subject::new().with("ip", "198.51.100.7").get("ip"));
/// ```
///
pub use catraca_core::subject::AttributeValue;
/// Who is checked: attributes with a text or an address as their values.
///
/// ```
/// use std::net::IpAddr;
///
/// use catraca::Subject;
///
/// let address = IpAddr::from([198, 51, 100, 7]);
/// let by_address = Subject::from([("ip", address)]);
/// let by_text = Subject::from([("ip", "198.51.100.7"), ("user", "ana")]);
/// assert_eq!(by_address.get("ip"), by_text.get("ip"));
/// assert_eq!(by_address.with("user", "ana").get("user").as_deref(), Some("ana"));
/// ```
///
pub use catraca_core::subject::Subject;
// For the programs of this workspace: users of the library pass and get the types of std.
#[doc(hidden)]
pub use catraca_core::time::{Span, Time};
#[cfg(feature = "client")]
pub use client::{Client, ClientError, FailMode};
pub use clock::{Clock, ManualClock, SystemClock};
pub use engine::{
    BucketObservation, Builder, CheckMode, CheckRef, Credit, Engine, GateError, GateHandle,
    OwnedGate, Settle,
};
pub use error::Error;
pub use event::Event;
pub use limiter::{Limiter, LimiterGate};
pub use load::{Includes, LoadError, environment, load, load_sections, load_with};
#[cfg(feature = "locks")]
pub use locks::{Lock, LockError, LockRequest, LockService, Locks};
pub use memory::{Memory, MemoryOptions};
#[cfg(feature = "shared")]
pub use shared::SharedOptions;
