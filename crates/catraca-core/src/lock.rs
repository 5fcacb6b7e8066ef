//! Locks and slots: exclusive leases on names, or on ranges of time in calendars, that expire by
//! themselves.
//!
//! `requests` has the operations as plain data and `reply` their answers; `operation` joins each of
//! them in one enum; `table` applies them to the state of one namespace. A store that cannot call
//! Rust implements the same operations in its own language; `docs/locks-store.md` is its contract.
//! A lease is proven by a secret of which only the digest reaches this module. Waiting for a lock
//! is not done here: the queues are in the library. Without the feature `locks` only the terms of a
//! catalog are left.

#[cfg(feature = "locks")]
pub mod counters;
#[cfg(feature = "locks")]
mod digest;
#[cfg(feature = "locks")]
pub mod id;
#[cfg(feature = "locks")]
pub mod name;
#[cfg(feature = "locks")]
pub mod operation;
#[cfg(feature = "locks")]
pub mod persistence;
pub mod refusal;
#[cfg(feature = "locks")]
pub mod reply;
#[cfg(feature = "locks")]
pub mod requests;
#[cfg(feature = "locks")]
pub mod table;
pub mod terms;

#[cfg(feature = "locks")]
pub use id::{LeaseId, LeaseKey};
#[cfg(feature = "locks")]
pub use name::{CalendarName, LockName, NameDigest};
#[cfg(feature = "locks")]
pub use operation::{LockOp, LockOutcome, LockReply};
pub use refusal::LockRefusal;
#[cfg(feature = "locks")]
pub use table::LockTable;
pub use terms::{Durability, KindTerms, LockTerms, VersionPolicy};

use crate::time::Span;

/// How long an ended lock is remembered, to answer its holder how it ended.
pub const TOMBSTONE: Span = Span::from_secs(60);
/// How long an ended slot is remembered. Longer than a lock, because payments can be reported late
/// and then take the slot again if it is free.
pub const SLOT_TOMBSTONE: Span = Span::from_secs(3_600);
/// How long a confirmed slot is remembered after its end.
pub const CONFIRMED_RETENTION: Span = Span::from_secs(7 * 86_400);
/// How long the highest version of a name is remembered after it was raised.
pub const VERSION_RETENTION: Span = Span::from_secs(86_400);
/// The most leases of one namespace, including ended ones that are still remembered.
pub const LEASES_MAX: usize = 1 << 20;
/// The most names whose highest version is remembered, per namespace.
pub const VERSIONS_MAX: usize = 1 << 20;
/// The most keys of one acquire, or calendars of one hold.
pub const KEYS_MAX: usize = 16;
/// The most expired leases, and the most expired versions, that one operation removes.
pub const SWEEP: usize = 128;
