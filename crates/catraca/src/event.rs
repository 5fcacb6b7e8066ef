//! Events: the one stream that records, metrics, logs and the live feed are fed from.
//!
//! Must not carry a private value in clear: parts are named as they may be shown.

use catraca_core::cell::block::{Note, Origin};
use catraca_core::credit::NotCredited;
use catraca_core::decision::Decision;
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::time::{Span, Time};

use crate::settlement::{Settled, Settlement};

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A check was decided. Peeks are not events.
    Decided {
        /// The namespace.
        namespace: &'a str,
        /// The gate that was asked.
        gate: &'a str,
        /// The decision.
        decision: &'a Decision,
    },
    /// A block was started or lengthened.
    Blocked(Blocked),
    /// A block was ended by an operator.
    Unblocked {
        /// The instant.
        at: Time,
        /// The namespace.
        namespace: &'a str,
        /// The key of (namespace, policy, parts).
        key: Key,
        /// The policy.
        policy: &'a str,
        /// Who.
        parts: Vec<(String, String)>,
    },
    /// Everything about a key was forgotten.
    Reset {
        /// The instant.
        at: Time,
        /// The namespace.
        namespace: &'a str,
        /// The key of (namespace, policy, parts).
        key: Key,
        /// The policy.
        policy: &'a str,
        /// Who.
        parts: Vec<(String, String)>,
    },
    /// A policy began anew for everybody, in every namespace.
    PolicyReset {
        /// The instant.
        at: Time,
        /// The policy.
        policy: &'a str,
        /// Since when it counts: `at`, or later if the clock went back.
        epoch: Time,
    },
    /// A ticket was settled for the first time.
    Settled(&'a Settlement),
    /// A ticket was settled before, or too late.
    NotSettled(Settled),
    /// A settle left a debt, or paid one back.
    Owed(Owed),
    /// A credit was asked for.
    Credited {
        /// The event's name.
        event: &'a str,
        /// Why it was not applied, if it was not.
        refused: Option<NotCredited>,
    },
    /// What remains of a limit fell below the policy's low-water mark.
    LowWater {
        /// The instant.
        at: Time,
        /// The policy.
        policy: &'a str,
        /// What remains.
        remaining: i64,
        /// The limit.
        limit: i64,
    },
    /// An outcome was counted in a policy's watched ratio.
    Watched {
        /// The instant.
        at: Time,
        /// The policy.
        policy: &'a str,
        /// Whether it counts in the share, or in the whole alone.
        in_part: bool,
    },
    /// A policy's ban rules turned to shadow.
    Storm {
        /// The instant.
        at: Time,
        /// The policy.
        policy: &'a str,
    },
    /// Ban conditions read a missing field, compared unlike things, or would take too long.
    ConditionsFailed {
        /// How many.
        count: u32,
    },
    /// A shared store was asked.
    Asked {
        /// How long it took.
        took: Span,
        /// Whether there was no answer.
        failed: bool,
    },
    /// Another catalog is in force.
    Catalog {
        /// The instant.
        at: Time,
        /// Its revision.
        revision: &'a str,
        /// How many policies it has.
        policies: u32,
    },
}

/// A block that was started or lengthened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The instant.
    pub at: Time,
    /// The namespace.
    pub namespace: String,
    /// The key of (namespace, policy, parts).
    pub key: Key,
    /// Since when the policy counted, as the decision knew it; zero if since ever.
    pub epoch: Time,
    /// The policy.
    pub policy: String,
    /// Who, as may be shown.
    pub parts: Vec<(String, String)>,
    /// The first free instant.
    pub until: Time,
    /// What started it.
    pub origin: Origin,
    /// What operators and callers are told.
    pub note: Note,
    /// Whether only shadow rows see it.
    pub shadow: bool,
    /// How long after its end the offence is remembered; zero if it does not escalate.
    pub forget: Span,
}

/// What a bucket that may owe held after a settle, when it owed before or does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The instant.
    pub at: Time,
    /// The namespace.
    pub namespace: String,
    /// The key of (namespace, policy, parts).
    pub key: Key,
    /// Since when the policy counted, as the settle knew it; zero if since ever.
    pub epoch: Time,
    /// The policy.
    pub policy: String,
    /// Who, as may be shown.
    pub parts: Vec<(String, String)>,
    /// Whole tokens; negative is debt.
    pub balance: i64,
    /// The bucket's terms.
    pub terms: BucketTerms,
}

/// Whoever wants to hear events.
pub type Listener = Box<dyn Fn(&Event<'_>) + Send + Sync>;
