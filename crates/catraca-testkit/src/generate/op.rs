//! One operation of a trace, as plain data.
//!
//! A settle names its check by the number of the operation, so that a trace keeps its meaning when
//! other operations are dropped to shorten it.

use crate::oracle::Micros;
use crate::oracle::outcome::Outcome;
use crate::oracle::select::{CheckRequest, Subject};

/// An operation at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its number in the trace.
    pub number: usize,
    /// The instant.
    pub at: Micros,
    /// The call and its arguments.
    pub kind: OpKind,
}

/// The call and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum OpKind {
    /// A check.
    Check(CheckRequest),
    /// A peek.
    Peek(CheckRequest),
    /// Settle the ticket of an earlier check.
    Settle {
        /// The number of the operation that issued the ticket.
        check: usize,
        /// The outcome.
        outcome: Outcome,
    },
    /// A credit.
    Credit {
        /// The `ref`.
        reference: String,
        /// The event.
        event: String,
        /// The subject.
        subject: Subject,
    },
    /// An operator's block.
    Block {
        /// The policy.
        policy: String,
        /// The subject.
        subject: Subject,
        /// The length, or `FOREVER`.
        length: Micros,
    },
    /// An operator's unblock.
    Unblock {
        /// The policy.
        policy: String,
        /// The subject.
        subject: Subject,
    },
    /// An operator's reset.
    Reset {
        /// The policy.
        policy: String,
        /// The subject.
        subject: Subject,
    },
    /// An upstream's view of a bucket.
    Reconcile {
        /// The policy.
        policy: String,
        /// The subject.
        subject: Subject,
        /// The observed tokens.
        level: i64,
        /// The instant of the observation.
        observed_at: Micros,
    },
    /// A reload of the version with this index.
    Reload(usize),
    /// An operator's fact about a user at run time, which stays when the catalog is replaced.
    StateGrade {
        /// The user.
        user: String,
        /// The grade; none removes the operator's facts about the user.
        grade: Option<String>,
    },
}

impl OpKind {
    /// Whether its answer is a decision.
    pub fn decides(&self) -> bool {
        matches!(self, OpKind::Check(_) | OpKind::Peek(_))
    }
}
