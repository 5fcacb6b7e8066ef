//! The store port: where state lives, and what every such place promises.
//!
//! A store takes one batch of plain data and applies it whole or not at all, at one instant. One
//! in process answers at once; one that nodes share is asked and awaited. Either
//! knows keys, cells, batches and replies. Must not know policies, subjects or anything of the
//! wire.

use std::pin::Pin;

use catraca_core::batch::{Batch, Reply};
use catraca_core::time::Time;

/// A place that keeps state and applies batches to it.
pub trait Store: Send + Sync {
    /// Applies a batch atomically and answers with a reply of the same name.
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError>;
}

/// A place that several nodes share: the same promise, but each batch is a trip.
///
/// Every call ends within the store's own deadline: what cannot be reached is
/// [`StoreError::Unavailable`], never a wait without end.
pub trait SharedStore: Send + Sync + 'static {
    /// Applies a batch atomically and answers with a reply of the same name. One that was cut off
    /// may have been applied, so it is never sent again.
    fn apply(
        &self,
        batch: &Batch,
        when: When,
    ) -> impl Future<Output = Result<Reply, StoreError>> + Send;

    /// Whether it spreads over servers, so that keys must be in groups of which one server has all.
    /// A batch that blocks, frees, forgets or corrects keys of several groups is then applied group
    /// by group; any other must have keys of one.
    fn spreads(&self) -> bool {
        false
    }

    /// How often any node has changed lists, facts or modes, and the store's clock and life.
    fn pulse(&self) -> impl Future<Output = Result<Pulse, StoreError>> + Send;

    /// What is set there that puts state in danger, as the last pulse found it, and what helps. It
    /// is asked all the same.
    fn danger(&self) -> Option<String> {
        None
    }

    /// Ends when it can be asked again after it could not, so that a beat need not wait for its
    /// turn. One that cannot tell leaves it to the beats.
    fn returns(&self) -> Returning {
        Box::pin(std::future::pending())
    }

    /// Tells every node that lists, facts or modes have changed.
    fn stir(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes these records the ones of this store unless it has others; says whose they are.
    /// Nodes that share counters must share blocks and lists too.
    fn claim(&self, records: &str) -> impl Future<Output = Result<String, StoreError>> + Send;
}

/// What ends when a store can be asked again.
pub type Returning = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A store's sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// How often lists, facts or modes have changed.
    pub changes: u64,
    /// The store's clock.
    pub now: Time,
    /// Which life of the store this is: another number means that it has come back, perhaps
    /// without what it knew.
    pub life: u64,
}

/// The instant at which a batch is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// The store's own clock, read while it holds the keys: time never runs backwards for a key.
    #[default]
    Store,
    /// A given instant, so that stores can be compared and histories replayed.
    At(Time),
}

/// Why a batch was not applied. A denial is no error: it is part of a reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or did not answer in time.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
    },
    /// The store has no room for what must not be lost.
    #[error("the store has no room left for {what}")]
    Full {
        /// What could not be kept.
        what: &'static str,
    },
    /// What the store keeps, or answers, is not what this program wrote.
    #[error("the store holds something unreadable: {reason}")]
    Corrupt {
        /// What was found.
        reason: String,
    },
}

impl StoreError {
    /// The store cannot be reached, or did not answer in time.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }

    /// The store has no room for what must not be lost.
    pub fn full(what: &'static str) -> Self {
        Self::Full { what }
    }

    /// What the store keeps is not what this program wrote.
    pub fn corrupt(reason: impl Into<String>) -> Self {
        Self::Corrupt { reason: reason.into() }
    }

    /// The store answered a batch with a reply of another name.
    pub fn odd_reply() -> Self {
        Self::corrupt("a reply that does not answer its batch")
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } => true,
            Self::Corrupt { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Front ends hold stores of any kind behind one pointer.
    fn _is_object_safe(_: &dyn Store) {}

    #[test]
    fn only_damage_needs_help() {
        assert!(StoreError::unavailable("no route").is_transient());
        assert!(StoreError::full("settled-markers").is_transient());
        assert!(!StoreError::odd_reply().is_transient());
    }
}
