//! The store ports: where cells are stored, and what every store guarantees.
//!
//! A store applies one batch of plain data atomically, at one instant. [`Store`] is in process and
//! returns at once; [`SharedStore`] is used by several nodes and is async. Stores know keys, cells,
//! batches and replies, but no policies, subjects or wire formats.

mod node_exchange;
#[cfg(all(feature = "shared", feature = "locks"))]
mod open;
mod primary;
#[cfg(feature = "shared")]
mod split;

use std::fmt;
use std::pin::Pin;

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use catraca_core::time::Time;

pub use node_exchange::{
    NOTICES_PER_REPLY, NodeMessage, NodeReply, RulePage, RuleStamp, RuleWriteMode, StampedRule,
};
#[cfg(all(feature = "shared", feature = "locks"))]
pub use open::{OpenOptions, OpenStoreError, SharedStores, StoreKind, open};
pub use primary::{PrimaryId, PrimaryReport, PrimaryReports};
#[cfg(feature = "shared")]
pub(crate) use split::{BatchPart, first_key, merge, split_by};

/// Stores cells and applies batches to them.
///
/// ```
/// use std::sync::Arc;
///
/// use catraca::core::batch::{Batch, Reply};
/// use catraca::store::{Store, StoreError, When};
/// use catraca::{Catalog, Engine, Memory, MemoryOptions, SystemClock};
///
/// /// Prints every batch.
/// struct PrintingStore(Memory);
///
/// impl Store for PrintingStore {
///     fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
///         println!("{batch:?}");
///         self.0.apply(batch, when)
///     }
/// }
///
/// let memory = Memory::new(MemoryOptions::default(), Arc::new(SystemClock::new()));
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let engine = Engine::builder(catalog).build_with_store(PrintingStore(memory));
/// assert!(engine.gate("api")?.check(["198.51.100.7"])?.allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Send + Sync {
    /// Applies a batch atomically and returns the reply variant of the same name.
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError>;
}

/// A store that several nodes share: the same guarantee, over the network.
///
/// Every call ends within the store's own deadline: a store that cannot be reached returns
/// [`StoreError::Unavailable`] and never blocks without a limit.
pub trait SharedStore: Send + Sync + 'static {
    /// Applies a batch atomically and returns the reply variant of the same name. A batch whose
    /// call timed out or was disconnected may have been applied, so it must not be sent again.
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply>;

    /// Whether the store consists of several servers, so that keys must be in groups and all keys
    /// of a group are on one server. Batches that block, unblock, reset or reconcile may have keys
    /// of several groups and are then applied group by group; any other batch must have keys of one
    /// group.
    fn is_sharded(&self) -> bool {
        false
    }

    /// The primary that has a key now; the same for all keys of a group. Absent while no server has
    /// the key: calls about it fail at once.
    fn primary_of(&self, key: Key) -> Option<PrimaryId> {
        let _ = key;
        Some(PrimaryId::default())
    }

    /// The address of a primary, if the store has several.
    fn primary_name(&self, primary: PrimaryId) -> Option<String> {
        let _ = primary;
        None
    }

    /// The change counter of lists, facts and modes, the store's clock and its incarnation. Of a
    /// store with several primaries: of the one that has the change counter.
    fn status(&self) -> StoreFuture<'_, StoreStatus>;

    /// The status of every primary, asked at the same time, so that one that does not answer delays
    /// no other. A store with several primaries must implement this.
    fn primary_statuses(&self) -> PrimaryReports<'_> {
        Box::pin(async {
            let status = self.status().await;
            vec![PrimaryReport { primary: PrimaryId::default(), status }]
        })
    }

    /// A setting of the store that may lose state, as seen by the last status call, and how to fix
    /// it. The store is used nevertheless.
    fn config_warning(&self) -> Option<String> {
        None
    }

    /// Applies a batch as [`Self::apply`] does. The flag says that other nodes may decide on
    /// another copy of the store, because the server that has answered may have been replaced by
    /// then. Decisions then say that they are degraded.
    fn apply_with_doubt<'a>(
        &'a self,
        batch: &'a Batch,
        when: When,
    ) -> StoreFuture<'a, (Reply, bool)> {
        Box::pin(async move { Ok((self.apply(batch, when).await?, false)) })
    }

    /// Why the server that this node uses may have been replaced, and the consequence.
    fn doubt(&self) -> Option<String> {
        None
    }

    /// A setting of the store that should be changed, and how, although nothing is wrong now.
    fn config_notice(&self) -> Option<String> {
        None
    }

    /// Why a task in the background fails on which the store depends, and the consequence. Calls
    /// work nevertheless.
    fn background_error(&self) -> Option<String> {
        None
    }

    /// Completes when a store that was unavailable can be used again, so that the heartbeat does
    /// not have to wait for its interval. A store that cannot detect this never completes.
    fn wait_reconnected(&self) -> Reconnection {
        Box::pin(std::future::pending())
    }

    /// Increments the change counter, so that every node reads lists, facts and modes again.
    fn publish_change(&self) -> StoreFuture<'_, ()>;

    /// Binds the store to these records, unless it is bound to others; returns the identity of the
    /// records that it is bound to. Nodes that share counters must share blocks and lists too.
    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String>;

    /// Adds the message of a node, and returns those of the others. A store that cannot carry
    /// messages returns nothing: then nodes do not know each other's blocks while it is
    /// unavailable.
    fn exchange<'a>(&'a self, message: &'a NodeMessage<'a>) -> StoreFuture<'a, NodeReply> {
        let _ = message;
        Box::pin(std::future::ready(Ok(NodeReply::default())))
    }

    /// Removes the oldest notices beyond this number, and returns them.
    fn trim_notices(&self, keep: u64) -> StoreFuture<'_, Vec<Vec<u8>>> {
        let _ = keep;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Writes rules that nodes share through the store, each in one step. May be repeated, in any
    /// order: of two acts about a rule, the one with the higher stamp stays.
    fn write_rules<'a>(
        &'a self,
        rules: &'a [StampedRule],
        mode: RuleWriteMode,
    ) -> StoreFuture<'a, ()> {
        let _ = (rules, mode);
        Box::pin(std::future::ready(Err(StoreError::unavailable(NO_RULES))))
    }

    /// A page of these rules; the first one from 0.
    fn read_rules(&self, from: u64) -> StoreFuture<'_, RulePage> {
        let _ = from;
        Box::pin(std::future::ready(Err(StoreError::unavailable(NO_RULES))))
    }
}

