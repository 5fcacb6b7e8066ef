//! Locks and slots: exclusion over a name, or over a range of time, with an end of its own.
//!
//! Operations are plain data (`op`), so is what they answer (`reply`), `call` makes one value of
//! each, and `book` applies them to the state of one namespace at an instant that is given. A store
//! that cannot call Rust does the same operations in its own language; `docs/locks-store.md` is its
//! contract. A lease is proven by a secret that is made elsewhere: only its digest comes here. Must
//! not wait: queues are others'.

pub mod book;
pub mod call;
mod digest;
pub mod id;
pub mod kept;
pub mod name;
pub mod op;
pub mod refusal;
pub mod reply;
pub mod tally;
pub mod terms;

pub use book::Book;
pub use call::{LockOp, LockReply, LockTold};
pub use id::{LeaseId, LeaseKey};
pub use name::{CalendarName, LockName, Mark};
pub use refusal::LockRefusal;
pub use terms::{Durability, KindTerms, LockTerms, VersionPolicy};

use crate::time::Span;

/// How long an ended lock is remembered, to tell who asks how it ended.
pub const TOMBSTONE: Span = Span::from_secs(60);
/// How long an ended slot is: payments are told of late, and may take the slot again if it is free.
pub const SLOT_TOMBSTONE: Span = Span::from_secs(3_600);
/// How long a confirmed slot is kept after its end.
pub const PAST_KEPT: Span = Span::from_secs(7 * 86_400);
/// How long the highest version of a name is remembered after it was last raised.
pub const VERSION_KEPT: Span = Span::from_secs(86_400);
/// The most leases of one namespace, ended ones that are remembered included.
pub const LEASES_MAX: usize = 1 << 20;
/// The most names whose highest version is remembered, per namespace.
pub const VERSIONS_MAX: usize = 1 << 20;
/// The most keys of one acquire, or calendars of one hold.
pub const KEYS_MAX: usize = 16;
/// Ended things that are put away with each operation.
pub const SWEEP: usize = 128;
