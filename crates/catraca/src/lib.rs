//! Catraca in process: may this caller pass now, what does it cost, and what happens when they
//! misbehave.
//!
//! ```
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
//! assert_eq!(denied.retry_after.map(|wait| wait.ceil_secs()), Some(15 * 60));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A denial is a value; an [`Error`] means an invalid call or a failing store. Tests use
//! [`ManualClock`] and never sleep.

#[cfg(feature = "shared")]
pub mod app;
pub mod clock;
pub mod engine;
pub mod error;
pub mod event;
pub mod explain;
pub mod json;
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
pub mod url;

/// The README's program is compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The programs of the library guide, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Guide;

#[cfg(feature = "shared")]
pub use app::{App, AppError};
pub use catraca_core as core;
pub use catraca_core::catalog::Catalog;
pub use catraca_core::cell::block::BlockProposal;
pub use catraca_core::decision::{Decision, DecisionRow, Reason, WindowQuota};
pub use catraca_core::digest::Secret;
pub use catraca_core::outcome::Outcome;
pub use catraca_core::refusal::Refusal;
pub use catraca_core::request::Check;
pub use catraca_core::subject::Subject;
pub use catraca_core::time::{Span, Time};
pub use clock::{Clock, ManualClock, SystemClock};
pub use engine::{BucketObservation, Builder, CheckMode, CheckRef, Credit, Engine, Settle};
pub use error::Error;
pub use event::Event;
pub use load::{Includes, LoadError, environment, load, load_sections, load_with};
#[cfg(feature = "locks")]
pub use locks::{LockError, Locks};
pub use memory::{Memory, MemoryOptions};
#[cfg(feature = "shared")]
pub use shared::SharedOptions;