/// The error of a store that cannot be the authority for rules.
const NO_RULES: &str = "it keeps no lists, facts and modes: nodes over it must share records";

/// The result of a call to a shared store. Boxed, so that a store can be chosen at run time; the
/// allocation is small beside a trip over the network.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Completes when an unavailable store can be used again.
pub type Reconnection = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The reply to a heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// How many times lists, facts or modes were changed.
    pub changes: u64,
    /// The store's clock.
    #[doc(hidden)]
    pub now: Time,
    /// Identifies the run of the store. A different number means that the store was restarted or
    /// failed over and may have lost state.
    pub incarnation: u64,
}

/// The instant at which a batch is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// The store's own clock, read while the keys are locked: time never runs backwards for a key.
    #[default]
    Store,
    /// A given instant, to compare stores and to replay requests.
    #[doc(hidden)]
    At(Time),
}

/// Why a batch was not applied. A denial is not an error: it is part of a reply.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or did not reply in time.
    Unavailable {
        /// The cause.
        reason: String,
    },
    /// The keys are being moved to another server of the store. The batch was not applied, and the
    /// store works for other keys.
    Moving {
        /// The server's answer.
        reason: String,
    },
    /// A pool is full whose cells must not be dropped.
    Full {
        /// What could not be stored.
        what: &'static str,
    },
    /// A stored cell or a reply cannot be decoded: this program did not write it.
    Corrupt {
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { reason } | Self::Moving { reason } => {
                write!(f, "the store is unavailable: {reason}")
            }
            Self::Full { what } => write!(f, "the store is full: no room for {what}"),
            Self::Corrupt { reason } => write!(f, "the store returned invalid data: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// The store cannot be reached, or did not reply in time.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into() }
    }

    /// A pool is full whose cells must not be dropped.
    pub fn full(what: &'static str) -> Self {
        Self::Full { what }
    }

    /// A stored cell or a reply cannot be decoded.
    pub fn corrupt(reason: impl Into<String>) -> Self {
        Self::Corrupt { reason: reason.into() }
    }

    /// The error of a batch of which another part was applied: a part that was certainly not
    /// applied does not make the whole certain.
    #[cfg(feature = "shared")]
    pub(crate) fn after_other_parts(self) -> Self {
        match self {
            Self::Moving { reason } => Self::Unavailable { reason },
            other => other,
        }
    }

    /// The reply variant does not belong to the batch.
    pub fn mismatched_reply() -> Self {
        Self::corrupt("the reply does not match the batch")
    }

    /// Whether the same call may succeed later without an operator's help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Moving { .. } | Self::Full { .. } => true,
            Self::Corrupt { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Embedders may keep any store behind one pointer.
    fn _is_object_safe(_: &dyn Store, _: &dyn SharedStore) {}

    #[test]
    fn only_damage_needs_help() {
        assert!(StoreError::unavailable("no route").is_transient());
        assert!(StoreError::full("settled-markers").is_transient());
        assert!(!StoreError::mismatched_reply().is_transient());
    }
}
