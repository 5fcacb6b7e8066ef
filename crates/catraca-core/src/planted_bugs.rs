//! Planted bugs: known mistakes that tests can enable one at a time, to prove that the test suite
//! detects them.
//!
//! Without the feature `planted-bugs`, [`is_planted`] is a constant `false` and leaves nothing in
//! the binary.

/// A mistake in the rules that a rate limiter or lock service could plausibly have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The remainder of a refill is lost at every touch.
    RefillDropsRemainder,
    /// Refill is counted in floating point with whole milliseconds.
    RefillFloat,
    /// An idle bucket keeps up to twice its size.
    BurstAfterIdle,
    /// A denied check consumes in the policies that fit.
    DenialConsumes,
    /// An entry exactly one window old still counts.
    WindowEdgeInclusive,
    /// Two entries of one instant count as one.
    SameInstantMerges,
    /// Attempts during a block extend it.
    BlockExtendsOnAttempt,
    /// A block is still active at the instant it ends.
    BlockEdgeInclusive,
    /// A credit lifts a block.
    CreditLiftsBlock,
    /// A credit or refund can exceed the size.
    RefundUncapped,
    /// A refund lands in a window opened after the check.
    RefundIntoNextWindow,
    /// Settling twice applies twice.
    SettleTwice,
    /// A settle that crosses the limit starts no block.
    CrossingStartsNothing,
    /// Debt is clamped at zero.
    DebtClamped,
    /// A shadow policy denies.
    ShadowDenies,
    /// Key parts are joined with a separator.
    KeyJoined,
    /// The wait is rounded down.
    RetryRoundsDown,
    /// A later, shorter act shortens a block.
    BlockShortens,
    /// A release ends the current lease of the name, even if another caller holds it.
    LockReleaseByName,
    /// An expired lease can be renewed.
    LockRenewByAnyone,
    /// A lease is still held at the instant it ends.
    LockExpiryInclusive,
    /// Ranges that only touch overlap.
    LockOverlapInclusive,
    /// An expired hold stays in the calendar beside a new one.
    LockExpiredHoldStays,
    /// Fences are a plain counter, which restarts with the process.
    LockFenceCounts,
    /// A lease ends by another clock than the one that granted it.
    LockCallersClock,
    /// A waiter is granted the lock after its own deadline.
    LockExpiredWaiter,
    /// Whether a name is free is checked first, and taken in a second step.
    LockCheckThenTake,
}

impl Bug {
    /// The bugs in the rules of decisions.
    pub const ALL: [Self; 18] = [
        Self::RefillDropsRemainder,
        Self::RefillFloat,
        Self::BurstAfterIdle,
        Self::DenialConsumes,
        Self::WindowEdgeInclusive,
        Self::SameInstantMerges,
        Self::BlockExtendsOnAttempt,
        Self::BlockEdgeInclusive,
        Self::CreditLiftsBlock,
        Self::RefundUncapped,
        Self::RefundIntoNextWindow,
        Self::SettleTwice,
        Self::CrossingStartsNothing,
        Self::DebtClamped,
        Self::ShadowDenies,
        Self::KeyJoined,
        Self::RetryRoundsDown,
        Self::BlockShortens,
    ];

    /// The bugs in the rules of locks and slots.
    pub const LOCKS: [Self; 6] = [
        Self::LockReleaseByName,
        Self::LockRenewByAnyone,
        Self::LockExpiryInclusive,
        Self::LockOverlapInclusive,
        Self::LockExpiredHoldStays,
        Self::LockFenceCounts,
    ];

    /// The bugs in the queues of waiting callers.
    pub const WAITING: [Self; 3] =
        [Self::LockCallersClock, Self::LockExpiredWaiter, Self::LockCheckThenTake];
}

#[cfg(feature = "planted-bugs")]
mod planting {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Enables a bug in this thread, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is enabled in this thread.
    pub fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use planting::{is_planted, plant};

/// Whether this bug is enabled: never, without the feature `planted-bugs`.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub const fn is_planted(_: Bug) -> bool {
    false
}
