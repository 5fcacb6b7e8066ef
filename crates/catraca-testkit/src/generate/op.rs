//! One operation of a story, as plain data: it can be replayed against anything, and dropped to
//! shorten a failure.
//!
//! It must name tickets by the operation that issued them, so that the rest of a story still means
//! the same without it.

use crate::oracle::Micros;
use crate::oracle::outcome::Outcome;
use crate::oracle::select::{Ask, Subject};

/// What happens at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its number in the story.
    pub number: usize,
    /// When.
    pub at: Micros,
    /// What.
    pub verb: Verb,
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Decide and charge.
    Check(Ask),
    /// Decide only.
    Peek(Ask),
    /// Settle the ticket of an earlier check.
    Settle {
        /// Number of the operation that issued it.
        check: usize,
        /// What happened.
        outcome: Outcome,
    },
    /// A late event.
    Credit {
        /// The `ref`.
        reference: String,
        /// The event.
        event: String,
        /// Who.
        subject: Subject,
    },
    /// An operator blocks.
    Block {
        /// Under this policy.
        policy: String,
        /// Whom.
        subject: Subject,
        /// For how long; `FOREVER` for good.
        length: Micros,
    },
    /// An operator releases.
    Unblock {
        /// Under this policy.
        policy: String,
        /// Whom.
        subject: Subject,
    },
    /// An operator clears.
    Reset {
        /// Under this policy.
        policy: String,
        /// Whom.
        subject: Subject,
    },
    /// An upstream's view of a bucket.
    Reconcile {
        /// The policy.
        policy: String,
        /// Whose.
        subject: Subject,
        /// Tokens seen...
        level: i64,
        /// ...at that instant.
        observed_at: Micros,
    },
    /// Another version of the catalog comes into force.
    Reload(usize),
}

impl Verb {
    /// Whether it asks for a decision.
    pub fn decides(&self) -> bool {
        matches!(self, Verb::Check(_) | Verb::Peek(_))
    }
}
