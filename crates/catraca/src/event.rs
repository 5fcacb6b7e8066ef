//! Events: the single stream that feeds records, metrics, logs and the live feed.
//!
//! An event must not contain a private value in clear: `parts` contains pseudonyms for private
//! attributes.

use std::time::{Duration, SystemTime};

use catraca_core::cell::block::Block;
use catraca_core::credit_plan::CreditRejection;
use catraca_core::decision::Decision;
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::policy::Name;
use catraca_core::ticket::TicketRow;
use catraca_core::time::{Span, Time};

use crate::settlement::{SettleState, Settlement};

/// A fact that is reported to the listener.
///
/// ```
/// use std::sync::mpsc::channel;
///
/// use catraca::{Catalog, Check, Engine, Event};
///
/// let policy = "[policy.login]\nby = ['ip']\nwindow = '1 per 1m'\nblock = '1h'";
/// let catalog = Catalog::parse(policy)?;
/// let (sender, blocked) = channel();
/// let engine = Engine::builder(catalog)
///     .listener(move |event| {
///         if let Event::Blocked { block, .. } = event {
///             let _ = sender.send(block.subject.policy.to_string());
///         }
///     })
///     .build();
/// let check = Check::new("login", [("ip", "198.51.100.7")]);
/// assert!(engine.check(&check)?.allowed);
/// assert!(!engine.check(&check)?.allowed);
/// assert_eq!(blocked.try_recv()?, "login");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A check was decided. Peeks are not events.
    Decided {
        /// The namespace.
        namespace: &'a str,
        /// The gate of the check.
        gate: &'a str,
        /// The decision.
        decision: &'a Decision,
        /// The key of each row of the decision, in its order; absent for a row whose key is
        /// incomplete. Empty unless [`Builder::report_keys`](crate::Builder::report_keys) asks for
        /// it.
        keys: &'a [Option<SubjectKey>],
    },
    /// A block was started or extended.
    Blocked {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The block.
        block: Box<BlockEvent>,
    },
    /// An operator ended a block.
    Unblocked {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The key that is not blocked any more.
        subject: SubjectKey,
    },
    /// An operator cleared all state of a key.
    Reset {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The key that has no state any more.
        subject: SubjectKey,
    },
    /// A policy was reset for all keys, in every namespace.
    PolicyReset {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The policy.
        policy: Name,
        /// The new epoch: state from before it does not count. It is `at`, or later if the clock
        /// was set back.
        #[doc(hidden)]
        epoch: Time,
    },
    /// A ticket was settled for the first time.
    Settled(&'a Settlement),
    /// A settle changed nothing: the ticket was settled before, or has expired.
    NotSettled {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// Which of the two.
        state: SettleState,
        /// The rows of the ticket.
        rows: &'a [TicketRow],
    },
    /// A settle left a bucket in debt, or repaid a debt.
    Debt {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The bucket.
        debt: Box<DebtEvent>,
    },
    /// A credit was applied or rejected.
    Credited {
        /// The event's name.
        event: &'a str,
        /// Why it was not applied; absent if it was.
        refused: Option<CreditRejection>,
    },
    /// The remaining units of a limit fell below the policy's low-water mark.
    LowWater {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The policy.
        policy: Name,
        /// Units remaining.
        remaining: i64,
        /// The limit.
        limit: i64,
    },
    /// An outcome was counted in a policy's watched ratio.
    RatioCounted {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The policy.
        policy: Name,
        /// Whether the outcome counts in the part of the ratio too, or only in the whole.
        in_part: bool,
    },
    /// Ban-storm protection turned the ban rules of a policy to shadow.
    BanStorm {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The policy.
        policy: Name,
    },
    /// A check named a gate that the catalog does not declare, for the first time since the start.
    /// At most 1,000 names are reported.
    UnlistedGate {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The name in the check.
        gate: String,
        /// A declared gate with a similar name.
        nearest: Option<Name>,
    },
    /// Ban conditions of one policy were false because of a missing field, a comparison of
    /// different types, or an estimated cost above the limit: these rules did not ban.
    ConditionsFailed {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The policy.
        policy: Name,
        /// How many conditions.
        count: u32,
    },
    /// A call to the shared store ended.
    StoreCalled {
        /// The duration of the call.
        #[doc(hidden)]
        took: Span,
        /// Whether the call failed.
        failed: bool,
    },
    /// An operator's query did not wait any longer for records that were queued before it. Its
    /// answer may lack the newest entries, and says so.
    RecordsBehind {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// How long the query waited; not at all if the records are known to be unavailable.
        waited: Duration,
    },
    /// The catalog was reloaded.
    CatalogReloaded {
        /// The instant.
        #[doc(hidden)]
        at: Time,
        /// The new revision.
        revision: Name,
        /// The number of its policies.
        policies: u32,
    },
}

