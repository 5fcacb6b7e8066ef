//! The bug museum: known mistakes that can be planted one at a time, to prove that the tests would
//! catch them.
//!
//! Without the `museum` feature every call is a constant `false` and leaves no trace in the binary.
//! Must not be used for anything but a deliberately wrong rule.

/// A mistake that somebody once shipped, in our rules.
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
    /// A block still stands at the instant it ends.
    BlockEdgeInclusive,
    /// A credit lifts a block.
    CreditLiftsBlock,
    /// A credit or refund may pass the size.
    RefundUncapped,
    /// A refund lands in a window opened after the check.
    RefundIntoNextWindow,
    /// Settling twice applies twice.
    SettleTwice,
    /// A settle that crosses the limit starts no block.
    CrossingStartsNothing,
    /// Debt is clamped at zero.
    DebtClamped,
    /// A shadow policy decides.
    ShadowDenies,
    /// Key parts are joined with a separator.
    KeyJoined,
    /// The wait is rounded down.
    RetryRoundsDown,
    /// A later, shorter act shortens a block.
    BlockShortens,
    /// A release ends whatever has the name now.
    LockReleaseByName,
    /// A lease that is over can be renewed.
    LockRenewByAnyone,
    /// A lease still stands at the instant it ends.
    LockExpiryInclusive,
    /// Ranges that only touch overlap.
    LockOverlapInclusive,
    /// An expired hold is left beside a new one.
    LockExpiredHoldStays,
    /// Fences are counted, and start again with the process.
    LockFenceCounts,
    /// A lease ends by another clock than the one that granted it.
    LockCallersClock,
    /// A waiter whose time is over is granted.
    LockExpiredWaiter,
    /// Whether a name is free is asked first, and taken later.
    LockCheckThenTake,
}

impl Bug {
    /// Every exhibit in the rules of decisions.
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

    /// Those in the rules of locks and slots.
    pub const LOCKS: [Self; 6] = [
        Self::LockReleaseByName,
        Self::LockRenewByAnyone,
        Self::LockExpiryInclusive,
        Self::LockOverlapInclusive,
        Self::LockExpiredHoldStays,
        Self::LockFenceCounts,
    ];

    /// Those in how callers of locks are kept waiting.
    pub const WAITING: [Self; 3] =
        [Self::LockCallersClock, Self::LockExpiredWaiter, Self::LockCheckThenTake];
}

#[cfg(feature = "museum")]
mod planting {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug for this thread, or clears it.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is planted in this thread.
    pub fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "museum")]
pub use planting::{plant, planted};

/// Whether this bug is planted: never, outside the museum.
#[cfg(not(feature = "museum"))]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}