impl Event<'_> {
    /// When it happened; absent for events that carry no instant.
    pub fn happened_at(&self) -> Option<SystemTime> {
        let at = match self {
            Self::Decided { decision, .. } => decision.at,
            Self::Settled(settlement) => settlement.at,
            Self::Blocked { at, .. }
            | Self::Unblocked { at, .. }
            | Self::Reset { at, .. }
            | Self::PolicyReset { at, .. }
            | Self::NotSettled { at, .. }
            | Self::Debt { at, .. }
            | Self::LowWater { at, .. }
            | Self::RatioCounted { at, .. }
            | Self::BanStorm { at, .. }
            | Self::ConditionsFailed { at, .. }
            | Self::UnlistedGate { at, .. }
            | Self::RecordsBehind { at, .. }
            | Self::CatalogReloaded { at, .. } => *at,
            Self::Credited { .. } | Self::StoreCalled { .. } => return None,
        };
        Some(at.into())
    }

    /// How long a call to the shared store took; absent for other events.
    pub fn store_call_duration(&self) -> Option<Duration> {
        match self {
            Self::StoreCalled { took, .. } => Some((*took).into()),
            _ => None,
        }
    }
}

impl BlockEvent {
    /// The end of the block; absent if it has no end.
    pub fn blocked_until(&self) -> Option<SystemTime> {
        let until = self.block.until;
        (!until.is_forever()).then(|| until.into())
    }
}

/// The key of a block, a debt or an operator's act, with the values that it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectKey {
    /// The digest of namespace, policy and parts.
    pub key: Key,
    /// The namespace.
    pub namespace: String,
    /// The policy.
    pub policy: String,
    /// The attributes of the key and their values, private ones as pseudonyms.
    pub parts: Vec<(String, String)>,
}

/// A block that was started or extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// The blocked key.
    pub subject: SubjectKey,
    /// The epoch of the policy when the decision was made; zero if it was never reset for all keys.
    /// A block that was decided before a reset and is recorded after it is not active.
    #[doc(hidden)]
    pub epoch: Time,
    /// The first of the keys that the same act blocked, if it blocked several. An act is one check,
    /// one settle or one order of an operator. Such blocks are shown and released together.
    pub first_of_act: Option<Key>,
    /// The block after the act, with its level. An operator's act that does not extend a longer
    /// block has the end and the level of that block, and its own origin and note.
    pub block: Block,
}

/// The level of a bucket with `debt` after a settle. Reported if it was negative before or is
/// negative now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebtEvent {
    /// The key of the bucket.
    pub subject: SubjectKey,
    /// The epoch of the policy when the settle was applied; zero if it was never reset for all
    /// keys.
    #[doc(hidden)]
    pub epoch: Time,
    /// Whole tokens; negative is debt.
    pub balance: i64,
    /// The bucket's terms.
    pub terms: BucketTerms,
}

/// Receives every event, on the thread that caused it.
pub type EventListener = Box<dyn Fn(&Event<'_>) + Send + Sync>;
